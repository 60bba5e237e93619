"""Step 4 of docs/gemm.md: tensor cores by `mma.sync`, fed by `ldmatrix` out of a ring that `cp.async` fills."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float32
from tilewright.cute.nvgpu import cpasync, warp

TILE, DEPTH, STAGES = 128, 64, 3
VECTOR, LINE = 8, DEPTH // 8  # elements of 16 bytes; vectors of a row of a tile
# The vectors of a row change places by the row's number.
LAYOUT = cute.tile_to_shape(
    cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, DEPTH), stride=(DEPTH, 1))),
    (TILE, DEPTH, STAGES), (0, 1, 2),
)  # fmt: skip
ON_EMULATOR = {"shape": (256, 256, 256)}  # M, N, K


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, fill: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE, DEPTH), (block_m, None))  # (TILE, DEPTH, steps)
    tiles_b = cute.local_tile(b, (TILE, DEPTH), (block_n, None))
    tile_c = cute.local_tile(c, (TILE, TILE), (block_m, block_n))
    steps = cute.size(tiles_a, mode=[2])

    memory = cutlass.utils.SmemAllocator()
    shared_a = memory.allocate_tensor(a.element_type, LAYOUT, byte_alignment=1024)
    shared_b = memory.allocate_tensor(b.element_type, LAYOUT, byte_alignment=1024)
    filling = fill.get_slice(thread)
    from_a, into_a = filling.partition_S(tiles_a), filling.partition_D(shared_a)
    from_b, into_b = filling.partition_S(tiles_b), filling.partition_D(shared_b)

    mine = tiled.get_slice(thread)
    left = tiled.make_fragment_A(mine.partition_A(shared_a)[None, None, None, 0])
    right = tiled.make_fragment_B(mine.partition_B(shared_b)[None, None, None, 0])
    sums = tiled.make_fragment_C(mine.partition_C(tile_c))
    sums.fill(0.0)
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    read_a = cute.make_tiled_copy_A(ldmatrix, tiled).get_slice(thread)
    read_b = cute.make_tiled_copy_B(ldmatrix, tiled).get_slice(thread)

    for stage in cutlass.range_constexpr(STAGES - 1):
        if stage < steps:
            cute.copy(fill, from_a[None, None, None, stage], into_a[None, None, None, stage])
            cute.copy(fill, from_b[None, None, None, stage], into_b[None, None, None, stage])
        cute.arch.cp_async_commit_group()
    for step in cutlass.range(steps):
        stage, ahead = step % STAGES, step + STAGES - 1
        cute.arch.cp_async_wait_group(STAGES - 2)  # this step's tiles are there
        cute.arch.sync_threads()  # for all threads, and nobody reads the last step's any more
        if ahead < steps:
            cute.copy(fill, from_a[None, None, None, ahead], into_a[None, None, None, ahead % STAGES])
            cute.copy(fill, from_b[None, None, None, ahead], into_b[None, None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.copy(read_a, read_a.partition_S(shared_a)[None, None, k, stage], read_a.retile(left)[None, None, k])
            cute.copy(read_b, read_b.partition_S(shared_b)[None, None, k, stage], read_b.retile(right)[None, None, k])
            cute.gemm(tiled, sums, left[None, None, k], right[None, None, k], sums)
    narrow = cute.make_fragment_like(sums, c.element_type)
    narrow.store(sums.load().to(c.element_type))
    cute.autovec_copy(narrow, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of TILE, K of DEPTH."""
    tiled = cute.make_tiled_mma(warp.MmaF16BF16Op(BFloat16, Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16))
    vector = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), BFloat16, num_bits_per_copy=128
    )
    lines = cute.make_layout((tiled.size // LINE, LINE), stride=(LINE, 1))  # eight threads copy a row
    fill = cute.make_tiled_copy_tv(vector, lines, cute.make_layout((1, VECTOR)))
    grid = c.shape[1] // TILE, c.shape[0] // TILE, 1
    gemm_kernel(a, b, c, tiled, fill).launch(grid=grid, block=tiled.size)


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
