"""The matrix product D = A·B on the tensor cores of sm_90, by `wgmma`: persistent, with warpgroups of different work.

A block has as many tiles of D to compute as there are for its cluster. One warp copies tiles of A and B along K into
`stages` buffers of shared memory by the copy engine, and two warpgroups multiply them there:

    copies        | k 0 | k 1 | k 2 | ...  of tile 0, 1, 2, ... without a pause
    cooperative   both warpgroups: products of tile 0, store; products of tile 1, store; ...
    ping-pong     one: products of tile 0 | store          | products of tile 2 | ...
                  two:                    | products of 1  | store              | ...

Blocks of a cluster share tiles: each copies a part of them to all that need it.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.kernels.gemm_epilogue import TeamTile, repeated, run_epilogue, strip_at
from tilewright.kernels.gemm_sm80 import as_mkl, place_of
from tilewright.kernels.gemm_sm90_plans import ALIGNMENT, CONSUMERS, INSTRUCTION_M, WARP_M, WARPGROUP
from tilewright.kernels.gemm_split import Team, add_over_blocks
from tilewright.lib.epilogue.lowering.tile import Place
from tilewright.utils import LayoutEnum, sm90

COPYING_REGISTERS, MULTIPLYING_REGISTERS = 40, 232
_STORING = 1  # the named barrier of the first warpgroup that multiplies; the next one's follows


class Tiles:
    """The tiles of D that a cluster computes: every `clusters`-th, from its own number on.

    Where several blocks share the products of a tile, all have as many steps; the last ones may lie behind K, where
    copies give zeros.
    """

    def __init__(self, a: cute.Tensor, b: cute.Tensor, plan: Any) -> None:
        batches = cute.math.max(cute.size(a, mode=[2]), cute.size(b, mode=[2]))
        self.extents = a.shape[0], b.shape[0], batches
        block, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        self.plan = plan
        size = plan.cluster[0] * plan.cluster[1]
        rank = block % size
        self.own = rank % plan.cluster[0], rank // plan.cluster[0]
        self.first, self.clusters = block // size, blocks // size
        self.down = cute.ceil_div(a.shape[0], plan.tile[0] * plan.cluster[0])
        self.along = cute.ceil_div(b.shape[0], plan.tile[1] * plan.cluster[1])
        self.count = self.down * self.along * batches * plan.splits
        self.steps = cute.ceil_div(cute.ceil_div(a.shape[1], plan.tile[2]), plan.splits)

    def place(self, number: Any) -> Any:
        """(m, n, l) of this block's tile, and which of the shares of its products is meant."""
        split, number = number % self.plan.splits, number // self.plan.splits
        m, n, batch = place_of(number, self.down, self.along, self.plan.group)
        (down, along), (own_m, own_n) = self.plan.cluster, self.own
        return m * down + own_m, n * along + own_n, batch, split

    def number_of(self, row: Any, column: Any, batch: Any) -> Any:
        """A tile's number among all, those that lie outside of D included."""
        (down, along) = self.plan.cluster
        return (batch * (self.down * down) + row) * (self.along * along) + column


def state_after(steps: Any, kind: pipeline.PipelineUserType, stages: int) -> pipeline.PipelineState:
    """Where a side of the pipeline stands after so many steps."""
    first = 1 if kind is pipeline.PipelineUserType.Producer else 0
    return pipeline.PipelineState(stages, steps, steps % stages, (steps // stages + first) % 2)


@cute.jit
def copy_tiles(tiles: Any, pipe: Any, copies: Any, sources: Any, targets: Any, plan: cutlass.Constexpr) -> None:
    """Copy all tiles of A and B of this block, one step of K after the other. Run by one warp."""
    cluster = cute.make_layout((*plan.cluster, 1))
    own = cluster.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
    parts, masks = [], []
    for copy, shared, source, mode in zip(copies, targets, sources, (1, 0), strict=True):
        extent = plan.cluster[mode]
        lines = plan.tile[1 - mode], plan.tile[2]
        divided = cute.group_modes(cute.local_tile(source, lines, (None, None, None)), 0, 2)
        parts.append(
            cpasync.tma_partition(copy, own[mode], cute.make_layout(extent), cute.group_modes(shared, 0, 2), divided)
        )
        masks.append(cute.make_layout_image_mask(cluster, own, mode=mode) if extent > 1 else None)
    (to_a, from_a), (to_b, from_b) = parts
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, plan.stages)
    for number in cutlass.range(tiles.first, tiles.count, tiles.clusters):
        row, column, batch, split = tiles.place(number)
        batch_a, batch_b = (min(batch, cute.size(source, mode=[2]) - 1) for source in sources)
        for step in cutlass.range(split * tiles.steps, (split + 1) * tiles.steps, unroll=1):
            pipe.producer_acquire(state)
            barrier = pipe.producer_get_barrier(state)
            cute.copy(
                copies[0], from_a[None, row, step, batch_a], to_a[None, state.index],
                tma_bar_ptr=barrier, mcast_mask=masks[0],
            )  # fmt: skip
            cute.copy(
                copies[1], from_b[None, column, step, batch_b], to_b[None, state.index],
                tma_bar_ptr=barrier, mcast_mask=masks[1],
            )  # fmt: skip
            state.advance()
    pipe.producer_tail(state)


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
def store_tile(
    sums: cute.Tensor, copy: Any, target: cute.Tensor, shared: cute.Tensor, place: Any, group: Any,
    team: Any, plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Store `sums`, the rows of one warpgroup at `place` (rows, n, l) of D, by way of its buffers of `shared`."""
    lane = team.thread
    (rows, columns), (m, n) = plan.piece, (plan.rows, plan.tile[1])
    order = LayoutEnum.ROW_MAJOR if plan.n_major else LayoutEnum.COL_MAJOR
    atom = sm90.sm90_get_smem_store_op(order, plan.result, plan.accumulator)
    tiled = plan.tiled_mma(columns)
    writing = cute.make_tiled_copy_C(atom, tiled)
    mine = writing.get_slice(lane)
    written = mine.partition_D(shared)
    pieces = cute.local_tile(target, (rows, columns), (None, None, None))
    from_shared, to_pieces = cpasync.tma_partition(
        copy, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(pieces, 0, 2)
    )
    stores = pipeline.PipelineTmaStore.create(num_stages=plan.store_buffers)
    leader = cute.arch.make_warp_uniform(lane // 32) == 0
    held = rows * columns // WARPGROUP
    count = m // rows * (n // columns)
    for number in cutlass.range_constexpr(count):
        down, along = number // (n // columns), number % (n // columns)
        wide = cute.make_rmem_tensor(held, plan.accumulator)
        for value in cutlass.range_constexpr(held):
            wide[value] = sums[number * held + value]
        narrow = cute.make_rmem_tensor(tiled.partition_shape_C(plan.piece), plan.result)
        cute.make_tensor(narrow.iterator, cute.make_layout(held)).store(wide.load().to(plan.result))
        buffer = group * plan.store_buffers + number % plan.store_buffers
        if leader:
            if cutlass.const_expr(number == 0 and count % plan.store_buffers):
                stores.producer_tail()  # the last tile ended with this buffer
            else:
                stores.producer_acquire()
        team.sync()
        cute.copy(writing, mine.retile(narrow), written[None, None, None, buffer])
        cute.arch.fence_proxy("async.shared", space="cta")
        team.sync()
        if leader:
            at = place[0] * (m // rows) + down, place[1] * (n // columns) + along, place[2]
            cute.copy(copy, from_shared[None, buffer], to_pieces[(None, *at)])
            stores.producer_commit()


@cute.jit
def finish_tile(
    sums: cute.Tensor, strip: cute.Tensor, tiles: Any, place: Any, arguments: Any, group: Any, team: Any,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Run the epilogue on `sums`, the rows of one warpgroup at `place` (rows, n, l) of D, by way of its `strip`."""
    (m, n), (row, column, batch) = plan.share, place
    parts = cute.ceil_div(tiles.extents[0], m), cute.ceil_div(tiles.extents[1], n)
    if row < parts[0] and column < parts[1]:
        mine = plan.tiled_mma(n).get_slice(team.thread)
        written = mine.partition_C(repeated(strip, INSTRUCTION_M // plan.strip))
        warps = plan.strip // WARP_M
        warp = cute.arch.make_warp_uniform(team.thread // 32)

        @cute.jit
        def write(number: cutlass.Constexpr) -> None:
            instruction, share = divmod(number, INSTRUCTION_M // plan.strip)
            if warp // warps == share:
                cute.autovec_copy(sums[None, instruction, None], written[None, 0, None])

        where = Place(row * m, column * n, batch, row, column, *parts)
        tile = TeamTile(fused.grid, tiles.extents, where, team, group, CONSUMERS)
        run_epilogue(sums, write, strip, tile, arguments, fused, m // plan.strip)


def team_of(group: Any) -> Team:
    """The threads of a warpgroup that multiplies."""
    barrier = pipeline.NamedBarrier(_STORING + group, WARPGROUP)
    return Team(cute.arch.thread_idx()[0] % WARPGROUP, WARPGROUP, barrier.arrive_and_wait)


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
    left = tiled.make_fragment_A(mine.partition_A(shared_a))
    right = tiled.make_fragment_B(mine.partition_B(shared_b))
    for number in cutlass.range(first, tiles.count, stride):
        row, column, batch, split = tiles.place(number)
        slot = tiles.number_of(row, column, batch)
        if cutlass.const_expr(not plan.pingpong):
            row, slot = row * CONSUMERS + group, slot * CONSUMERS + group
        sums = cute.make_rmem_tensor(tiled.partition_shape_C((plan.rows, plan.tile[1])), plan.accumulator)
        state = state_after(turn * tiles.steps, pipeline.PipelineUserType.Consumer, plan.stages)
        if cutlass.const_expr(plan.pingpong):
            order.wait()
        last = multiply_tile(pipe, state, tiles.steps, tiled, left, right, sums)
        if cutlass.const_expr(plan.pingpong):
            order.arrive()
        warpgroup.wait_group(0)
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


@cute.kernel
def gemm_sm90_kernel(
    copies: Any, coordinates: Any, arguments: Any, workspace: Any, counters: Any, plan: cutlass.Constexpr,
    fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """All tiles of D (M, N, L) = a (M, K, L) · b (N, K, L), by as many blocks as there are.

    The third of the atoms and tensors of coordinates is that of D, where no epilogue is fused.
    """
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == 0:
        for copy in copies:
            cpasync.prefetch_descriptor(copy)
    smem = cutlass.utils.SmemAllocator()
    memory = tuple(
        smem.allocate_tensor(plan.dtype, layout.outer, ALIGNMENT, layout.inner)
        for layout in (plan.shared_a, plan.shared_b)
    )
    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    readers = plan.cluster[0] + plan.cluster[1] - 1
    blocks = cute.make_layout((1, *plan.cluster, 1))
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=plan.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(
            pipeline.Agent.Thread, WARPGROUP // 32 * readers * (1 if plan.pingpong else CONSUMERS)
        ),
        tx_count=plan.stage_bytes,
        barrier_storage=smem.allocate_array(cutlass.Int64, 2 * plan.stages),
        cta_layout_vmnk=blocks,
        defer_sync=True,
    )
    order = None
    if cutlass.const_expr(plan.pingpong):
        order = pipeline.PipelineOrder.create(
            smem.allocate_array(cutlass.Int64, 2 * CONSUMERS), 2, CONSUMERS, group,
            pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP), defer_sync=True,
        )  # fmt: skip
    pipeline.pipeline_init_arrive(blocks.shape, is_relaxed=True)
    tiles = Tiles(coordinates[0], coordinates[1], plan)
    exchange = workspace, counters, smem.allocate_tensor(cutlass.Int32, cute.make_layout(CONSUMERS))
    pipeline.pipeline_init_wait(blocks.shape)
    if group < 0:
        cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(tiles, pipe, copies[:2], coordinates[:2], memory, plan)
    else:
        cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        team = team_of(group)
        if cutlass.const_expr(fused is None):
            layout = plan.shared_d
            buffers = smem.allocate_tensor(plan.result, layout.outer, ALIGNMENT, layout.inner)
            multiply_tiles(
                tiles, pipe, order,
                lambda sums, place: store_tile(sums, copies[2], coordinates[2], buffers, place, group, team, plan),
                memory, exchange, group, team, plan,
            )  # fmt: skip
            if cute.arch.make_warp_uniform(team.thread // 32) == 0:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        else:
            strips = smem.allocate(CONSUMERS * plan.strip_bytes, ALIGNMENT)
            strip = strip_at(strips + group * plan.strip_bytes, plan.accumulator, plan.strip, plan.tile[1])
            multiply_tiles(
                tiles, pipe, order,
                lambda sums, place: finish_tile(sums, strip, tiles, place, arguments, group, team, plan, fused),
                memory, exchange, group, team, plan,
            )  # fmt: skip


@cute.jit
def launch_gemm_sm90(
    a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, clusters: cute.Int32, workspace: Any, counters: Any,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """d (..., M, N) = a (..., M, K) · b (..., K, N), by `clusters` clusters; "..." is the batch of d, or of a or b 1.

    `workspace` and `counters` are there where `plan.splits` is above 1 (`gemm_split`).
    """
    copies, coordinates = _loads(a, b, plan)
    one = cute.slice_(plan.shared_d, (None, None, 0))
    store, places = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), as_mkl(d, False), one, plan.piece)
    blocks = plan.cluster[0] * plan.cluster[1]
    gemm_sm90_kernel((*copies, store), (*coordinates, places), None, workspace, counters, plan, None).launch(
        grid=(clusters * blocks, 1, 1), block=(plan.threads, 1, 1), cluster=(blocks, 1, 1)
    )


@cute.jit
def launch_gemm_sm90_fused(
    a: cute.Tensor, b: cute.Tensor, arguments: Any, clusters: cute.Int32, workspace: Any, counters: Any,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """The epilogue of a (..., M, K) · b (..., K, N), by `clusters` clusters; see `launch_gemm_sm90`.

    `arguments` are its tensors (M, N, batch...), the last batch mode first, its workspaces and its numbers.
    """
    copies, coordinates = _loads(a, b, plan)
    given = fused.epilogue.grouped(arguments)
    blocks = plan.cluster[0] * plan.cluster[1]
    gemm_sm90_kernel(copies, coordinates, given, workspace, counters, plan, fused).launch(
        grid=(clusters * blocks, 1, 1), block=(plan.threads, 1, 1), cluster=(blocks, 1, 1)
    )
    fused.epilogue.finish(given)


def _loads(a: cute.Tensor, b: cute.Tensor, plan: Any) -> Any:
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
