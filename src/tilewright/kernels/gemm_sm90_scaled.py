"""Products of 8-bit floats with scales of blocks, on sm_90: of 128 elements of a row of A, and of 128 x 128 of B.

    D[m, n] = sum over blocks k of  scale_a[m, k] · scale_b[k, n / 128] · (A[m, block k] · B[block k, n])

A step along K is a block. The tensor cores add its products up from zero; threads multiply them by the scales and add
them to sums of their own, in float32, which take as many registers again. While one warpgroup does so, the other
multiplies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.base.errors import ArgumentError
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.kernels import gemm_sm90_calls, views
from tilewright.kernels.gemm import matrices_of
from tilewright.kernels.gemm_moves import readable
from tilewright.kernels.gemm_sm80 import as_mkl
from tilewright.kernels.gemm_sm90 import COPYING_REGISTERS, MULTIPLYING_REGISTERS, Tiles, copy_tiles
from tilewright.kernels.gemm_sm90_mainloop import buffers_of, loads_of, pipelines_of
from tilewright.kernels.gemm_sm90_plans import ALIGNMENT, CONSUMERS, WARPGROUP, Sm90Plan
from tilewright.kernels.gemm_sm90_stores import store_tile, team_of
from tilewright.kernels.launching import on_gpu

BLOCK = 128
"""Elements along K, and columns of B, that share a scale."""
_TILE, _LINE = (128, 128), 16
_calls: dict[Any, Any] = {}


@cute.jit
def multiply_tile_scaled(
    pipe: Any, state: Any, steps: Any, tiled: cute.TiledMma, left: cute.Tensor, right: cute.Tensor, sums: cute.Tensor,
    part: cute.Tensor, scales: Any, rows: Any, column: Any,
) -> None:  # fmt: skip
    """`sums` = the scaled products of `steps` stages from `state` on, which moves on; `part` has those of a step.

    `rows` are the two rows of A that a thread has of an instruction, and `column` the block of columns of B.
    """
    scale_a, scale_b = scales
    sums.fill(0.0)
    for step in cutlass.range(steps, unroll=1):
        of_columns = scale_b[step, column]
        factors = [scale_a[row, step] * of_columns for row in rows]
        tiled.set(warpgroup.Field.ACCUMULATE, False)
        pipe.consumer_wait(state)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.gemm(tiled, part, left[None, None, k, state.index], right[None, None, k, state.index], part)
            tiled.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        pipe.consumer_release(state)
        for value in cutlass.range_constexpr(cute.size(sums)):
            sums[value] = sums[value] + part[value] * factors[value // 2 % 2]  # two neighbours of either row
        state.advance()


@cute.kernel
def gemm_sm90_scaled_kernel(copies: Any, coordinates: Any, scales: Any, plan: cutlass.Constexpr) -> None:
    """All tiles of D (M, N) = the scaled products of a (M, K) and b (N, K); the third atom and tensor are D's."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    memory = buffers_of(smem, plan)
    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    pipe, _ = pipelines_of(smem, plan, group)
    blocks = (1, *plan.cluster, 1)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    tiles = Tiles(coordinates[0], coordinates[1], plan)
    pipeline.pipeline_init_wait(blocks)
    if group < 0:
        cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(tiles, pipe, copies[:2], coordinates[:2], memory, plan)
    else:
        cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        team = team_of(group)
        layout = plan.shared_d
        buffers = smem.allocate_tensor(plan.result, layout.outer, ALIGNMENT, layout.inner)
        tiled = plan.tiled_mma(plan.tile[1])
        mine = tiled.get_slice(team.thread)
        shared_a = cute.local_tile(memory[0], (plan.rows, plan.tile[2]), (group, 0, None))
        left, right = (
            tiled.make_fragment_A(mine.partition_A(shared_a)), tiled.make_fragment_B(mine.partition_B(memory[1]))
        )  # fmt: skip
        part, sums = (
            cute.make_rmem_tensor(tiled.partition_shape_C((plan.rows, plan.tile[1])), plan.accumulator)
            for _ in range(2)
        )
        first = team.thread // 32 * 16 + team.thread % 32 // 4  # of the thread's two rows
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, plan.stages)
        for number in cutlass.range(tiles.first, tiles.count, tiles.clusters):
            row, column, _, _ = tiles.place(number)
            row = row * CONSUMERS + group
            last = tiles.extents[0] - 1  # a tile may lie behind it
            rows = [cute.math.min(row * plan.rows + first + down, last) for down in (0, 8)]
            within = cute.math.min(column * plan.tile[1] // BLOCK, scales[1].shape[1] - 1)
            multiply_tile_scaled(pipe, state, tiles.steps, tiled, left, right, sums, part, scales, rows, within)
            store_tile(sums, copies[2], coordinates[2], buffers, (row, column, 0), group, team, plan)
        if cute.arch.make_warp_uniform(team.thread // 32) == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def launch_gemm_sm90_scaled(
    a: cute.Tensor, b: cute.Tensor, scale_a: cute.Tensor, scale_b: cute.Tensor, d: cute.Tensor, clusters: cute.Int32,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """d (M, N) = a (M, K) · b (K, N), times scale_a (M, blocks of K) and scale_b (blocks of K, blocks of N)."""
    copies, coordinates = loads_of(a, b, plan)
    one = cute.slice_(plan.shared_d, (None, None, 0))
    store, places = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), as_mkl(d, False), one, plan.piece)
    blocks = plan.cluster[0] * plan.cluster[1]
    gemm_sm90_scaled_kernel((*copies, store), (*coordinates, places), (scale_a, scale_b), plan).launch(
        grid=(clusters * blocks, 1, 1), block=(plan.threads, 1, 1), cluster=(blocks, 1, 1)
    )


@dataclass(frozen=True)
class ScaledCall:
    """What runs for tensors of one configuration."""

    executor: Callable[..., None]
    views: tuple[views.Strided | None, ...]
    clusters: int

    def run(self, out: Any, a: Any, b: Any, scale_a: Any, scale_b: Any) -> None:
        """out = the scaled product."""
        a, b, out = (
            tensor if view is None else view.of(tensor) for view, tensor in zip(self.views, (a, b, out), strict=True)
        )
        self.executor(a, b, scale_a, scale_b, out, self.clusters)


def plans_of(out: Any, a: Any, b: Any) -> list[Sm90Plan]:
    """The plans for these tensors, the rule's choice first; none where they are not for the kernel."""
    found = gemm_sm90_calls.candidates(matrices_of((a, b, out), ()), (a, b, out), splits=False)
    return [plan for plan in found if plan.tile[:2] == _TILE and not plan.pingpong and plan.result is not None]


def gemm_scaled_blocks(out: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, plan: Sm90Plan | None = None) -> None:
    """out (M, N) = a (M, K) · b (K, N) of 8-bit floats, times scale_a (M, blocks of K), scale_b (of K, blocks of N).

    A and B that the copy engine does not take are moved first, and so is `out` last. `plan` overrides the choice.

    Raises:
        ArgumentError: the chip has no `wgmma`.
    """
    if 0 in out.shape or 0 in a.shape:
        out[...] = 0
        return
    _check_chip(a)
    a, b = readable(a, b)
    if plan is None and not plans_of(out, a, b):
        lines = views.empty(a, (out.shape[0], -(-out.shape[1] // _LINE) * _LINE), cute.Float32)
        gemm_scaled_blocks(lines[:, : out.shape[1]], a, b, scale_a, scale_b)
        out[...] = lines[:, : out.shape[1]]
        return
    key = plan, *map(views.facts, (out, a, b, scale_a, scale_b))
    call = _calls.get(key)
    if call is None:
        call = views.keep(_calls, key, _prepare(out, a, b, plan or plans_of(out, a, b)[0]))
    call.run(out, a, b, scale_a, scale_b)


def _check_chip(a: Any) -> None:
    if not gemm_sm90_calls.has_sm90(on_gpu(a)):
        raise ArgumentError(
            "gemm_scaled: scales of blocks need wgmma of sm_90", values={"a": tuple(a.shape)},
            hint="multiply a and b by their scales first, in float16 or bfloat16",
        )  # fmt: skip


def _prepare(out: Any, a: Any, b: Any, plan: Sm90Plan) -> ScaledCall:
    plain = gemm_sm90_calls.shape_of_call(matrices_of((a, b, out), ()), (a, b, out), plan)
    return ScaledCall(_executor(plan, "cuda" if on_gpu(a) else "emu"), *plain)


@functools.cache
def _executor(plan: Sm90Plan, target: str) -> Any:
    """The compiled function, for any extents and strides."""
    return views.quick(compiled(plan, target))


def compiled(plan: Sm90Plan, target: str, options: str = "") -> Any:
    """The compiled function of a, b, the scales and d, for any extents and strides."""
    a, b = gemm_sm90_calls.fake(plan.dtype, 2, True), gemm_sm90_calls.fake(plan.dtype, 2, False)
    scale_a, scale_b = (views.fake(cute.Float32, views.symbols(2), dense=False) for _ in range(2))
    assert plan.result is not None
    d = gemm_sm90_calls.fake(plan.result, 2, plan.n_major)
    fakes = a, b, scale_a, scale_b, d, cute.Int32(1), plan
    return cute.compile(launch_gemm_sm90_scaled, *fakes, target=target, options=options)
