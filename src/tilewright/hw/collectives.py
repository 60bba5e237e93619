"""What collectives cost: a model of few terms, in nanoseconds, for the choice of a scope and for remarks.

    warp      steps * shuffle                              steps = log2(lanes); one `redux` for integers of 32 bits
    block     warp + slots + barrier * barriers + again    write and read of shared memory; every warp folds the slots
    cluster   warp + exchange + again                      st.async, mbarrier, wait
    grid      2 * block + barrier through the L2 cache

The terms are medians of chains of each primitive on one H200 at its boost clock (docs/communication.md, "Costs").
Several values share barriers and exchanges; each has shuffles of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHUFFLE, REDUX = 15.0, 12.0
SLOTS, BLOCK_BARRIER = 30.0, 12.0
EXCHANGE, CLUSTER_BARRIER, REMOTE_READ = 420.0, 190.0, 210.0
GRID_BARRIER = 1150.0
WARP = 32
READ_AT_ONCE = 8  # slots that every thread reads


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
        return Cost("push", barriers, size * blocks * (warps if by_warps else 1), first + EXCHANGE)
    return Cost("workspace", 2 * inner.barriers + 3, size, 2 * inner.nanoseconds + GRID_BARRIER)


def _warp(kind: str, lanes: int, widths: tuple[int, ...], integers: bool) -> Cost:
    if kind == "broadcast":
        return Cost("shuffle", 0, 0, SHUFFLE * _words(widths))
    if integers and lanes == WARP and kind == "allreduce":
        return Cost("redux", 0, 0, REDUX * len(widths))
    steps = max(lanes - 1, 1).bit_length()
    # Shuffles of several values overlap; what is left is about a quarter for each further one.
    time = SHUFFLE * steps * (1 + (_words(widths) - 1) / 4)
    return Cost("butterfly" if kind == "allreduce" else "shift", 0, 0, time)


def _block(kind: str, threads: int, widths: tuple[int, ...], integers: bool, repeats: bool) -> Cost:
    warps = -(-threads // WARP)
    if warps == 1:
        return _warp(kind, threads, widths, integers)
    first = _warp(kind, WARP, widths, integers)
    again = 0.0 if warps <= READ_AT_ONCE or kind == "broadcast" else _warp(kind, warps, widths, integers).nanoseconds
    barriers = 2 if repeats else 1
    own = 0.0 if kind == "broadcast" else first.nanoseconds
    size = sum(max(width, WARP) // 8 for width in widths) * (1 if kind == "broadcast" else warps)
    wait = BLOCK_BARRIER * (1 + math.log2(warps) / 2)
    return Cost("slots", barriers, size, own + SLOTS + barriers * wait + again)


def _words(widths: tuple[int, ...]) -> int:
    return sum(-(-width // WARP) for width in widths)
