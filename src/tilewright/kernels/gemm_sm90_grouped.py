"""Products of groups of rows, each with a matrix of its own, in one launch of the kernel for sm_90.

The rows of A and D lie one group after the other, and group g ends before row `ends[g]`:

    A (M, K)    D (M, N)        B (N, K, G)
    ┌───────┐   ┌───────┐
    │ group │ · │       │  =  group 0: rows 0 to ends[0]         times B[..., 0]
    ├───────┤   ├───────┤
    │       │   │       │     group 1: rows ends[0] to ends[1]   times B[..., 1]
    └───────┘   └───────┘

`ends` lies in the device's memory: the host need not know it. A block first counts the tiles of all groups.
A tile at the end of a group computes rows of the next one, too, and does not store them.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.cute.nvgpu import cpasync
from tilewright.kernels.gemm_epilogue import strip_at
from tilewright.kernels.gemm_sm80 import place_of
from tilewright.kernels.gemm_sm90 import COPYING_REGISTERS, MULTIPLYING_REGISTERS
from tilewright.kernels.gemm_sm90_mainloop import buffers_of, loads_of, multiply_tiles, pipelines_of
from tilewright.kernels.gemm_sm90_plans import ALIGNMENT, CONSUMERS, WARPGROUP
from tilewright.kernels.gemm_sm90_stores import finish_tile, team_of
from tilewright.lib.comm.warp import warp_scan
from tilewright.lib.epilogue.lowering.tile import Place

MOST_GROUPS = 1024
BOUNDS_BYTES = 2 * 4 * (MOST_GROUPS + 1)
_WARP = 32


@cute.jit
def count_tiles(ends: cute.Tensor, bounds: cute.Tensor, rows: Any, height: cutlass.Constexpr, along: Any) -> None:
    """Of each group the number of its first tile and its first row, to `bounds`; behind the last one, the ends.

    Tiles of a cluster have `height` rows, and `along` of them lie side by side. Run by one warp.
    """
    lane, groups = cute.arch.lane_idx(), cute.size(ends)
    total = cute.Int32(0)
    if lane == 0:
        bounds[0, 0] = cute.Int32(0)
        bounds[0, 1] = cute.Int32(0)
    for first in cutlass.range(0, groups, _WARP):
        group = first + lane
        tiles, end = cute.Int32(0), cute.Int32(0)
        if group < groups:
            end = min(ends[group], rows)
            start = cute.Int32(0)
            if group > 0:
                start = min(ends[group - 1], rows)
            tiles = cute.ceil_div(max(end - start, 0), height) * along
        until = total + warp_scan(tiles, op="add")
        if group < groups:
            bounds[group + 1, 0] = until
            bounds[group + 1, 1] = end
        total = cute.arch.shuffle_sync(until, _WARP - 1)


class Groups:
    """The tiles of D that a cluster computes, of all groups; as `gemm_sm90.Tiles` for one matrix."""

    def __init__(self, a: cute.Tensor, b: cute.Tensor, bounds: cute.Tensor, groups: Any, plan: Any) -> None:
        block, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        size = plan.cluster[0] * plan.cluster[1]
        rank = block % size
        self.plan, self.bounds, self.groups = plan, bounds, groups
        self.own = rank % plan.cluster[0], rank // plan.cluster[0]
        self.first, self.clusters = block // size, blocks // size
        self.columns = b.shape[0]
        self.along = tiles_along(b, plan)
        self.steps = cute.ceil_div(a.shape[1], plan.tile[2])
        self.count = bounds[groups, 0]

    @cute.jit
    def group_of(self, number: Any) -> Any:
        """The group of a tile: the last one whose first tile is not behind it. Groups without rows have none."""
        low, high = cute.Int32(0), cute.Int32(self.groups)
        while high - low > 1:
            middle = (low + high) // 2
            if self.bounds[middle, 0] <= number:
                low = middle
            else:
                high = middle
        return low

    def place(self, number: Any) -> Any:
        """(m, n, group) of this block's tile, m counted within the group; no products are shared."""
        group = self.group_of(number)
        first = self.bounds[group, 0]
        down = (self.bounds[group + 1, 0] - first) // self.along
        m, n, _ = place_of(number - first, down, self.along, self.plan.group)
        (cluster_m, cluster_n), (own_m, own_n) = self.plan.cluster, self.own
        return m * cluster_m + own_m, n * cluster_n + own_n, group, 0

    def share(self, row: Any, column: Any, group: Any) -> Place:
        """Where the rows of a warpgroup at (row, column, group), in shares, lie in D."""
        m, n = self.plan.share
        return Place(self.bounds[group, 1] + row * m, column * n, 0)

    def extents(self, group: Any) -> Any:
        """Where the rows of a group end, and the columns."""
        return self.bounds[group + 1, 1], self.columns, 1


def tiles_along(b: cute.Tensor, plan: Any) -> Any:
    """Clusters side by side."""
    return cute.ceil_div(b.shape[0], plan.tile[1] * plan.cluster[1])


@cute.jit
def copy_groups(tiles: Any, pipe: Any, copies: Any, sources: Any, targets: Any, plan: cutlass.Constexpr) -> None:
    """Copy all tiles of A and B of this block, one step of K after the other. Run by one warp."""
    cluster = cute.make_layout((*plan.cluster, 1))
    own = cluster.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
    masks = [
        cute.make_layout_image_mask(cluster, own, mode=mode) if plan.cluster[mode] > 1 else None for mode in (1, 0)
    ]
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, plan.stages)
    for number in cutlass.range(tiles.first, tiles.count, tiles.clusters):
        row, column, group, _ = tiles.place(number)
        begins = (tiles.bounds[group, 1] + row * plan.tile[0], 0, 0), (column * plan.tile[1], 0, group)
        parts = []
        for copy, shared, source, begin, mode in zip(copies, targets, sources, begins, (1, 0), strict=True):
            lines = plan.tile[1 - mode], plan.tile[2]
            steps = cute.local_tile(cute.domain_offset(begin, source), lines, (0, None, 0))
            parts.append(
                cpasync.tma_partition(
                    copy, own[mode], cute.make_layout(plan.cluster[mode]),
                    cute.group_modes(shared, 0, 2), cute.group_modes(steps, 0, 2),
                )
            )  # fmt: skip
        (to_a, from_a), (to_b, from_b) = parts
        for step in cutlass.range(tiles.steps, unroll=1):
            pipe.producer_acquire(state)
            barrier = pipe.producer_get_barrier(state)
            cute.copy(copies[0], from_a[None, step], to_a[None, state.index], tma_bar_ptr=barrier, mcast_mask=masks[0])
            cute.copy(copies[1], from_b[None, step], to_b[None, state.index], tma_bar_ptr=barrier, mcast_mask=masks[1])
            state.advance()
    pipe.producer_tail(state)


@cute.kernel
def gemm_sm90_grouped_kernel(
    copies: Any, coordinates: Any, ends: cute.Tensor, arguments: Any, plan: cutlass.Constexpr, fused: cutlass.Constexpr
) -> None:
    """The epilogue of a (M, K) · b (N, K, G), by groups of rows, by as many blocks as there are."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    memory = buffers_of(smem, plan)
    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    pipe, order = pipelines_of(smem, plan, group)
    blocks = (1, *plan.cluster, 1)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    bounds = smem.allocate_tensor(cutlass.Int32, cute.make_layout((MOST_GROUPS + 1, 2)))
    if warp == 0:
        rows, height = coordinates[0].shape[0], plan.tile[0] * plan.cluster[0]
        count_tiles(ends, bounds, rows, height, tiles_along(coordinates[1], plan))
    pipeline.pipeline_init_wait(blocks)
    cute.arch.sync_threads()  # `bounds` are there
    tiles = Groups(coordinates[0], coordinates[1], bounds, cute.size(ends), plan)
    if group < 0:
        if cutlass.const_expr(plan.moves_registers):
            cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_groups(tiles, pipe, copies, coordinates, memory, plan)
    else:
        if cutlass.const_expr(plan.moves_registers):
            cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        team = team_of(group)
        strips = smem.allocate(CONSUMERS * plan.strip_bytes, ALIGNMENT)
        strip = strip_at(strips + group * plan.strip_bytes, plan.accumulator, plan.strip, plan.tile[1])
        multiply_tiles(
            tiles, pipe, order,
            lambda sums, place: finish_tile(
                sums, strip, tiles.share(*place), tiles.extents(place[2]), arguments, group, team, plan, fused
            ),
            memory, None, group, team, plan,
        )  # fmt: skip


@cute.jit
def launch_gemm_sm90_grouped(
    a: cute.Tensor, b: cute.Tensor, ends: cute.Tensor, arguments: Any, clusters: cute.Int32,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """The epilogue of the groups of rows of a (M, K), each times one of b (G, K, N), by `clusters` clusters.

    `ends`, (G,) of Int32, do not fall. `arguments` are the epilogue's tensors (M, N), its workspaces and its numbers.
    """
    copies, coordinates = loads_of(a, b, plan)
    given = fused.epilogue.grouped(arguments)
    blocks = plan.cluster[0] * plan.cluster[1]
    gemm_sm90_grouped_kernel(copies, coordinates, ends, given, plan, fused).launch(
        grid=(clusters * blocks, 1, 1), block=(plan.threads, 1, 1), cluster=(blocks, 1, 1)
    )
    fused.epilogue.finish(given)
