"""Starts `wok serve` for a test and ends it again; standard library only."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading


class Server:
    """A wok server on a free loopback port. Use as a context manager: leaving it drains the server
    and demands exit code 0."""

    def __init__(self, wok: str, model: str, *flags: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [wok, "serve", model, "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.lines: list[str] = []
        self.url = ""
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"at (http://\S+)", line)
            if found:
                self.url = found.group(1)
                break
        if not self.url:
            raise RuntimeError("the server did not start:\n" + "".join(self.lines))
        # The log must be read on, or the server blocks on a full pipe.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].rstrip("/"))

    def kill(self) -> None:
        """As a crash or the kernel would: no chance to clean up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.reader.join(timeout=10)
        return code

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        code = self.stop()
        if kind is None and code != 0:
            raise AssertionError(f"the server ended with code {code}:\n" + "".join(self.lines[-20:]))
        if kind is not None:
            print("".join(self.lines[-20:]), file=sys.stderr)


def main() -> int:
    """server.py WOK MODEL [FLAGS] -- COMMAND...: runs COMMAND URL against a server."""
    split = sys.argv.index("--")
    wok, model, *flags = sys.argv[1:split]
    with Server(wok, model, *flags) as server:
        return subprocess.run([*sys.argv[split + 1 :], server.url], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
