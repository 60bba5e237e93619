"""Step 3 of docs/gemm.md: a thread keeps 8 x 8 sums in registers, and uses what it reads eight times."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32

TILE, DEPTH = 128, 16  # of C along M and N; along K
THREADS, VALUES, VECTOR = 16, 4, 8  # along M and N; neighbours that a thread has; elements of 16 bytes
LAYOUT = cute.make_layout((TILE, DEPTH), stride=(1, TILE + 4))  # K by K, so that a thread reads four neighbours at once
ON_EMULATOR = {"shape": (256, 256, 256)}  # M, N, K


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE, DEPTH), (block_m, None))  # (TILE, DEPTH, steps)
    tiles_b = cute.local_tile(b, (TILE, DEPTH), (block_n, None))
    tile_c = cute.local_tile(c, (TILE, TILE), (block_m, block_n))

    memory = cutlass.utils.SmemAllocator()
    shared_a = memory.allocate_tensor(Float32, LAYOUT, byte_alignment=16)
    shared_b = memory.allocate_tensor(Float32, LAYOUT, byte_alignment=16)

    place = thread // (DEPTH // VECTOR), thread % (DEPTH // VECTOR)  # of the vector that this thread copies
    mine = tiled.get_slice(thread)
    part_a, part_b = mine.partition_A(shared_a), mine.partition_B(shared_b)
    left = tiled.make_fragment_A(part_a[None, None, 0])
    right = tiled.make_fragment_B(part_b[None, None, 0])
    sums = tiled.make_fragment_C(mine.partition_C(tile_c))
    sums.fill(0.0)
    for step in cutlass.range(cute.size(tiles_a, mode=[2])):
        for tiles, shared in ((tiles_a, shared_a), (tiles_b, shared_b)):
            vector = cute.local_tile(tiles[None, None, step], (1, VECTOR), place).load()
            cute.local_tile(shared, (1, VECTOR), place).store(vector.to(Float32))
        cute.arch.sync_threads()
        for k in cutlass.range(DEPTH, unroll_full=True):
            cute.autovec_copy(part_a[None, None, k], left)
            cute.autovec_copy(part_b[None, None, k], right)
            cute.gemm(tiled, sums, left, right, sums)
        cute.arch.sync_threads()
    narrow = cute.make_fragment_like(sums, c.element_type)
    narrow.store(sums.load().to(c.element_type))
    cute.autovec_copy(narrow, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of TILE, K of DEPTH."""
    threads = cute.make_layout((THREADS, THREADS, 1), stride=(THREADS, 1, 0))
    neighbours = cute.make_layout((THREADS, VALUES), stride=(VALUES, 1))  # thread i has 4 i, 4 i + 1, ...
    tiled = cute.make_tiled_mma(
        cute.nvgpu.MmaUniversalOp(Float32), threads, permutation_mnk=(neighbours, neighbours, None)
    )
    grid = c.shape[1] // TILE, c.shape[0] // TILE, 1
    gemm_kernel(a, b, c, tiled).launch(grid=grid, block=tiled.size)


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
