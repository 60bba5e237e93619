"""C = relu(A B + bias), at tile level. `python examples/tile/gemm.py` checks it against NumPy."""

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def gemm_kernel(
    a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr
):  # fmt: skip
    row, column, _ = cute.arch.block_idx()
    sums = tile.zeros((m, n), Float32)
    for step in range(cute.ceil_div(a.shape[1], k)):
        sums = tile.dot(tile.load(a, (row, step), (m, k)), tile.load(b, (step, column), (k, n)), sums)
    sums = tile.maximum(sums + tile.load(bias, (0, column), (1, n)).to(Float32), 0.0)
    tile.store(c, (row, column), sums.to(c.element_type))


@cute.jit
def main(
    a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor, c: cute.Tensor,
    m: Constexpr = 64, n: Constexpr = 64, k: Constexpr = 32, threads: Constexpr = 128,
):  # fmt: skip
    """A is (M, K), B (K, N), bias (1, N), C (M, N), of any size."""
    grid = (cute.ceil_div(c.shape[0], m), cute.ceil_div(c.shape[1], n), 1)
    gemm_kernel(a, b, bias, c, m, n, k).launch(grid=grid, block=(threads, 1, 1))


def check(m, n, k, dtype=np.float16, **options):
    """Whether products of small integers are exact."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
    bias, c = rng.integers(-3, 4, (1, n)).astype(dtype), np.zeros((m, n), np.float32)
    main(a, b, bias, c, **options)
    return np.array_equal(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0))


if __name__ == "__main__":
    for shape in ((64, 64, 64), (50, 70, 33)):
        assert check(*shape)
        print(shape, "exact")
