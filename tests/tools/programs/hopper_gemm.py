"""A matrix product of a warp that copies by tensor maps and a warpgroup that multiplies, for the debugger."""

import tilewright.cute as cute
from tests.lang.test_tma_pipelines import Gemm
from tests.tools.programs.ampere_gemm import aligned

MADE = Gemm()


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """c (M, N) = a (M, K) times the transpose of b (N, K)."""
    MADE(aligned(a), aligned(b), c)
