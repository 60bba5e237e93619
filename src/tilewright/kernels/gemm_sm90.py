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
from tilewright.cute.nvgpu import cpasync
from tilewright.kernels.gemm_epilogue import strip_at
from tilewright.kernels.gemm_sm80 import as_mkl, place_of
from tilewright.kernels.gemm_sm90_mainloop import buffers_of, loads_of, multiply_tiles, pipelines_of
from tilewright.kernels.gemm_sm90_plans import ALIGNMENT, CONSUMERS, WARPGROUP
from tilewright.kernels.gemm_sm90_stores import finish_tile, store_tile, team_of
from tilewright.lib.epilogue.lowering.tile import Place

COPYING_REGISTERS, MULTIPLYING_REGISTERS = 40, 232


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

    def share(self, row: Any, column: Any, batch: Any) -> Place:
        """Where the rows of a warpgroup at (row, column, batch), in shares, lie in D."""
        m, n = self.plan.share
        parts = cute.ceil_div(self.extents[0], m), cute.ceil_div(self.extents[1], n)
        return Place(row * m, column * n, batch, row, column, *parts)

    def number_of(self, row: Any, column: Any, batch: Any) -> Any:
        """A tile's number among all, those that lie outside of D included."""
        (down, along) = self.plan.cluster
        return (batch * (self.down * down) + row) * (self.along * along) + column


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
    memory = buffers_of(smem, plan)
    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    pipe, order = pipelines_of(smem, plan, group)
    blocks = (1, *plan.cluster, 1)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    tiles = Tiles(coordinates[0], coordinates[1], plan)
    exchange = workspace, counters, smem.allocate_tensor(cutlass.Int32, cute.make_layout(CONSUMERS))
    pipeline.pipeline_init_wait(blocks)
    if group < 0:
        if cutlass.const_expr(plan.moves_registers):
            cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(tiles, pipe, copies[:2], coordinates[:2], memory, plan)
    else:
        if cutlass.const_expr(plan.moves_registers):
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
                lambda sums, place: finish_tile(
                    sums, strip, tiles.share(*place), tiles.extents, arguments, group, team, plan, fused
                ),
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
    copies, coordinates = loads_of(a, b, plan)
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
    copies, coordinates = loads_of(a, b, plan)
    given = fused.epilogue.grouped(arguments)
    blocks = plan.cluster[0] * plan.cluster[1]
    gemm_sm90_kernel(copies, coordinates, given, workspace, counters, plan, fused).launch(
        grid=(clusters * blocks, 1, 1), block=(plan.threads, 1, 1), cluster=(blocks, 1, 1)
    )
    fused.epilogue.finish(given)
