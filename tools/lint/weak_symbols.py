#!/usr/bin/env python3
"""Looks for weak symbols in object files that were compiled for a wider instruction set.

An inline function of a header, compiled in foo_avx512.cpp, may become a weak symbol there. The
linker keeps one copy of a weak symbol for the whole program, and may keep that one: then code that
runs on every machine holds AVX-512 instructions. So these files must define none; what they use
from headers has internal linkage (static, or an unnamed namespace) or is always inlined.

    weak_symbols.py BUILD_FOLDER      checks its objects of src/kernels/*_{avx2,avxvnni,avx512,amx}.cpp
    weak_symbols.py --self-test       compiles a bad and a good file and judges them
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ISA_OBJECT = re.compile(r"kernels/(.*/)?[^/]*_(avx2|avxvnni|avx512|amx)[^/]*\.cpp\.o$")
# V, W: weak definitions; u: unique global (an inline or template static variable).
# Small letters v, w are weak references, which bring no code.
LEAKING = {"V", "W", "u"}
# Compiler-made data that holds no code, the same in every object.
HARMLESS = re.compile(r"^(DW\.ref\.|_ZTI|_ZTS)")


def leaks(objects: list[pathlib.Path]) -> list[str]:
    nm = shutil.which("nm") or sys.exit("error: nm not found (package binutils)")
    faults = []
    for path in objects:
        out = subprocess.run(
            [nm, "--defined-only", str(path)], check=True, capture_output=True, text=True
        ).stdout
        for line in out.splitlines():
            kind, name = line.split()[-2:]
            if kind in LEAKING and not HARMLESS.match(name):
                faults.append(f"{path.name}: {demangled(name)}")
    return faults


def demangled(name: str) -> str:
    filt = shutil.which("c++filt")
    if not filt:
        return name
    return subprocess.run([filt, name], check=True, capture_output=True, text=True).stdout.strip()


def self_test() -> int:
    samples = {
        "good_avx2.cpp": (
            "namespace { int twice(int x) { return x + x; } }\n"
            "int entry(int x) { return twice(x); }\n",
            False,
        ),
        "inline_avx2.cpp": (
            "inline int twice(int x) { return x + x; }\nint (*entry())(int) { return twice; }\n",
            True,
        ),
        "template_avx512.cpp": (
            "template <class T> T twice(T x) { return x + x; }\n"
            "int (*entry())(int) { return twice<int>; }\n",
            True,
        ),
        "variable_amx.cpp": ("inline int counter;\nint* entry() { return &counter; }\n", True),
    }
    compiler = shutil.which("g++") or shutil.which("c++") or sys.exit("error: no C++ compiler")
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp) / "kernels"
        folder.mkdir()
        for name, (text, bad) in samples.items():
            source, target = folder / name, folder / f"{name}.o"
            source.write_text(text, encoding="utf-8")
            subprocess.run(
                [compiler, "-std=c++20", "-O1", "-c", str(source), "-o", str(target)], check=True
            )
            if not ISA_OBJECT.search(str(target)):
                print(f"self-test: {name} is not taken for an ISA file", file=sys.stderr)
                return 1
            if bool(leaks([target])) != bad:
                print(f"self-test: {name} was judged wrongly", file=sys.stderr)
                return 1
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1])
    objects = sorted(p for p in build.rglob("*.o") if ISA_OBJECT.search(p.as_posix()))
    if not objects:
        print(f"{build}: no object of an ISA file found; build first", file=sys.stderr)
        return 1
    faults = leaks(objects)
    for fault in faults:
        print(f"weak symbol in {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
