"""Products along K that several blocks share: their sums meet in a workspace.

Each of the `splits` blocks of a tile writes its sums and then counts itself. The one that finds all others counted adds
the sums, in the order of the blocks, so that results do not depend on which block came last.
"""

from __future__ import annotations

import tilewright as cutlass
import tilewright.cute as cute

_VECTOR = 4


def workspace_elements(tiles: int, splits: int, tile: tuple[int, int, int]) -> int:
    """Elements of the workspace of so many tiles."""
    return tiles * splits * tile[0] * tile[1]


@cute.jit
def add_over_blocks(
    sums: cute.Tensor, workspace: cute.Tensor, counters: cute.Tensor, tile: cute.Integer, split: cute.Integer,
    memory: cute.Pointer, plan: cutlass.Constexpr,
) -> cute.Boolean:  # fmt: skip
    """Whether this block came last of those of `tile`; its `sums` then are those of all blocks.

    `workspace` and `counters`, which are 0 before and after, lie in global memory, and shared `memory` is free.
    """
    thread, _, _ = cute.arch.thread_idx()
    held = cute.size(sums)
    layout = cute.make_layout((_VECTOR, held // _VECTOR, plan.threads), stride=(1, _VECTOR * plan.threads, _VECTOR))
    places = cute.make_layout(held)
    flat = cute.make_tensor(sums.iterator, places)
    first = cute.Int64(tile) * plan.splits
    mine = cute.make_tensor(workspace.iterator + (first + split) * (held * plan.threads), layout)[None, None, thread]
    cute.autovec_copy(flat, mine)
    cute.arch.sync_threads()
    seen = cute.make_tensor(cute.recast_ptr(memory, dtype=cute.Int32), cute.make_layout(1))
    if thread == 0:
        cute.arch.fence_acq_rel_gpu()
        seen[0] = cute.arch.atomic_add(counters.iterator + tile, cute.Int32(1), sem="acq_rel", scope="gpu")
    cute.arch.sync_threads()
    last = seen[0] == plan.splits - 1
    cute.arch.sync_threads()  # `memory` is free again
    if last:
        cute.arch.fence_acq_rel_gpu()
        flat.fill(0)
        part = cute.make_rmem_tensor(held, sums.element_type)
        for block in cutlass.range(plan.splits):
            from_block = cute.make_tensor(workspace.iterator + (first + block) * (held * plan.threads), layout)
            cute.autovec_copy(from_block[None, None, thread], part)
            flat.store(flat.load() + part.load())
        if thread == 0:
            counters[tile] = 0
    return last
