"""Block-level programs that several tests use."""

from __future__ import annotations

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr):
    row, column, _ = cute.arch.block_idx()
    acc = tile.zeros((m, n), Float32)
    for step in range(cute.ceil_div(a.shape[1], k)):
        acc = tile.dot(tile.load(a, (row, step), (m, k)), tile.load(b, (step, column), (k, n)), acc)
    tile.store(c, (row, column), acc.to(c.element_type))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr = 32, n: Constexpr = 32, k: Constexpr = 32):
    """C = A B, of (M, K) and (K, N)."""
    grid = (cute.ceil_div(c.shape[0], m), cute.ceil_div(c.shape[1], n), 1)
    gemm_kernel(a, b, c, m, n, k).launch(grid=grid, block=(128, 1, 1))


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, rows: Constexpr, columns: Constexpr):
    row, _, _ = cute.arch.block_idx()
    values = tile.load(x, (row, 0), (rows, columns), pad=-float("inf")).to(Float32)
    powers = tile.exp(values - tile.max(values, 1))
    tile.store(y, (row, 0), (powers / tile.sum(powers, 1)).to(y.element_type))


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor, rows: Constexpr = 32, columns: Constexpr = 128):
    """Rows of y: softmax of those of x, which are at most `columns` long."""
    softmax_kernel(x, y, rows, columns).launch(grid=(cute.ceil_div(x.shape[0], rows), 1, 1), block=(128, 1, 1))
