"""y = gelu(a * x + b), at tile level. `python examples/tile/elementwise.py` checks it against NumPy."""

import math

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def gelu_kernel(x: cute.Tensor, y: cute.Tensor, a: Float32, b: Float32, rows: Constexpr, columns: Constexpr):
    row, column, _ = cute.arch.block_idx()
    values = a * tile.load(x, (row, column), (rows, columns)).to(Float32) + b
    inner = math.sqrt(2 / math.pi) * (values + 0.044715 * values * values * values)
    tile.store(y, (row, column), (0.5 * values * (1.0 + tile.tanh(inner))).to(y.element_type))


@cute.jit
def main(
    x: cute.Tensor, y: cute.Tensor, a: Float32, b: Float32, rows: Constexpr = 32, columns: Constexpr = 32
):  # fmt: skip
    """Matrices of any size; a block has a tile."""
    grid = (cute.ceil_div(x.shape[0], rows), cute.ceil_div(x.shape[1], columns), 1)
    gelu_kernel(x, y, a, b, rows, columns).launch(grid=grid, block=(128, 1, 1))


def reference(x, a, b):
    values = a * x.astype(np.float64) + b
    return 0.5 * values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))


def check(shape, dtype=np.float32):
    """The greatest error on random numbers."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    y = np.zeros_like(x)
    main(x, y, 1.5, -0.25)
    return np.abs(y - reference(x, 1.5, -0.25)).max()


if __name__ == "__main__":
    for shape in ((64, 96), (50, 33)):
        error = check(shape)
        assert error < 2e-6, error
        print(shape, f"greatest error {error:.1e}")
