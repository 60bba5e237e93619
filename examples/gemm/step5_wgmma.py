"""Step 5 of docs/gemm.md: TMA brings tiles to shared memory, and the tensor cores read them there (wgmma)."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float32, Int32, Int64
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

TILE_M, TILE_N, DEPTH = 128, 128, 64
THREADS = 128  # one warpgroup
BYTES = (TILE_M + TILE_N) * DEPTH * 2  # of the tiles of one step
ROWS = LayoutEnum.ROW_MAJOR  # K is contiguous
ON_EMULATOR = {"shape": (256, 256, 256)}  # M, N, K


@cute.kernel
def gemm_kernel(
    copy_a: cute.CopyAtom, a: cute.Tensor, copy_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma,
    layout_a: cutlass.Constexpr, layout_b: cutlass.Constexpr,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    block_n, block_m, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE_M, DEPTH), (block_m, None))  # (TILE_M, DEPTH, steps), of coordinates
    tiles_b = cute.local_tile(b, (TILE_N, DEPTH), (block_n, None))
    tile_c = cute.local_tile(c, (TILE_M, TILE_N), (block_m, block_n))

    memory = cutlass.utils.SmemAllocator()
    arrived = memory.allocate_array(Int64, 1)
    shared_a = memory.allocate_tensor(BFloat16, layout_a.outer, 1024, layout_a.inner)
    shared_b = memory.allocate_tensor(BFloat16, layout_b.outer, 1024, layout_b.inner)
    into_a, from_a = cpasync.tma_partition(
        copy_a, 0, cute.make_layout(1), cute.group_modes(shared_a, 0, 2), cute.group_modes(tiles_a, 0, 2)
    )
    into_b, from_b = cpasync.tma_partition(
        copy_b, 0, cute.make_layout(1), cute.group_modes(shared_b, 0, 2), cute.group_modes(tiles_b, 0, 2)
    )
    if thread == 0:
        cute.arch.mbarrier_init(arrived, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()

    mine = mma.get_slice(thread)
    left, right = mma.make_fragment_A(mine.partition_A(shared_a)), mma.make_fragment_B(mine.partition_B(shared_b))
    sums = cute.make_rmem_tensor(mma.partition_shape_C((TILE_M, TILE_N)), Float32)
    mma.set(warpgroup.Field.ACCUMULATE, False)  # the first product overwrites
    phase = Int32(0)
    for step in cutlass.range(cute.size(tiles_a, mode=[2])):
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(arrived, BYTES)
            cute.copy(copy_a, from_a[None, step], into_a, tma_bar_ptr=arrived)
            cute.copy(copy_b, from_b[None, step], into_b, tma_bar_ptr=arrived)
        cute.arch.mbarrier_wait(arrived, phase)
        phase = phase ^ 1
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.gemm(mma, sums, left[None, None, k], right[None, None, k], sums)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()  # all warps have done with the tiles
    narrow = cute.make_rmem_tensor(sums.shape, BFloat16)
    narrow.store(sums.load().to(BFloat16))
    cute.autovec_copy(narrow, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of the tile; the copy engine writes zeros behind K."""
    layout_a, layout_b = (sm90.make_smem_layout(BFloat16, ROWS, (rows, DEPTH)) for rows in (TILE_M, TILE_N))
    load = cpasync.CopyBulkTensorTileG2SOp()
    copy_a, places_a = cpasync.make_tiled_tma_atom(load, a, layout_a, (TILE_M, DEPTH))
    copy_b, places_b = cpasync.make_tiled_tma_atom(load, b, layout_b, (TILE_N, DEPTH))
    major = ROWS.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(BFloat16, BFloat16, major, major, Float32, (1, 1, 1), (64, TILE_N))
    grid = c.shape[1] // TILE_N, c.shape[0] // TILE_M, 1
    gemm_kernel(copy_a, places_a, copy_b, places_b, c, mma, layout_a, layout_b).launch(grid=grid, block=THREADS)


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
