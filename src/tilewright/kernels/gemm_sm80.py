"""The matrix product D = A·B on the tensor cores of sm_80 and up, by `mma.sync`.

A block computes a tile of D. Tiles of A and B along K come to shared memory by `cp.async`, `stages` of them at a time,
and from there to registers by `ldmatrix`, one step of K ahead of the products:

    global memory --cp.async--> stage | stage | stage | stage --ldmatrix--> registers x 2 --mma.sync--> sums
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_operands import ALIGNMENT, Feed
from tilewright.kernels.gemm_results import store_tile


@cute.jit
def place_of(block: cute.Integer, tiles_m: cute.Integer, tiles_n: cute.Integer, group: cutlass.Constexpr) -> Any:
    """(m, n, l) of a block's tile: `group` rows of tiles are gone through before the next ones."""
    batch, tile = block // (tiles_m * tiles_n), block % (tiles_m * tiles_n)
    first = tile // (group * tiles_n) * group
    height = min(tiles_m - first, group)
    inside = tile % (group * tiles_n)
    return first + inside % height, inside // height, batch


@cute.kernel
def gemm_sm80_kernel(d: cute.Tensor, a: cute.Tensor, b: cute.Tensor, plan: cutlass.Constexpr) -> None:
    """One block computes one tile of d (M, N, L) from a (M, K, L) and b (N, K, L)."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    m, n, k = plan.tile
    tiles_m, tiles_n = cute.ceil_div(d.shape[0], m), cute.ceil_div(d.shape[1], n)
    row, column, batch = place_of(block, tiles_m, tiles_n, plan.group)
    steps = cute.ceil_div(a.shape[1], k)

    memory = cutlass.utils.SmemAllocator().allocate(plan.shared_bytes(d.element_type), ALIGNMENT)
    shared_a = plan.a.shared(memory, m, k, plan.stages)
    shared_b = plan.b.shared(memory + plan.a.shared_bytes(m, k, plan.stages), n, k, plan.stages)
    feed_a = Feed(plan.a, a[None, None, batch], (m, k), row, shared_a, plan.threads)
    feed_b = Feed(plan.b, b[None, None, batch], (n, k), column, shared_b, plan.threads)
    for stage in cutlass.range_constexpr(plan.stages - 1):
        if stage < steps:
            if cutlass.const_expr(stage == 0):
                feed_a.load_first(0, 0)
                feed_b.load_first(0, 0)
            else:
                feed_a.load(stage, stage)
                feed_b.load(stage, stage)
        cute.arch.cp_async_commit_group()

    tiled = plan.tiled_mma()
    mine = tiled.get_slice(thread)
    left = tiled.make_fragment_A(mine.partition_A(shared_a)[None, None, None, 0])
    right = tiled.make_fragment_B(mine.partition_B(shared_b)[None, None, None, 0])
    sums = tiled.make_fragment_C(tiled.partition_shape_C((m, n)))
    sums.fill(0)
    read_a, read_b = cute.make_tiled_copy_A(plan.a.reading(), tiled), cute.make_tiled_copy_B(plan.b.reading(), tiled)
    slice_a, slice_b = read_a.get_slice(thread), read_b.get_slice(thread)
    from_a, from_b = slice_a.partition_S(shared_a), slice_b.partition_S(shared_b)
    into_a, into_b = slice_a.retile(left), slice_b.retile(right)

    parts = cute.size(left, mode=[2])
    reading, writing = cutlass.Int32(0), cutlass.Int32(plan.stages - 1)
    stage_a, stage_b = from_a[None, None, None, reading], from_b[None, None, None, reading]
    cute.arch.cp_async_wait_group(plan.stages - 2)
    cute.arch.sync_threads()
    cute.copy(read_a, stage_a[None, None, 0], into_a[None, None, 0])
    cute.copy(read_b, stage_b[None, None, 0], into_b[None, None, 0])
    for step in cutlass.range(steps):
        for part in cutlass.range_constexpr(parts):
            if cutlass.const_expr(part == parts - 1):
                stage_a, stage_b = from_a[None, None, None, reading], from_b[None, None, None, reading]
                cute.arch.cp_async_wait_group(plan.stages - 2)
                cute.arch.sync_threads()
            ahead = (part + 1) % parts
            cute.copy(read_a, stage_a[None, None, ahead], into_a[None, None, ahead])
            cute.copy(read_b, stage_b[None, None, ahead], into_b[None, None, ahead])
            if cutlass.const_expr(part == 0):
                if step + plan.stages - 1 < steps:
                    feed_a.load(step + plan.stages - 1, writing)
                    feed_b.load(step + plan.stages - 1, writing)
                cute.arch.cp_async_commit_group()
                writing = reading
                reading = reading + 1
                if reading == plan.stages:
                    reading = cutlass.Int32(0)
            cute.gemm(tiled, sums, left[None, None, part], right[None, None, part], sums)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    results = cute.make_fragment_like(sums, d.element_type)
    results.store(sums.load().to(d.element_type))
    store_tile(d[None, None, batch], results, mine, (row, column), memory, plan)


@cute.jit
def launch_gemm_sm80(d: cute.Tensor, a: cute.Tensor, b: cute.Tensor, plan: cutlass.Constexpr) -> None:
    """d (M, N, L) = a (M, K, L) · b (N, K, L)."""
    tiles = cute.ceil_div(d.shape[0], plan.tile[0]) * cute.ceil_div(d.shape[1], plan.tile[1]) * d.shape[2]
    gemm_sm80_kernel(d, a, b, plan).launch(grid=(tiles, 1, 1), block=(plan.threads, 1, 1))
