"""What is measured: the rows of the comparison, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Test:
    """`pp`: one sequence's prompt of `tokens`; `tg`: so many steps of `batch` sequences together.

    `depth` positions of each sequence are in the cache beforehand, and no time is counted for them.
    """

    kind: str
    tokens: int
    depth: int = 0
    batch: int = 1

    @property
    def name(self) -> str:
        return f"{self.kind}{self.tokens}"

    @property
    def counted(self) -> int:
        """Tokens that the speed is counted in."""
        return self.tokens * self.batch


def turns(prompt: int, steps: int, batches: list[int], depths: list[int]) -> list[list[Test]]:
    """One list a depth: what a program measures before it is the next one's turn. Many sequences
    decode together at depth 0 only: to fill the caches of 32 would take longer than all else."""
    out = []
    for depth in depths:
        wanted = batches if depth == 0 else [1]
        turn = [Test("pp", prompt, depth)] if prompt else []
        out.append(turn + [Test("tg", steps, depth, batch) for batch in wanted])
    return out


def token(i: int, sequence: int, vocabulary: int) -> int:
    """Any token will do; different ones, so that no program finds a shared prefix."""
    return (i * 7919 + sequence * 31 + 13) % vocabulary
