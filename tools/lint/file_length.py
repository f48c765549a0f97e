#!/usr/bin/env python3
"""Files hold one idea: over 400 lines is a warning, over 600 an error."""

import pathlib
import subprocess
import sys
import tempfile

WARN, ERROR = 400, 600
SUFFIXES = {".h", ".cpp", ".inc", ".rs", ".py", ".sh"}


def check(paths: list[pathlib.Path]) -> tuple[list[str], list[str]]:
    warnings, errors = [], []
    for path in paths:
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        lines = path.read_bytes().count(b"\n")
        if lines > ERROR:
            errors.append(f"error: {path}: {lines} lines, at most {ERROR}; split it by idea")
        elif lines > WARN:
            warnings.append(f"warning: {path}: {lines} lines; is there a second idea in it?")
    return warnings, errors


def self_test() -> int:
    with tempfile.TemporaryDirectory() as temp:
        paths = []
        for count in (WARN, WARN + 1, ERROR + 1):
            paths.append(pathlib.Path(temp) / f"f{count}.cpp")
            paths[-1].write_text("\n" * count, encoding="utf-8")
        warnings, errors = check(paths)
    if len(warnings) == 1 and len(errors) == 1:
        return 0
    print("self-test: wrong verdict", warnings, errors, file=sys.stderr)
    return 1


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    files = subprocess.run(
        ["git", "ls-files", "src", "tests", "tools", "bench"], check=True, capture_output=True,
        text=True,
    ).stdout.split("\n")
    warnings, errors = check([pathlib.Path(f) for f in files if f])
    for line in warnings + errors:
        print(line, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
