"""The matrix product D = A·B on the tensor cores of sm_80 and up, by `mma.sync`.

A block computes a tile of D. Tiles of A and B along K come to shared memory by `cp.async`, `stages` of them at a time,
and from there to registers by `ldmatrix`, one step of K ahead of the products:

    global memory --cp.async--> stage | stage | stage | stage --ldmatrix--> registers x 2 --mma.sync--> sums
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_epilogue import run_epilogue, strip_at
from tilewright.kernels.gemm_operands import ALIGNMENT, Feed
from tilewright.kernels.gemm_split import Team, add_over_blocks
from tilewright.lib.epilogue.lowering.tile import Place, Tile


@cute.jit
def place_of(tile: cute.Integer, tiles_m: cute.Integer, tiles_n: cute.Integer, group: cutlass.Constexpr) -> Any:
    """(m, n, l) of a tile: `group` rows of tiles are gone through before the next ones."""
    batch, tile = tile // (tiles_m * tiles_n), tile % (tiles_m * tiles_n)
    first = tile // (group * tiles_n) * group
    height = min(tiles_m - first, group)
    inside = tile % (group * tiles_n)
    return first + inside % height, inside // height, batch


@cute.jit
def accumulate(
    a: cute.Tensor, b: cute.Tensor, place: Any, steps: Any, memory: cute.Pointer, tiled: cute.TiledMma,
    plan: cutlass.Constexpr,
) -> cute.Tensor:  # fmt: skip
    """The fragment of A·B at `place` (m, n) for a (M, K) and b (N, K), over tiles of K from `steps[0]` to `steps[1]`.

    Shared `memory` is free afterwards.
    """
    thread, _, _ = cute.arch.thread_idx()
    m, n, k = plan.tile
    start, count = steps[0], steps[1] - steps[0]
    shared_a = plan.a.shared(memory, m, k, plan.stages)
    shared_b = plan.b.shared(memory + plan.a.shared_bytes(m, k, plan.stages), n, k, plan.stages)
    feed_a = Feed(plan.a, a, (m, k), place[0], shared_a, plan.threads)
    feed_b = Feed(plan.b, b, (n, k), place[1], shared_b, plan.threads)
    if count > 0:
        feed_a.load_first(start, 0)
        feed_b.load_first(start, 0)
    cute.arch.cp_async_commit_group()
    for stage in cutlass.range(1, plan.stages - 1, unroll=1):
        if stage < count:
            feed_a.load(start + stage, stage)
            feed_b.load(start + stage, stage)
        cute.arch.cp_async_commit_group()

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
    for step in cutlass.range(count):
        for part in cutlass.range_constexpr(parts):
            if cutlass.const_expr(part == parts - 1):
                stage_a, stage_b = from_a[None, None, None, reading], from_b[None, None, None, reading]
                cute.arch.cp_async_wait_group(plan.stages - 2)
                cute.arch.sync_threads()
            ahead = (part + 1) % parts
            cute.copy(read_a, stage_a[None, None, ahead], into_a[None, None, ahead])
            cute.copy(read_b, stage_b[None, None, ahead], into_b[None, None, ahead])
            if cutlass.const_expr(part == 0):
                if step + plan.stages - 1 < count:
                    feed_a.load(start + step + plan.stages - 1, writing)
                    feed_b.load(start + step + plan.stages - 1, writing)
                cute.arch.cp_async_commit_group()
                writing = reading
                reading = reading + 1
                if reading == plan.stages:
                    reading = cutlass.Int32(0)
            cute.gemm(tiled, sums, left[None, None, part], right[None, None, part], sums)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    return sums


@cute.kernel
def gemm_sm80_kernel(
    a: cute.Tensor, b: cute.Tensor, arguments: Any, workspace: Any, counters: Any,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """One block computes one tile of a (M, K, L) · b (N, K, L), or its share of the sums of one, and the epilogue."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    m, n, k = plan.tile
    extents = a.shape[0], b.shape[0], cute.size(a, mode=[2])
    split, tile = block % plan.splits, block // plan.splits
    tiles_m, tiles_n = cute.ceil_div(extents[0], m), cute.ceil_div(extents[1], n)
    row, column, batch = place_of(tile, tiles_m, tiles_n, plan.group)
    steps = cute.ceil_div(a.shape[1], k)
    share = cute.ceil_div(steps, plan.splits)
    memory = cutlass.utils.SmemAllocator().allocate(plan.shared_bytes, ALIGNMENT)
    tiled = plan.tiled_mma()
    ends = split * share, min((split + 1) * share, steps)
    sums = accumulate(a[None, None, batch], b[None, None, batch], (row, column), ends, memory, tiled, plan)
    complete: Any = True
    if cutlass.const_expr(plan.splits > 1):
        seen = cute.make_tensor(cute.recast_ptr(memory, dtype=cute.Int32), cute.make_layout(1))
        team = Team.of_block(plan.threads)
        complete = add_over_blocks(sums, workspace, counters, tile, split, seen, team, plan.splits)
    if complete:
        strip = strip_at(memory, sums.element_type, plan.strip, n)
        written = tiled.get_slice(thread).partition_C(strip)
        place = Place(row * m, column * n, batch, row, column, tiles_m, tiles_n)
        run_epilogue(
            sums, lambda number: cute.autovec_copy(sums[None, number, None], written[None, 0, None]), strip,
            Tile(fused.grid, extents, place, walks=True), arguments, fused, m // plan.strip,
        )  # fmt: skip


@cute.jit
def launch_gemm_sm80(
    a: cute.Tensor, b: cute.Tensor, arguments: Any, workspace: Any, counters: Any,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """The epilogue of a (..., M, K) · b (..., K, N), where "..." is the same batch of both.

    `arguments` are its tensors (M, N, batch...), the last batch mode first, its workspaces and its numbers.
    """
    left, right = as_mkl(a, False), as_mkl(b, True)
    if cutlass.const_expr(plan.turned):
        left, right = right, left
    given = fused.epilogue.grouped(arguments)
    tiles = cute.ceil_div(left.shape[0], plan.tile[0]) * cute.ceil_div(right.shape[0], plan.tile[1])
    blocks = tiles * cute.size(left, mode=[2]) * plan.splits
    gemm_sm80_kernel(left, right, given, workspace, counters, plan, fused).launch(
        grid=(blocks, 1, 1), block=(plan.threads, 1, 1)
    )
    fused.epilogue.finish(given)


def as_mkl(tensor: cute.Tensor, turned: bool) -> cute.Tensor:
    """(batch..., rows, columns) as (rows, columns, (..., batch)), the last batch mode first; turned, columns first."""
    shape, stride = tensor.layout.shape, tensor.layout.stride
    first, second = (-1, -2) if turned else (-2, -1)
    batch = (tuple(shape[-3::-1]), tuple(stride[-3::-1])) if len(shape) > 2 else (1, 0)
    layout = cute.make_layout((shape[first], shape[second], batch[0]), stride=(stride[first], stride[second], batch[1]))
    return cute.make_tensor(tensor.iterator, layout)
