#!/usr/bin/env python3
"""Runs the cases of a .test file against the wok program; no network, no model, no terminal.

A file holds cases; each begins with a line "--- name" and has lines of these forms:

    run: ARGS           arguments of wok, split as a shell would; may come several times
    env: NAME=VALUE     for the runs after it
    write: PATH         a file below the case's folder, made of the "| " lines that follow
    script: PATH        the same, and executable
    stdin: TEXT         what the next run reads (it gets an empty pipe otherwise)
    exit: N             expected exit code of the last run (default 0)
    stdout~ REGEX       must be found in its output
    stderr~ REGEX
    stdout! REGEX       must not be found
    stderr! REGEX

{dir} is the case's own empty folder, which is also HOME. Every output must be free of crashes.
"""

import os
import pathlib
import re
import shlex
import stat
import subprocess
import sys
import tempfile

TIMEOUT_S = 120


class Case:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []


def read_cases(path: pathlib.Path) -> list[Case]:
    cases: list[Case] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("--- "):
            cases.append(Case(line[4:].strip()))
        elif cases and line.strip() and not line.startswith("#"):
            cases[-1].lines.append(line)
    return cases


class Runner:
    def __init__(self, program: str, folder: str) -> None:
        self.program = program
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8"}
        # The sanitizers' options and where their reports go are the outer world's business.
        self.env |= {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        self.stdin = ""
        self.done: subprocess.CompletedProcess | None = None
        self.expected_exit = 0
        self.faults: list[str] = []
        self.target: pathlib.Path | None = None

    def fault(self, text: str) -> None:
        assert self.done is not None
        self.faults.append(
            f"{text}\n    exit {self.done.returncode}\n    stdout: {self.done.stdout!r}\n"
            f"    stderr: {self.done.stderr!r}"
        )

    def check_exit(self) -> None:
        if self.done is not None and self.done.returncode != self.expected_exit:
            self.fault(f"expected exit code {self.expected_exit}")
        self.expected_exit = 0

    def line(self, line: str) -> None:
        line = line.replace("{dir}", self.folder)
        if line.startswith("| ") or line == "|":
            assert self.target is not None, "a '| ' line follows write: or script:"
            with self.target.open("a", encoding="utf-8") as file:
                file.write(line[2:] + "\n")
            return
        match = re.match(r"(\w+)([:~!]) ?(.*)$", line)
        if not match:
            raise SystemExit(f"not understood: {line}")
        word, mark, rest = match.groups()
        if mark == ":":
            getattr(self, f"do_{word}")(rest)
            return
        assert self.done is not None, "a check comes after run:"
        text = getattr(self.done, word)
        found = re.search(rest, text, re.MULTILINE) is not None
        if found != (mark == "~"):
            self.fault(f"{word}: expected {'' if mark == '~' else 'no '}match of {rest!r}")

    def do_run(self, arguments: str) -> None:
        self.check_exit()
        self.done = subprocess.run(
            [self.program, *shlex.split(arguments)], input=self.stdin, capture_output=True,
            text=True, env=self.env, cwd=self.folder, timeout=TIMEOUT_S, check=False,
        )
        self.stdin = ""
        if self.done.returncode < 0 or "Sanitizer" in self.done.stderr:
            self.fault("it crashed")

    def do_env(self, text: str) -> None:
        name, value = text.split("=", 1)
        self.env[name] = value

    def do_write(self, path: str) -> None:
        self.target = pathlib.Path(self.folder) / path
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.write_text("", encoding="utf-8")

    def do_script(self, path: str) -> None:
        self.do_write(path)
        assert self.target is not None
        self.target.chmod(self.target.stat().st_mode | stat.S_IXUSR)

    def do_stdin(self, text: str) -> None:
        self.stdin = text

    def do_exit(self, code: str) -> None:
        self.expected_exit = int(code)


def main() -> int:
    program, path = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    cases = read_cases(path)
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(program, folder)
            for line in case.lines:
                runner.line(line)
            runner.check_exit()
            if runner.done is None:
                runner.faults.append("the case runs nothing")
        for fault in runner.faults:
            print(f"{path.name}: {case.name}: {fault}")
        failed += bool(runner.faults)
    print(f"{path.name}: {len(cases) - failed} of {len(cases)} cases passed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
