"""Step 6 of docs/gemm.md: one warp copies, stages ahead; two warpgroups multiply, and never wait for each other."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float32, Int64, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

TILE_M, TILE_N, DEPTH, STAGES = 128, 256, 64, 4
WARPGROUP, CONSUMERS = 128, 2
SHARE = TILE_M // CONSUMERS  # rows of a tile that a warpgroup multiplies
COPYING_REGISTERS, MULTIPLYING_REGISTERS = 40, 232
ROWS = LayoutEnum.ROW_MAJOR
ON_EMULATOR = {"shape": (256, 256, 256)}  # M, N, K


@cute.jit
def copy_tiles(pipe, copies, sources, targets):
    """Bring the tiles of all steps along K; run by one warp."""
    alone = cute.make_layout(1)
    (into_a, from_a), (into_b, from_b) = (
        cpasync.tma_partition(copy, 0, alone, cute.group_modes(target, 0, 2), cute.group_modes(source, 0, 2))
        for copy, source, target in zip(copies, sources, targets, strict=True)
    )
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    for step in cutlass.range(cute.size(sources[0], mode=[2]), unroll=1):
        pipe.producer_acquire(state)  # waits until the stage is free
        barrier = pipe.producer_get_barrier(state)
        cute.copy(copies[0], from_a[None, step], into_a[None, state.index], tma_bar_ptr=barrier)
        cute.copy(copies[1], from_b[None, step], into_b[None, state.index], tma_bar_ptr=barrier)
        state.advance()
    pipe.producer_tail(state)


@cute.jit
def multiply(pipe, steps, mma: cute.TiledMma, left: cute.Tensor, right: cute.Tensor, sums: cute.Tensor):
    """sums = the products of all steps; run by each warpgroup. A step's products start while the last one's run."""
    mma.set(warpgroup.Field.ACCUMULATE, False)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    pipe.consumer_wait(state)
    warpgroup.fence()
    for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
        cute.gemm(mma, sums, left[None, None, k, state.index], right[None, None, k, state.index], sums)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()
    released = state.clone()
    state.advance()
    for _ in cutlass.range(steps - 1, unroll=1):
        pipe.consumer_wait(state)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.gemm(mma, sums, left[None, None, k, state.index], right[None, None, k, state.index], sums)
        warpgroup.commit_group()
        warpgroup.wait_group(1)  # the last step's products are done
        pipe.consumer_release(released)
        released.advance()
        state.advance()
    warpgroup.wait_group(0)
    pipe.consumer_release(released)


@cute.kernel
def gemm_kernel(
    copies, places, c: cute.Tensor, mma: cute.TiledMma, layout_a: cutlass.Constexpr, layout_b: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    block_n, block_m, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(places[0], (TILE_M, DEPTH), (block_m, None))
    tiles_b = cute.local_tile(places[1], (TILE_N, DEPTH), (block_n, None))

    memory = cutlass.utils.SmemAllocator()
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS * WARPGROUP // 32),  # warps that read
        tx_count=(TILE_M + TILE_N) * DEPTH * 2,  # bytes of a stage
        barrier_storage=memory.allocate_array(Int64, 2 * STAGES),
    )
    shared_a = memory.allocate_tensor(BFloat16, layout_a.outer, 1024, layout_a.inner)
    shared_b = memory.allocate_tensor(BFloat16, layout_b.outer, 1024, layout_b.inner)

    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    if group < 0:
        cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(pipe, copies, (tiles_a, tiles_b), (shared_a, shared_b))
    else:
        cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        mine = mma.get_slice(thread % WARPGROUP)
        rows = cute.local_tile(shared_a, (SHARE, DEPTH), (group, 0, None))
        left, right = mma.make_fragment_A(mine.partition_A(rows)), mma.make_fragment_B(mine.partition_B(shared_b))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((SHARE, TILE_N)), Float32)
        multiply(pipe, cute.size(tiles_a, mode=[2]), mma, left, right, sums)
        narrow = cute.make_rmem_tensor(sums.shape, BFloat16)
        narrow.store(sums.load().to(BFloat16))
        tile_c = cute.local_tile(c, (SHARE, TILE_N), (block_m * CONSUMERS + group, block_n))
        cute.autovec_copy(narrow, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of the tile."""
    layouts, copies, places = [], [], []
    for matrix, rows in ((a, TILE_M), (b, TILE_N)):
        layout = sm90.make_smem_layout(BFloat16, ROWS, (rows, DEPTH), STAGES)  # (rows, DEPTH, STAGES)
        copy, place = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), matrix, cute.slice_(layout, (None, None, 0)), (rows, DEPTH)
        )
        layouts.append(layout)
        copies.append(copy)
        places.append(place)
    major = ROWS.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(BFloat16, BFloat16, major, major, Float32, (1, 1, 1), (64, TILE_N))
    grid = c.shape[1] // TILE_N, c.shape[0] // TILE_M, 1
    gemm_kernel(tuple(copies), tuple(places), c, mma, *layouts).launch(grid=grid, block=WARPGROUP * (1 + CONSUMERS))


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
