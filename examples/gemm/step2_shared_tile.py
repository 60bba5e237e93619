"""Step 2 of docs/gemm.md: a block reads tiles of A and B once, side by side, and keeps them in shared memory."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32

TILE = 32
LAYOUT = cute.make_layout((TILE, TILE), stride=(TILE + 2, 1))  # two elements more, so that rows begin in other banks
ON_EMULATOR = {"shape": (64, 64, 256)}  # M, N, K


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    column, row, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE, TILE), (block_m, None))  # (TILE, TILE, steps)
    tiles_b = cute.local_tile(b, (TILE, TILE), (block_n, None))

    memory = cutlass.utils.SmemAllocator()
    shared_a = memory.allocate_tensor(a.element_type, LAYOUT)
    shared_b = memory.allocate_tensor(b.element_type, LAYOUT)

    total = Float32(0)
    for step in cutlass.range(cute.size(tiles_a, mode=[2])):
        shared_a[row, column] = tiles_a[row, column, step]  # a warp reads a row of a tile
        shared_b[row, column] = tiles_b[row, column, step]
        cute.arch.sync_threads()  # the tiles are there
        for k in cutlass.range(TILE, unroll_full=True):
            total += shared_a[row, k].to(Float32) * shared_b[column, k].to(Float32)
        cute.arch.sync_threads()  # nobody reads them any more
    cute.local_tile(c, (TILE, TILE), (block_m, block_n))[row, column] = total.to(c.element_type)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), all multiples of the tile."""
    grid = c.shape[1] // TILE, c.shape[0] // TILE, 1
    gemm_kernel(a, b, c).launch(grid=grid, block=(TILE, TILE, 1))


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
