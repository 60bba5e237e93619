"""Which algorithm of `all_reduce` is the fastest, by ranks and bytes.

With bandwidth B of a link in one direction, n ranks and S bytes: lines cost a + 2 (n - 1) S / B, one shot
b + (n - 1) S / B, two shots c + 2 (n - 1) S / (n B), where a < b < c are 4, 7 and 10 microseconds or so: one trip
without a fence, one with, and two. The row of two ranks is measured on two H200
(`bench/results/all_reduce-h200-2026-11-29.json`); the others follow from the model with B = 400 GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHMS = ("lamport", "one_shot", "two_shot", "nccl")
UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Thresholds:
    """Up to how many bytes each is taken; beyond, two shots, or NCCL where sums may depend on its order."""

    lamport: int
    one_shot: int
    two_shot: int


TABLE: dict[int, Thresholds] = {
    1: Thresholds(0, UNLIMITED, UNLIMITED),
    2: Thresholds(1 << 20, 1 << 20, UNLIMITED),
    3: Thresholds(1 << 19, 1 << 20, 1 << 28),
    4: Thresholds(1 << 18, 1 << 19, 1 << 28),
}
"""By the number of ranks; more than there are have the last row's sizes, divided by the ranks that are more."""


def thresholds(world: int) -> Thresholds:
    """The row of the table for so many ranks."""
    if world in TABLE:
        return TABLE[world]
    last = max(TABLE)
    row = TABLE[last]
    return Thresholds(row.lamport * last // world, row.one_shot * last // world, row.two_shot)


def choose(world: int, nbytes: int, line_part: int, deterministic: bool, nccl: bool) -> str:
    """The algorithm for `nbytes` bytes. `line_part`: what fits into lines; `nccl`: whether it is there."""
    row = thresholds(world)
    if nbytes <= min(row.lamport, line_part):
        return "lamport"
    if nbytes <= row.one_shot:
        return "one_shot"
    return "nccl" if nccl and not deterministic and nbytes > row.two_shot else "two_shot"
