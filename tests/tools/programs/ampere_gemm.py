"""A matrix product on tensor cores with cp.async, ldmatrix and mma.sync, for the debugger."""

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_operands import ALIGNMENT, Operand
from tilewright.kernels.gemm_plans import GemmPlan
from tilewright.kernels.gemm_sm80 import accumulate

HALF = Operand(cutlass.Float16, True, 8)
PLAN = GemmPlan(HALF, HALF, (128, 128, 32), (2, 2), 3)


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, plan: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    m, n, k = plan.tile
    memory = cutlass.utils.SmemAllocator().allocate(plan.shared_bytes, ALIGNMENT)
    tiled = plan.tiled_mma()
    steps = cute.size(a, mode=[1]) // k
    sums = accumulate(a, b, (row, column), (0, steps), memory, tiled, plan)
    tile = cute.local_tile(d, (m, n), (row, column))
    cute.autovec_copy(sums, tiled.get_slice(thread).partition_C(tile))


@cute.jit
def aligned(matrix: cute.Tensor) -> cute.Tensor:
    """The same rows, which begin at multiples of 16 bytes."""
    row = cute.assume(matrix.stride[0], divby=8)
    layout = cute.make_layout(matrix.shape, stride=(row, 1))
    return cute.make_tensor(matrix.iterator.with_alignment(16), layout)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor):
    """d (M, N) = a (M, K) times the transpose of b (N, K)."""
    grid = (a.shape[0] // PLAN.tile[0], b.shape[0] // PLAN.tile[1], 1)
    gemm_kernel(aligned(a), aligned(b), d, PLAN).launch(grid=grid, block=(PLAN.threads, 1, 1))
