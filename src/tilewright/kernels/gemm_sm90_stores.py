"""What `gemm_sm90` does with the sums of a tile: it stores them by the copy engine, or runs an epilogue on them."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.cute.nvgpu import cpasync
from tilewright.kernels.gemm_epilogue import TeamTile, repeated, run_epilogue
from tilewright.kernels.gemm_sm90_plans import CONSUMERS, INSTRUCTION_M, WARP_M, WARPGROUP
from tilewright.kernels.gemm_split import Team
from tilewright.utils import LayoutEnum, sm90

_STORING = 1  # the named barrier of the first warpgroup that multiplies; the next one's follows


def team_of(group: Any) -> Team:
    """The threads of a warpgroup that multiplies."""
    barrier = pipeline.NamedBarrier(_STORING + group, WARPGROUP)
    return Team(cute.arch.thread_idx()[0] % WARPGROUP, WARPGROUP, barrier.arrive_and_wait)


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
    sums: cute.Tensor, strip: cute.Tensor, place: Any, extents: Any, arguments: Any, group: Any, team: Any,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Run the epilogue on `sums`, the rows of one warpgroup at a `Place` of D, by way of its `strip`.

    `extents`, (M, N, L), are those of D, or where the place's part of it ends.
    """
    m, n = plan.share
    if place.m < extents[0] and place.n < extents[1]:
        mine = plan.tiled_mma(n).get_slice(team.thread)
        written = mine.partition_C(repeated(strip, INSTRUCTION_M // plan.strip))
        warps = plan.strip // WARP_M
        warp = cute.arch.make_warp_uniform(team.thread // 32)

        @cute.jit
        def write(number: cutlass.Constexpr) -> None:
            instruction, share = divmod(number, INSTRUCTION_M // plan.strip)
            if warp // warps == share:
                cute.autovec_copy(sums[None, instruction, None], written[None, 0, None])

        tile = TeamTile(fused.grid, extents, place, team, group, CONSUMERS)
        run_epilogue(sums, write, strip, tile, arguments, fused, m // plan.strip)
