"""The sum of each row, at tile level: a loop over the tiles of a row. `python examples/tile/row_sum.py` checks it."""

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def row_sum_kernel(x: cute.Tensor, y: cute.Tensor, rows: Constexpr, columns: Constexpr):
    row, _, _ = cute.arch.block_idx()
    total = tile.zeros((rows, columns), Float32)
    for step in range(cute.ceil_div(x.shape[1], columns)):
        total = total + tile.load(x, (row, step), (rows, columns)).to(Float32)
    tile.store(y, (row, 0), tile.sum(total, 1).to(y.element_type))


@cute.jit
def main(x: cute.Tensor, y: cute.Tensor, rows: Constexpr = 32, columns: Constexpr = 32):
    """Sums of the rows of x, of (M, N), into y, of (M, 1)."""
    row_sum_kernel(x, y, rows, columns).launch(grid=(cute.ceil_div(x.shape[0], rows), 1, 1), block=(128, 1, 1))


def check(shape):
    """Whether sums of small integers are exact."""
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float32)
    y = np.zeros((shape[0], 1), np.float32)
    main(x, y)
    return np.array_equal(y, x.sum(1, keepdims=True))


if __name__ == "__main__":
    for shape in ((64, 96), (50, 333)):
        assert check(shape)
        print(shape, "exact")
