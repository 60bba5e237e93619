"""Which algorithm of `all_reduce` is the fastest, by ranks and bytes.

With bandwidth B of a link in one direction, n ranks and S bytes: `lamport` takes a + 2 (n - 1) S / B, `one_shot`
b + (n - 1) S / B, `two_shot` c + 2 (n - 1) S / (n B), where a < b < c are about 3, 4 and 6 microseconds on two H200:
one trip without a fence, one with a fence, and two. The row of two ranks is measured on these
(`bench/results/all_reduce-h200-2026-11-29.json`); the others follow from the model with B = 400 GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHMS = ("lamport", "one_shot", "two_shot", "nccl")
UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Thresholds:
    """The most bytes for which each algorithm is taken; beyond `two_shot`, NCCL where the order of sums may vary."""

    lamport: int
    one_shot: int
    two_shot: int


TABLE: dict[int, Thresholds] = {
    1: Thresholds(0, UNLIMITED, UNLIMITED),
    2: Thresholds(1 << 20, 1 << 22, UNLIMITED),
    3: Thresholds(1 << 19, 1 << 20, 1 << 28),
    4: Thresholds(1 << 18, 1 << 19, 1 << 28),
}
"""By the number of ranks. For more of them than the last row's, its sizes shrink in inverse proportion."""


def thresholds(world: int) -> Thresholds:
    """The row of the table for `world` ranks."""
    if world in TABLE:
        return TABLE[world]
    last = max(TABLE)
    row = TABLE[last]
    return Thresholds(row.lamport * last // world, row.one_shot * last // world, row.two_shot)


def choose(world: int, nbytes: int, line_part: int, deterministic: bool, nccl: bool) -> str:
    """The algorithm for a tensor of `nbytes` bytes.

    Args:
        world: the number of ranks.
        nbytes: the size of one rank's tensor.
        line_part: the bytes of data that the heap's lines hold for `lamport`.
        deterministic: the order of sums may not vary, so NCCL is out.
        nccl: whether there is NCCL.
    """
    row = thresholds(world)
    if nbytes <= min(row.lamport, line_part):
        return "lamport"
    if nbytes <= row.one_shot:
        return "one_shot"
    return "nccl" if nccl and not deterministic and nbytes > row.two_shot else "two_shot"
