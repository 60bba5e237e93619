"""Step 1 of docs/gemm.md: a thread computes an element of C, and reads a row of A and one of B to do it."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32

BLOCK = 32, 8  # threads along N and M: a warp has 32 neighbours of a row of C
ON_EMULATOR = {"shape": (64, 64, 256)}  # M, N, K


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread_n, thread_m, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    row, column = block_m * BLOCK[1] + thread_m, block_n * BLOCK[0] + thread_n
    total = Float32(0)
    for k in cutlass.range(a.shape[1]):
        total += a[row, k].to(Float32) * b[column, k].to(Float32)
    c[row, column] = total.to(c.element_type)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of the block."""
    grid = c.shape[1] // BLOCK[0], c.shape[0] // BLOCK[1], 1
    gemm_kernel(a, b, c).launch(grid=grid, block=(*BLOCK, 1))


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
