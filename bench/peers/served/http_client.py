"""A client of OpenAI's chat API that costs next to nothing: one thread, plain sockets, and of each
event only a look at its bytes, so that on a small machine it does not disturb what it measures."""

from __future__ import annotations

import json
import re
import selectors
import socket
import time
import urllib.request
from dataclasses import dataclass

from served.loads import Request
from served.runner import Stream

RECEIVE_BYTES = 1 << 16
# A piece of text; the first event of some servers brings an empty one, and none is a token.
CONTENT = re.compile(rb'"content":\s*"(?!")')


@dataclass
class Connection:
    socket: socket.socket
    stream: Stream
    rest: bytes = b""


class Client:
    """See Transport."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.selector = selectors.DefaultSelector()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models") as reply:
            self.model = json.load(reply)["data"][0]["id"]

    def submit(self, stream: Stream, request: Request) -> None:
        messages = [{"role": "user", "content": request.user}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body = json.dumps({
            "model": self.model, "messages": messages, "seed": request.seed, "temperature": 1.0,
            "max_tokens": request.output_tokens, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}}).encode()
        connected = socket.create_connection(("127.0.0.1", self.port))
        connected.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                          b"Connection: close\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        connected.setblocking(False)
        self.selector.register(connected, selectors.EVENT_READ, Connection(connected, stream))

    def wait(self, timeout_s: float) -> list[Stream]:
        ended = []
        for key, _ in self.selector.select(timeout_s):
            connection = key.data
            try:
                data = connection.socket.recv(RECEIVE_BYTES)
            except ConnectionError as error:
                data, connection.stream.error = b"", str(error)
            _take(connection, data, time.perf_counter())
            if not data:
                self._close(connection)
                if not connection.stream.done:
                    connection.stream.error = connection.stream.error or _message(connection.rest)
                ended.append(connection.stream)
        return ended

    def abort(self) -> None:
        for key in list(self.selector.get_map().values()):
            self._close(key.data)

    def _close(self, connection: Connection) -> None:
        self.selector.unregister(connection.socket)
        connection.socket.close()


def _take(connection: Connection, data: bytes, now: float) -> None:
    """Counts the events of what came. Lines of chunk sizes stand between them."""
    stream = connection.stream
    *lines, connection.rest = (connection.rest + data).split(b"\n")
    for line in lines:
        if line.startswith(b"data: [DONE]"):
            stream.done = True
        elif line.startswith(b"data: {"):
            if CONTENT.search(line):
                stream.times_s.append(now)
            elif b'"usage":{' in line:
                usage = json.loads(line[6:])["usage"]
                stream.prompt_tokens = usage["prompt_tokens"]
                stream.output_tokens = usage["completion_tokens"]
        elif line.startswith((b"error: ", b"HTTP/1.1 4", b"HTTP/1.1 5")):
            stream.error = line.decode(errors="replace").strip()


def _message(rest: bytes) -> str:
    return f"the connection ended early: {rest[-200:].decode(errors='replace').strip()!r}"
