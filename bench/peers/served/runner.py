"""Runs a load on a program and keeps the times of what comes back."""

from __future__ import annotations

import time
import typing
from dataclasses import dataclass, field

from served import loads
from served.loads import Load, Request, Sizes, User


@dataclass(eq=False)
class Stream:
    """One request's answer; times are seconds since the load's begin."""

    group: str
    sent_s: float
    times_s: list[float] = field(default_factory=list)  # of each piece of text, or token
    prompt_tokens: int = 0  # 0 for a stream that did not end
    output_tokens: int = 0
    done: bool = False
    error: str = ""


class Transport(typing.Protocol):
    """A program that answers requests. Times are time.perf_counter()'s."""

    def submit(self, stream: Stream, request: Request) -> None:
        """Begins a request; its pieces' times are appended to `stream` by wait()."""

    def wait(self, timeout_s: float) -> list[Stream]:
        """Waits for something to come, at most so long; returns the streams that ended."""

    def abort(self) -> None:
        """Ends all requests."""


def run(transport: Transport, load: Load, limit_s: float) -> list[Stream]:
    """All streams in the order they were sent. After `limit_s` what has not ended is aborted."""
    begin = time.perf_counter()
    waiting = sorted(load.users, key=lambda user: user.begin_s)
    expected = sum(user.group == load.until for user in load.users)
    owners: dict[int, User] = {}
    streams: list[Stream] = []
    end_s = limit_s

    def send(user: User) -> None:
        request = next(user.requests, None)
        if request is not None:
            streams.append(Stream(user.group, time.perf_counter()))
            owners[id(streams[-1])] = user
            transport.submit(streams[-1], request)

    while (now_s := time.perf_counter() - begin) < end_s:
        while waiting and waiting[0].begin_s <= now_s:
            send(waiting.pop(0))
        until_s = min([end_s] + [user.begin_s for user in waiting[:1]])
        for stream in transport.wait(max(0.0, until_s - now_s)):
            send(owners.pop(id(stream)))
        if not owners and not waiting:
            break
        if load.until and end_s == limit_s:
            begun = sum(s.group == load.until and bool(s.times_s) for s in streams)
            if begun == expected:
                end_s = min(limit_s, time.perf_counter() - begin + loads.TAIL_S)
    transport.abort()
    for stream in streams:
        stream.sent_s -= begin
        stream.times_s = [when - begin for when in stream.times_s]
    return streams


def measure(transport: Transport, name: str, seed: int, limit_s: float
            ) -> tuple[list[Stream], float]:
    """The streams of a load, and the CPU seconds that this process took for it."""
    def tokens(words: int) -> int:
        probe = Request(loads.prose(words, seed + 7), 2, 0)
        stream = run(transport, Load([User(iter([probe]))]), limit_s)[0]
        if not stream.done or stream.error:
            raise RuntimeError(stream.error or "the first request has no answer")
        return stream.prompt_tokens

    load = loads.make(name, seed, Sizes(tokens(Sizes.FEW), tokens(Sizes.MANY)))
    run(transport, Load([User(iter([request])) for request in load.warm]), limit_s)
    cpu = time.process_time()
    streams = run(transport, load, limit_s)
    return streams, time.process_time() - cpu
