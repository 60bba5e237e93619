"""What collectives cost: a model of few terms, in nanoseconds, for the choice of a scope and for remarks.

    warp      steps * shuffle                              steps = log2(lanes); one `redux` for integers of 32 bits
    block     warp + slots + barrier * barriers + again    write and read of shared memory; every warp folds the slots
    cluster   warp + exchange + again                      st.async, mbarrier, wait
    grid      2 * block + barrier through the L2 cache

The terms fit the medians of chains of each primitive on an H200 (`python -m bench communication`; the figures are in
docs/communication.md, "Costs") within a fifth, except for clusters of blocks of 1024 threads: 8 of them take 1.6 (push)
and 2.4 times (pull) as long. Several values share barriers and exchanges; each has shuffles of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHUFFLE, REDUX = 12.8, 17.0
FURTHER_WORD = 0.35  # of a shuffle: those of several words overlap
SLOTS, BLOCK_BARRIER = 22.0, 5.5  # a barrier: for each doubling of the warps
EXCHANGE, EXCHANGE_BLOCK = 140.0, 10.0  # st.async and its mbarrier, and for each block
CLUSTER_BARRIER, REMOTE_READ = 165.0, 188.0
GRID_BARRIER, GRID_READ = 930.0, 300.0
WARP = 32
READ_AT_ONCE, READ_AGAIN = 8, 4  # slots that every thread reads, as `lib.comm.block` has them


@dataclass(frozen=True)
class Cost:
    """What one collective takes: the way it goes, barriers of a block, cluster or grid, bytes that a block sends."""

    algorithm: str
    barriers: int
    bytes: int
    nanoseconds: float


def cost(
    kind: str, scope: str, threads: int, blocks: int, widths: tuple[int, ...], *, integers: bool, mode: str = "auto",
    repeats: bool = False,
) -> Cost:  # fmt: skip
    """The cost of a collective.

    Args:
        kind: allreduce, broadcast or scan.
        scope: thread, warp, block, cluster or grid.
        threads: of a block, or of the group within it.
        blocks: of the cluster or grid.
        widths: bits of each value.
        integers: all values are integers of at most 32 bits.
        mode: push or pull, for a cluster.
        repeats: in a loop, where memory is used again.
    """
    if scope == "thread" or threads * blocks == 1:
        return Cost("none", 0, 0, 0.0)
    if scope == "warp":
        return _warp(kind, min(threads, WARP), widths, integers)
    if scope == "block":
        return _block(kind, threads, widths, integers, repeats)
    size = sum(max(width, WARP) // 8 for width in widths)
    inner = _block(kind, threads, widths, integers, repeats)
    if scope == "cluster":
        if mode == "pull":
            time = inner.nanoseconds + 2 * CLUSTER_BARRIER + REMOTE_READ
            return Cost("pull", inner.barriers + 2, size * blocks, time)
        warps = -(-threads // WARP)
        by_warps = kind == "allreduce" and threads % WARP == 0 and warps * blocks <= 4 * WARP
        first = _warp(kind, WARP, widths, integers).nanoseconds if by_warps else inner.nanoseconds
        barriers = 1 if by_warps else 1 + inner.barriers
        boxes = blocks * (warps if by_warps else 1)
        again = 0.0 if boxes <= 2 * READ_AT_ONCE else _warp(kind, min(boxes, WARP), widths, integers).nanoseconds
        time = first + EXCHANGE + EXCHANGE_BLOCK * blocks + again
        return Cost("push", barriers, size * boxes, time)
    return Cost("workspace", 2 * inner.barriers + 3, size, 2 * inner.nanoseconds + GRID_BARRIER + GRID_READ)


def _warp(kind: str, lanes: int, widths: tuple[int, ...], integers: bool) -> Cost:
    if kind == "broadcast":
        return Cost("shuffle", 0, 0, SHUFFLE * _words(widths))
    if integers and lanes == WARP and kind == "allreduce":
        return Cost("redux", 0, 0, REDUX * len(widths))
    steps = max(lanes - 1, 1).bit_length()
    time = SHUFFLE * steps * (1 + (_words(widths) - 1) * FURTHER_WORD)
    return Cost("butterfly" if kind == "allreduce" else "shift", 0, 0, time)


def _block(kind: str, threads: int, widths: tuple[int, ...], integers: bool, repeats: bool) -> Cost:
    warps = -(-threads // WARP)
    if warps == 1:
        return _warp(kind, threads, widths, integers)
    by_first = warps > (READ_AGAIN if repeats else READ_AT_ONCE) and (repeats or threads % WARP > 0)
    few = warps <= READ_AT_ONCE and not by_first
    first, again = (_warp(kind, lanes, widths, integers).nanoseconds for lanes in (WARP, warps))
    barriers = 2 if repeats or by_first else 1
    size = sum(max(width, WARP) // 8 for width in widths) * (1 if kind == "broadcast" else warps)
    folds = 0.0 if kind == "broadcast" else first + (0.0 if few else again)
    slots = SLOTS * (2 if by_first and kind != "broadcast" else 1)
    return Cost("slots", barriers, size, folds + slots + barriers * BLOCK_BARRIER * math.log2(warps))


def _words(widths: tuple[int, ...]) -> int:
    return sum(-(-width // WARP) for width in widths)
