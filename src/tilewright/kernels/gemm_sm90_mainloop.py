"""The loop of `gemm_sm90` along K: stages of shared memory, the copies that fill them, the products that empty them."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.kernels.gemm_sm80 import as_mkl
from tilewright.kernels.gemm_sm90_plans import ALIGNMENT, CONSUMERS, WARPGROUP
from tilewright.kernels.gemm_split import add_over_blocks


def loads_of(a: cute.Tensor, b: cute.Tensor, plan: Any) -> Any:
    """The atoms that copy tiles of A and B, and their tensors of coordinates."""
    copies, coordinates = [], []
    for source, shared, mode in ((as_mkl(a, False), plan.shared_a, 1), (as_mkl(b, True), plan.shared_b, 0)):
        copy: Any = cpasync.CopyBulkTensorTileG2SOp()
        if plan.cluster[mode] > 1:
            copy = cpasync.CopyBulkTensorTileG2SMulticastOp()
        tile = plan.tile[1 - mode], plan.tile[2]
        one = cute.slice_(shared, (None, None, 0))
        made, places = cpasync.make_tiled_tma_atom(copy, source, one, tile, plan.cluster[mode])
        copies.append(made)
        coordinates.append(places)
    return tuple(copies), tuple(coordinates)


def buffers_of(smem: Any, plan: Any) -> tuple[cute.Tensor, cute.Tensor]:
    """The stages of A and of B in shared memory."""
    layouts = zip(plan.held, (plan.shared_a, plan.shared_b), strict=True)
    a, b = (smem.allocate_tensor(dtype, layout.outer, ALIGNMENT, layout.inner) for dtype, layout in layouts)
    return a, b


def pipelines_of(smem: Any, plan: Any, group: Any) -> tuple[Any, Any]:
    """What hands stages over, and, for ping-pong, whose turn it is; the blocks of the cluster have yet to meet."""
    readers = plan.cluster[0] + plan.cluster[1] - 1
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=plan.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(
            pipeline.Agent.Thread, WARPGROUP // 32 * readers * (1 if plan.pingpong else CONSUMERS)
        ),
        tx_count=plan.stage_bytes,
        barrier_storage=smem.allocate_array(cutlass.Int64, 2 * plan.stages),
        cta_layout_vmnk=cute.make_layout((1, *plan.cluster, 1)),
        defer_sync=True,
    )
    if not plan.pingpong:
        return pipe, None
    order = pipeline.PipelineOrder.create(
        smem.allocate_array(cutlass.Int64, 2 * CONSUMERS), 2, CONSUMERS, group,
        pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP), defer_sync=True,
    )  # fmt: skip
    return pipe, order


def state_after(steps: Any, kind: pipeline.PipelineUserType, stages: int) -> pipeline.PipelineState:
    """Where a side of the pipeline stands after so many steps."""
    first = 1 if kind is pipeline.PipelineUserType.Producer else 0
    return pipeline.PipelineState(stages, steps, steps % stages, (steps // stages + first) % 2)


@cute.jit
def multiply_tile(
    pipe: Any, state: Any, steps: Any, tiled: cute.TiledMma, left: cute.Tensor, right: cute.Tensor, sums: cute.Tensor
) -> Any:
    """`sums` = the product of `steps` buffers from `state` on; the state of the last one, which is not released yet.

    The products of one step are under way while those of the next are issued.
    """
    tiled.set(warpgroup.Field.ACCUMULATE, False)
    pipe.consumer_wait(state)
    warpgroup.fence()
    for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
        place = (None, None, part, state.index)
        cute.gemm(tiled, sums, left[place], right[place], sums)
        tiled.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()
    released = state.clone()
    state.advance()
    for _ in cutlass.range(steps - 1, unroll=1):
        pipe.consumer_wait(state)
        warpgroup.fence()
        for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
            place = (None, None, part, state.index)
            cute.gemm(tiled, sums, left[place], right[place], sums)
        warpgroup.commit_group()
        warpgroup.wait_group(1)
        pipe.consumer_release(released)
        released.advance()
        state.advance()
    return released


@cute.jit
def convert(left: cute.Tensor, wide: cute.Tensor) -> None:
    """A thread's part of A from shared memory to registers, as the product takes it."""
    narrow = cute.make_rmem_tensor(left.shape, left.element_type)
    cute.autovec_copy(left, narrow)
    wide.store(narrow.load().to(wide.element_type))


@cute.jit
def multiply_tile_mixed(
    pipe: Any, state: Any, steps: Any, tiled: cute.TiledMma, left: cute.Tensor, right: cute.Tensor, sums: cute.Tensor
) -> Any:
    """As `multiply_tile`, of a `left` of 8 bits, which threads read from shared memory and convert.

    A part of K is converted while the products of the part before it are under way.
    """
    tiled.set(warpgroup.Field.ACCUMULATE, False)
    parts = cute.size(left, mode=[2])
    wide = [cute.make_rmem_tensor(left[None, None, 0, 0].shape, right.element_type) for _ in range(parts)]
    released = state.clone()
    for step in cutlass.range(steps, unroll=1):
        pipe.consumer_wait(state)
        convert(left[None, None, 0, state.index], wide[0])
        for part in cutlass.range_constexpr(parts):
            warpgroup.fence()
            cute.gemm(tiled, sums, wide[part], right[None, None, part, state.index], sums)
            tiled.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            if cutlass.const_expr(part + 1 < parts):
                convert(left[None, None, part + 1, state.index], wide[part + 1])
        warpgroup.wait_group(
            0
        )  # ptxas serialises products whose registers are written while others are under way longer
        if step > 0:
            cute.arch.sync_warp()  # one lane speaks for all, which have read their parts
            pipe.consumer_release(released)
            released.advance()
        state.advance()
    return released


@cute.jit
def multiply_tiles(
    tiles: Any, pipe: Any, order: Any, finish: Any, memory: Any, exchange: Any, group: Any, team: Any,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Multiply the tiles of this block, or every other one of them. Run by warpgroup `group`.

    `finish(sums, place)` stores what becomes of the sums of the place (rows of the warpgroup, n, l).

    `exchange` is the workspace, the counters, and an Int32 of each warpgroup in shared memory (see `add_over_blocks`).
    """
    shared_a, shared_b = memory
    tiled = plan.tiled_mma(plan.tile[1])
    mine = tiled.get_slice(team.thread)
    first, stride, turn, turns = tiles.first, tiles.clusters, cutlass.Int32(0), 1
    if cutlass.const_expr(plan.pingpong):
        first, stride, turn, turns = first + group * stride, CONSUMERS * stride, group, CONSUMERS
    else:
        shared_a = cute.local_tile(shared_a, (plan.rows, plan.tile[2]), (group, 0, None))
    left = mine.partition_A(shared_a)
    if cutlass.const_expr(plan.narrow is None):
        left = tiled.make_fragment_A(left)
    right = tiled.make_fragment_B(mine.partition_B(shared_b))
    for number in cutlass.range(first, tiles.count, stride):
        row, column, batch, split = tiles.place(number)
        slot: Any = 0
        if cutlass.const_expr(plan.splits > 1):
            slot = tiles.number_of(row, column, batch)
        if cutlass.const_expr(not plan.pingpong):
            row, slot = row * CONSUMERS + group, slot * CONSUMERS + group
        sums = cute.make_rmem_tensor(tiled.partition_shape_C((plan.rows, plan.tile[1])), plan.accumulator)
        state = state_after(turn * tiles.steps, pipeline.PipelineUserType.Consumer, plan.stages)
        if cutlass.const_expr(plan.pingpong):
            order.wait()
        multiply: Any = multiply_tile if plan.narrow is None else multiply_tile_mixed
        last = multiply(pipe, state, tiles.steps, tiled, left, right, sums)
        if cutlass.const_expr(plan.pingpong):
            order.arrive()
        warpgroup.wait_group(0)
        if cutlass.const_expr(plan.narrow is not None):
            cute.arch.sync_warp()
        pipe.consumer_release(last)
        if cutlass.const_expr(plan.pingpong):
            order.wait()
        complete: Any = True
        if cutlass.const_expr(plan.splits > 1):
            workspace, counters, seen = exchange
            mine_seen = cute.local_tile(seen, (1,), (group,))
            complete = add_over_blocks(sums, workspace, counters, slot, split, mine_seen, team, plan.splits)
        if complete:
            finish(sums, (row, column, batch))
        if cutlass.const_expr(plan.pingpong):
            order.arrive()
        turn = turn + turns
