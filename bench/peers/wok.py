"""wok's side: `wok bench model`, which measures a forward pass without HTTP and beside the roof."""

from __future__ import annotations

import json
import os
import subprocess

from tests import Test
from worker import PeerError, last_line


def measure(binary: str, path: str, threads: int, turn: list[Test]) -> dict[Test, dict]:
    """Each test's row of wok's report. Raises PeerError when wok refuses."""
    prompts = {test.tokens for test in turn if test.kind == "pp"} or {0}
    steps = {test.tokens for test in turn if test.kind == "tg"} or {0}
    batches = sorted({test.batch for test in turn})
    done = subprocess.run(
        [binary, "bench", "model", path, "--json", "--repetitions", "1",
         "--threads", str(threads), "--depth", str(turn[0].depth),
         "--pp", ",".join(map(str, prompts)), "--tg", ",".join(map(str, steps)),
         "--batch", ",".join(map(str, batches))],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise PeerError(last_line(done.stderr))
    rows = {(row["test"], row["depth"], row["batch"]): row
            for row in json.loads(done.stdout)["rows"]}
    return {test: rows[test.name, test.depth, test.batch] for test in turn}


def kernels(binary: str) -> str:
    """Which of its kernels it chose on this machine."""
    done = subprocess.run([binary, "version", "--cpu"], capture_output=True, text=True, check=True)
    return next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("kernels"))


def file_of(binary: str, name: str) -> str:
    """The file of a model in wok's store, pulled when it is not there yet."""
    for attempt in ("show", "pull", "show"):
        done = subprocess.run([binary, attempt, name], capture_output=True, text=True)
        if attempt == "show" and done.returncode == 0:
            return dict(line.split(None, 1) for line in done.stdout.splitlines()
                        if line.startswith("file "))["file"]
    raise SystemExit(f"error: no model {name!r}: {last_line(done.stderr)}")


def source_commit(root: str) -> str:
    """The newest commit of the program's sources, which the binary is taken to be built from."""
    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", root, *args], capture_output=True,
                              text=True).stdout.strip()
    commit = git("log", "-1", "--format=%h", "--", "src", "cmake", "CMakeLists.txt") or "unknown"
    return commit + (" with changes" if git("status", "--porcelain", "--", "src") else "")


def default_binary(root: str) -> str:
    return os.path.join(root, "build", "release", "wok")
