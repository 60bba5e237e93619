"""y[i] = sum of row i of x, added up in DST over the tiles of the row: in the simulator, against NumPy.

python examples/tenstorrent/row_sum.py
"""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Float32

ROWS, COLUMNS = 32, 64


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    total = tile.zeros((ROWS, 1), Float32)
    for step in range(cute.ceil_div(x.shape[1], COLUMNS)):
        total = total + tile.sum(tile.load(x, (row, step), (ROWS, COLUMNS)).to(Float32), 1)
    tile.store(y, (row, 0), total.to(y.element_type))


@cute.jit
def main(x: cute.Tensor, y: cute.Tensor):
    """`y` has one column."""
    kernel(x, y).launch(grid=(cute.ceil_div(x.shape[0], ROWS), 1, 1), block=(128, 1, 1))


def check(target="tenstorrent", shape=(128, 256)):
    x = np.random.default_rng(0).standard_normal(shape).astype(ml_dtypes.bfloat16)
    y = np.zeros((shape[0], 1), ml_dtypes.bfloat16)
    cute.compile(main, x, y, target=target)(x, y)
    expected = x.astype(np.float64).sum(1, keepdims=True)
    return np.linalg.norm(y.astype(np.float64) - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    error = check()
    assert error < 3e-3, error
    print(f"row sum: relative error {error:.1e}")
