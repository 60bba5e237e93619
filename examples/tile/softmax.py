"""Softmax of rows, at tile level: a block holds whole rows.

`python examples/tile/softmax.py` checks it against NumPy.
"""

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, rows: Constexpr, columns: Constexpr):
    row, _, _ = cute.arch.block_idx()
    values = tile.load(x, (row, 0), (rows, columns), pad=-float("inf")).to(Float32)
    powers = tile.exp(values - tile.max(values, 1), fastmath=True)
    tile.store(y, (row, 0), (powers * (1.0 / tile.sum(powers, 1))).to(y.element_type))


@cute.jit
def main(
    x: cute.Tensor, y: cute.Tensor, rows: Constexpr = 32, columns: Constexpr = 128, threads: Constexpr = 128
):  # fmt: skip
    """Rows of x have at most `columns` elements."""
    grid = (cute.ceil_div(x.shape[0], rows), 1, 1)
    softmax_kernel(x, y, rows, columns).launch(grid=grid, block=(threads, 1, 1))


def reference(x):
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def check(shape, dtype=np.float32, **options):
    """The greatest error on random numbers."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    y = np.zeros_like(x)
    main(x, y, **options)
    return np.abs(y - reference(x)).max()


if __name__ == "__main__":
    for shape in ((64, 128), (50, 77)):
        error = check(shape)
        assert error < 1e-6, error
        print(shape, f"greatest error {error:.1e}")
