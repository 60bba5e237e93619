"""Products along K that several blocks share: their sums meet in a workspace.

Each of the `splits` teams of threads of a tile, one of each block, writes its sums and then counts itself. The one that
finds all others counted adds the sums, in the order of the blocks, so that results do not depend on which came last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute

_VECTOR = 4
_AT_ONCE = 32  # sums of a thread that are read before they are added


@dataclass(frozen=True)
class Team:
    """Threads of a block that hold the sums of a tile.

    Attributes:
        thread: the number of the thread among them.
        threads: how many they are.
        sync: waits for all of them.
    """

    thread: Any
    threads: int
    sync: Callable[[], None]

    @classmethod
    def of_block(cls, threads: int) -> Team:
        """All threads of the block."""
        return cls(cute.arch.thread_idx()[0], threads, cute.arch.sync_threads)


def workspace_elements(tiles: int, splits: int, tile: tuple[int, int, int]) -> int:
    """Elements of the workspace of so many tiles."""
    return tiles * splits * tile[0] * tile[1]


@cute.jit
def add_over_blocks(
    sums: cute.Tensor, workspace: cute.Tensor, counters: cute.Tensor, tile: cute.Integer, split: cute.Integer,
    seen: cute.Tensor, team: Any, splits: cutlass.Constexpr,
) -> cute.Boolean:  # fmt: skip
    """Whether this team came last of the `splits` of `tile`; its `sums` then are those of all.

    `workspace` and `counters`, which are 0 before and after, lie in global memory; `seen`, an Int32 in shared memory,
    is free.
    """
    held = cute.size(sums)
    layout = cute.make_layout((_VECTOR, held // _VECTOR, team.threads), stride=(1, _VECTOR * team.threads, _VECTOR))
    flat = cute.make_tensor(sums.iterator, cute.make_layout(held))
    first, sums_of_tile = cute.Int64(tile) * splits, held * team.threads
    mine = cute.make_tensor(workspace.iterator + (first + split) * sums_of_tile, layout)[None, None, team.thread]
    cute.autovec_copy(flat, mine)
    team.sync()
    if team.thread == 0:
        cute.arch.fence_acq_rel_gpu()
        seen[0] = cute.arch.atomic_add(counters.iterator + tile, cute.Int32(1), sem="acq_rel", scope="gpu")
    team.sync()
    last = seen[0] == splits - 1
    team.sync()  # `seen` is free again
    if last:
        cute.arch.fence_acq_rel_gpu()
        flat.fill(0)
        at_once = min(held, _AT_ONCE)
        part = cute.make_rmem_tensor(at_once, sums.element_type)
        for block in cutlass.range(splits):
            of_block = cute.make_tensor(workspace.iterator + (first + block) * sums_of_tile, layout)
            for number in cutlass.range_constexpr(held // at_once):
                some = cute.local_tile(of_block[None, None, team.thread], (_VECTOR, at_once // _VECTOR), (0, number))
                cute.autovec_copy(some, part)
                mine_of_all = cute.local_tile(flat, (at_once,), (number,))
                mine_of_all.store(mine_of_all.load() + part.load())
        if team.thread == 0:
            counters[tile] = 0
    return last
