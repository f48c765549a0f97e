"""What a user feels, from the times of the streams of one run."""

from __future__ import annotations

import statistics

from served import loads
from served.runner import Stream


def quantile(values: list[float], q: float) -> float | None:
    """None without values."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else None


def gaps_ms(streams: list[Stream], begin_s: float, end_s: float) -> list[float]:
    """Times between two pieces of a stream that overlap the window: a stall that the window cuts
    counts in full."""
    return [1000 * (b - a) for stream in streams for a, b in zip(stream.times_s, stream.times_s[1:])
            if b >= begin_s and a < end_s]


def rate(streams: list[Stream], begin_s: float, end_s: float) -> float | None:
    """Pieces per second; a piece of text is a token, but for guesses that came true at once."""
    if end_s <= begin_s:
        return None
    return sum(begin_s <= t < end_s for s in streams for t in s.times_s) / (end_s - begin_s)


def of(load: str, streams: list[Stream]) -> dict[str, float | None]:
    """Figures by name; None for what has no value."""
    out = _arriving(streams) if load == "arriving" else _answers(streams)
    if load.startswith("decode"):
        out |= _decode(streams)
    out |= {"unfinished": sum(not s.done for s in streams if s.group != "stream"),
            "errors": sum(bool(s.error) for s in streams)}
    return out


def _itl(prefix: str, gaps: list[float]) -> dict[str, float | None]:
    return {f"{prefix}itl_p50_ms": quantile(gaps, 0.5), f"{prefix}itl_p99_ms": quantile(gaps, 0.99),
            f"{prefix}itl_max_ms": max(gaps, default=None)}


def _answers(streams: list[Stream]) -> dict[str, float | None]:
    begun = [s for s in streams if s.times_s]
    end_s = max((s.times_s[-1] for s in begun), default=0.0)
    ttft = [1000 * (s.times_s[0] - s.sent_s) for s in begun]
    done = [s for s in begun if s.done]
    # An answer that was cut has no count of its own.
    tokens = sum(s.output_tokens if s.done else len(s.times_s) for s in begun)
    return {
        "seconds": end_s, "requests": len(done),
        "prompt_tokens": statistics.median(s.prompt_tokens for s in done) if done else None,
        "output_tokens_per_s": tokens / end_s if end_s else None,
        "tokens_per_piece": _tokens_per_piece(done),
        "ttft_p50_ms": quantile(ttft, 0.5), "ttft_p99_ms": quantile(ttft, 0.99),
    } | _itl("", gaps_ms(begun, 0.0, end_s))


def _tokens_per_piece(done: list[Stream]) -> float | None:
    pieces = sum(len(s.times_s) for s in done)
    return sum(s.output_tokens for s in done) / pieces if pieces else None


def _arriving(streams: list[Stream]) -> dict[str, float | None]:
    chats = [s for s in streams if s.group == "stream"]
    long = [s for s in streams if s.group == "long"]
    arrival_s = loads.SETTLE_S + loads.QUIET_S
    last_s = max((s.times_s[-1] for s in streams if s.times_s), default=0.0)
    # Without a first token of each, the load ended at its limit.
    over = len(long) == loads.LONG_PROMPTS and all(s.times_s for s in long)
    end_s = max(s.times_s[0] for s in long) if over else last_s
    # A gap that lasts beyond the arrival belongs to the time after it.
    quiet = [1000 * (b - a) for s in chats for a, b in zip(s.times_s, s.times_s[1:])
             if a >= loads.SETTLE_S and b < arrival_s]
    busy = gaps_ms(chats, arrival_s, end_s)
    # A stream that never got a token again has no gap: the time it waits is one.
    if not over:
        busy += [1000 * (last_s - s.times_s[-1]) for s in chats if s.times_s and not s.done]
    undisturbed = quantile(quiet, 0.5)
    worst = quantile(busy, 0.99)
    out = {
        "seconds": end_s, "long_prompt_tokens": max((s.prompt_tokens for s in long), default=None),
        "quiet_tokens_per_s": rate(chats, loads.SETTLE_S, arrival_s),
        "busy_tokens_per_s": rate(chats, arrival_s, end_s),
        "tokens_per_piece": _tokens_per_piece([s for s in chats if s.done]),
        "busy_p99_over_quiet_p50": worst / undisturbed if worst and undisturbed else None,
    }
    out |= _itl("quiet_", quiet) | _itl("busy_", busy)
    for i in range(loads.LONG_PROMPTS):
        began = i < len(long) and long[i].times_s
        out[f"long{i + 1}_ttft_s"] = long[i].times_s[0] - long[i].sent_s if began else None
    return out


def _decode(streams: list[Stream]) -> dict[str, float | None]:
    """Of the time in which every user is past the prompt and none has ended."""
    if not all(s.times_s for s in streams):
        return {"decode_tokens_per_s": None}
    begin_s = max(s.times_s[0] for s in streams)
    end_s = min(s.times_s[-1] for s in streams)
    middle = [s.prompt_tokens + sum(t < (begin_s + end_s) / 2 for t in s.times_s) for s in streams]
    return {"decode_tokens_per_s": rate(streams, begin_s, end_s), "decode_s": end_s - begin_s,
            "depth": round(statistics.fmean(middle))}
