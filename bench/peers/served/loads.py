"""The loads: who sends what and when. The same texts for every program."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

WORDS = ("river stone market window garden engine letter morning silver bridge forest signal "
         "paper winter orange planet mirror harbor candle thunder").split()
PROMPT_TOKENS, OUTPUT_TOKENS = 210, 64
SHARED_REQUESTS, SHARED_TOKENS, PROMPT_OF_SHARED_TOKENS = 64, 1960, 2000
STREAMS, STREAM_TOKENS = 4, 800
LONG_PROMPTS, LONG_TOKENS, LONG_EVERY_S = 4, 3980, 2.0
QUIET_S, SETTLE_S, TAIL_S = 12.0, 4.0, 0.5
DECODE_TOKENS = 256


@dataclass(frozen=True)
class Request:
    user: str
    output_tokens: int
    seed: int
    system: str = ""


@dataclass
class User:
    """Sends its requests one after the other, the first so many seconds after the load's begin."""

    requests: Iterator[Request]
    group: str = "user"
    begin_s: float = 0.0


@dataclass
class Load:
    users: list[User]
    # Ends with the last request; or, where a group is named, when the first token of each of the
    # group's requests has come, and a moment later.
    until: str = ""
    sequences: int = 16  # that a server must be able to run at once
    tokens_of_sequence: int = 512  # of the longest one
    warm: list[Request] = field(default_factory=list)  # sent at once beforehand, not measured


class Sizes:
    """Turns tokens of a prompt into words: a program's own tokenizer and template were asked for
    the tokens of a prompt of `few` words and of one of `many`."""

    FEW, MANY = 8, 208

    def __init__(self, few_tokens: int, many_tokens: int) -> None:
        self.per_word = (many_tokens - few_tokens) / (self.MANY - self.FEW)
        self.template = few_tokens - self.FEW * self.per_word

    def words(self, tokens: int) -> int:
        return max(1, round((tokens - self.template) / self.per_word))


def prose(words: int, seed: int) -> str:
    """Text that differs in every place for every seed."""
    pick = random.Random(seed)
    return " ".join(pick.choice(WORDS) for _ in range(words))


def make(name: str, seed: int, sizes: Sizes) -> Load:
    """`name`: users1, users4, …; shared; arriving; decode16, …. Another seed gives other texts, so
    that no round finds those of the one before in a cache."""
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz")
    kind, count = name.removesuffix(digits), int(digits or 0)
    if kind not in MAKERS or (count > 0) != (kind in ("users", "decode")):
        raise ValueError(f"no load {name!r}: usersN, shared, arriving or decodeN, N > 0")
    seed *= 1_000_000
    load = MAKERS[kind](count, seed, sizes)
    warm_words = sizes.words(PROMPT_TOKENS)
    load.warm = [Request(prose(warm_words, seed + 900_000 + i), 8, i)
                 for i in range(min(4, load.sequences))]
    return load


def _users(count: int, seed: int, sizes: Sizes) -> Load:
    """Short chats, each user's next when the last is answered."""
    words = sizes.words(PROMPT_TOKENS)
    queue = (Request(prose(words, seed + i), OUTPUT_TOKENS, i) for i in range(max(8, 3 * count)))
    return Load([User(queue) for _ in range(count)])


def _shared(_count: int, seed: int, sizes: Sizes) -> Load:
    """Questions about one long text: all but the end of each prompt is the same."""
    # A question's words come on top of the template's, which the system prompt is counted with.
    system = prose(sizes.words(SHARED_TOKENS), seed)
    rest = round((PROMPT_OF_SHARED_TOKENS - SHARED_TOKENS) / sizes.per_word)
    queue = (Request(prose(rest, seed + 1 + i), 16, i, system) for i in range(SHARED_REQUESTS))
    return Load([User(queue) for _ in range(16)], tokens_of_sequence=2560)


def _arriving(_count: int, seed: int, sizes: Sizes) -> Load:
    """Long answers, undisturbed for a while; then long prompts arrive."""
    def chats(number: int) -> Iterator[Request]:
        for i in itertools.count():
            # The first ones are shorter: the streams do not end together, and their mean depth is
            # the same from the begin to the end.
            tokens = STREAM_TOKENS if i else STREAM_TOKENS * (number + 1) // STREAMS
            yield Request(f"Tell a story about a {WORDS[number]}, number {seed + i}.", tokens,
                          seed + 100 * number + i)

    words = sizes.words(LONG_TOKENS)
    long = [User(iter([Request(prose(words, seed + 500 + i), 4, i)]), "long",
                 SETTLE_S + QUIET_S + i * LONG_EVERY_S) for i in range(LONG_PROMPTS)]
    return Load([User(chats(i), "stream") for i in range(STREAMS)] + long, until="long",
                sequences=STREAMS + LONG_PROMPTS, tokens_of_sequence=5120)


def _decode(count: int, seed: int, sizes: Sizes) -> Load:
    """Longer answers to all at once: for the steps in which every user gets a token."""
    words = sizes.words(PROMPT_TOKENS)
    return Load([User(iter([Request(prose(words, seed + i), DECODE_TOKENS, i)]))
                 for i in range(count)])


MAKERS = {"users": _users, "shared": _shared, "arriving": _arriving, "decode": _decode}
