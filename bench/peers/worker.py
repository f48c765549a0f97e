"""A peer in a process of its own: it loads a file once and measures what it is asked to.

Requests and answers are JSON lines on stdin and stdout. What a library prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import typing
from dataclasses import asdict

from tests import Test

LOG_TAIL_BYTES = 4000


class Peer(typing.Protocol):
    """What a peer's file defines; raises what its library raises."""

    def versions(self) -> str: ...

    def measure(self, test: Test) -> float:
        """Seconds of the test's own tokens."""


def serve(load: typing.Callable[[str, int, int], Peer]) -> None:
    """The peer's side. Arguments: the file, threads, the most sequences at once."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(**fields: object) -> None:
        answers.write(json.dumps(fields) + "\n")

    try:
        peer = load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
        answer(versions=peer.versions())
    except Exception as error:  # Whatever a library throws is a result to list.
        answer(error=str(error))
        return
    for line in sys.stdin:
        test = Test(**json.loads(line))
        try:
            answer(tokens_per_s=test.counted / peer.measure(test))
        except Exception as error:
            answer(error=str(error))


class PeerError(Exception):
    """A message for the table: one line, without a path."""


class Worker:
    """The asking side. Raises PeerError when the peer cannot load the file or dies."""

    def __init__(self, script: str, path: str, threads: int, sequences: int, log: str) -> None:
        self.log = log
        with open(log, "wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, script, path, str(threads), str(sequences)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.versions = self._read()["versions"]

    def measure(self, test: Test) -> float:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(asdict(test)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # _read() says why.
        return self._read()["tokens_per_s"]

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        self.process.wait()

    def _read(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            with open(self.log, errors="replace") as log:
                tail = log.read()[-LOG_TAIL_BYTES:]
            raise PeerError(f"ended with code {code}: {last_line(tail)}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(last_line(answer["error"]))
        return answer


def last_line(message: str) -> str:
    """The end of a message, which says what, without folders; before it come places in a source."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return re.sub(r"/(?:[^\s/'\"]+/)+", "", lines[-1]) if lines else "no message"
