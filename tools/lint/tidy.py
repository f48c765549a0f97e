#!/usr/bin/env python3
"""clang-tidy over the program's own .cpp files (not the tests), skipping what was clean before.

A file's result is remembered under a hash of everything it depends on: its text, the own headers
it reaches, the compile command, .clang-tidy and clang-tidy's version. The memory lies in the XDG
cache folder, so that a fresh clone is quick too; paths are taken out of the hash for that.

    tidy.py [--jobs N] BUILD_FOLDER
    tidy.py --self-test
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TIDY = "clang-tidy-14"
ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(base) / "wok-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def reached(path: pathlib.Path, src: pathlib.Path, seen: set[pathlib.Path]) -> None:
    if path in seen or not path.is_file():
        return
    seen.add(path)
    for target in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
        reached(src / target, src, seen)


def key_of(path: pathlib.Path, command: str, fixed: bytes) -> str:
    """fixed: what all files share (the checks, the tool's version)."""
    src = ROOT / "src"
    seen: set[pathlib.Path] = set()
    reached(path, src, seen)
    digest = hashlib.sha256(fixed)
    digest.update(command.replace(str(ROOT), ".").encode())
    for each in sorted(seen):
        digest.update(each.relative_to(ROOT).as_posix().encode() + b"\0" + each.read_bytes())
    return digest.hexdigest()


def run_one(path: pathlib.Path, build: pathlib.Path) -> tuple[bool, str]:
    done = subprocess.run(
        [TIDY, "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", str(path)],
        capture_output=True, text=True, check=False,
    )
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def self_test() -> int:
    """A file with a fault fails, one without passes, under the checks of .clang-tidy."""
    samples = {
        "bad.cpp": ("int* f() { return 0; }\n", False),
        "good.cpp": ("int* f() { return nullptr; }\n", True),
    }
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        (folder / ".clang-tidy").write_bytes((ROOT / ".clang-tidy").read_bytes())
        commands = [
            {"directory": temp, "file": name, "command": f"c++ -std=c++20 -c {name}"}
            for name in samples
        ]
        (folder / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
        for name, (text, good) in samples.items():
            (folder / name).write_text(text, encoding="utf-8")
            clean, output = run_one(folder / name, folder)
            if clean != good:
                print(f"self-test: {name} was judged wrongly:\n{output}", file=sys.stderr)
                return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.build is None:
        parser.error("which build folder?")

    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    fixed = version + (ROOT / ".clang-tidy").read_bytes()
    cache = cache_folder()
    entries = json.loads((args.build / "compile_commands.json").read_text(encoding="utf-8"))
    todo, total = [], 0
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if ROOT / "src" not in path.parents or path.stem.endswith("_test"):
            continue
        total += 1
        mark = cache / key_of(path, entry["command"], fixed)
        if mark.exists():
            mark.touch()
        else:
            todo.append((path, mark))
    print(f"clang-tidy: {len(todo)} of {total} files to check", file=sys.stderr)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, args.jobs)) as pool:
        results = pool.map(lambda item: run_one(item[0], args.build), todo)
        for (path, mark), (clean, output) in zip(todo, results):
            if clean:
                mark.touch()
            else:
                failed += 1
                print(f"{path.relative_to(ROOT)}:\n{output}", file=sys.stderr)
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
