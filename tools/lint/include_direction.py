#!/usr/bin/env python3
"""Checks that every #include of an own header points down the flow (docs/architecture.md).

Each room names the rooms it may include; through them it may include what they may. A unit test
(*_test.cpp, testing.h) and everything in tests/ may include any room. A new room is one line here.
"""

import pathlib
import re
import sys
import tempfile

ROOMS = {
    "base": [],
    "kernels": ["base"],
    "quant": ["kernels"],
    "formats": ["quant"],
    "text": ["base"],
    "store": ["base"],
    "kv": ["kernels"],
    "layers": ["kernels", "quant", "kv"],
    "models": ["layers", "formats"],
    "sampling": ["kernels"],
    "scheduler": ["kv"],
    "engine": ["scheduler", "models", "sampling"],
    "disagg": ["engine", "kv"],
    "api": ["engine", "text", "store"],
    "server": ["api", "disagg"],
    "quantizer": ["models"],
    "advisor": ["formats", "quant"],
    "bench": ["api"],
}
ROOMS["app"] = list(ROOMS)

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = {".h", ".cpp", ".inc"}


def closure(room: str) -> set[str]:
    allowed, todo = {room}, [room]
    while todo:
        for below in ROOMS[todo.pop()]:
            if below not in allowed:
                allowed.add(below)
                todo.append(below)
    return allowed


def is_test(path: pathlib.Path) -> bool:
    return path.stem.endswith("_test") or path.name == "testing.h"


def check_file(path: pathlib.Path, room: str, src: pathlib.Path) -> list[str]:
    faults = []
    allowed = closure(room)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        where = f"{path}:{number}: "
        first = target.split("/")[0]
        if quote == "<":
            if first in ROOMS and (src / target).is_file():
                faults.append(f'{where}own header {target} is included with <>, expected ""')
        elif ".." in target.split("/"):
            faults.append(f"{where}{target}: includes start at src/, without ..")
        elif first not in ROOMS:
            faults.append(f"{where}{target}: '{first}' is not a room; write the path from src/")
        elif first not in allowed:
            faults.append(
                f"{where}room '{room}' may not include '{first}' ({target}); "
                f"it may include: {', '.join(sorted(allowed))}"
            )
    return faults


def check_tree(src: pathlib.Path) -> list[str]:
    faults = []
    for folder in sorted(p for p in src.iterdir() if p.is_dir()):
        if folder.name not in ROOMS:
            faults.append(f"{folder}: not a known room; add it to tools/lint/include_direction.py")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and not is_test(path):
                faults += check_file(path, folder.name, src)
    return faults


def self_test() -> int:
    """Good includes pass, each kind of bad one is found."""
    with tempfile.TemporaryDirectory() as temp:
        src = pathlib.Path(temp) / "src"
        samples = {
            "base/a.h": "#include <string>\n",
            "kv/a.h": '#include "base/a.h"\n#include "kernels/x.h"\n',
            "server/a.cpp": '#include "text/x.h"\n#include "base/a.h"\n',
            "kv/a_test.cpp": '#include "server/x.h"\n',
        }
        bad = {
            "base/up.h": '#include "engine/x.h"\n',
            "text/side.h": '  #  include "engine/x.h"\n',
            "store/side.cpp": '#include "api/x.h"\n',
            "kv/dots.h": '#include "../base/a.h"\n',
            "kv/angle.h": "#include <base/a.h>\n",
            "kv/bare.h": '#include "a.h"\n',
            "attic/a.h": "\n",
        }
        for name, text in {**samples, **bad}.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text, encoding="utf-8")
        faults = check_tree(src)
        for name in bad:
            key = "attic" if name.startswith("attic") else name
            if not any(key in fault for fault in faults):
                print(f"self-test: the fault in {name} was not found", file=sys.stderr)
                return 1
        if len(faults) != len(bad):
            print("self-test: a good file was refused:", *faults, sep="\n  ", file=sys.stderr)
            return 1
    for room in ROOMS:  # no cycle: no room may include one that may include it
        for below in closure(room) - {room}:
            if room in closure(below):
                print(f"self-test: rooms {room} and {below} may include each other", file=sys.stderr)
                return 1
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parents[2]
    faults = check_tree(pathlib.Path(sys.argv[1]) if sys.argv[1:] else root / "src")
    for fault in faults:
        print(fault.replace(f"{root}/", ""), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
