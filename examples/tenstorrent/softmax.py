"""The softmax of each row: in the simulator, against NumPy.

    python examples/tenstorrent/softmax.py

The maximum, the sum, the difference and the product with the reciprocals are of the matrix engine (FPU); exp and the
reciprocal are of the vector engine (SFPU). plan.json says so: "sfpu": true.
"""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32

ROWS = 32


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, columns: Constexpr):
    row, _, _ = cute.arch.block_idx()
    values = tile.load(x, (row, 0), (ROWS, columns), pad=-float("inf")).to(Float32)
    powers = tile.exp(values - tile.max(values, 1))
    tile.store(y, (row, 0), (powers / tile.sum(powers, 1)).to(y.element_type))


@cute.jit
def main(x: cute.Tensor, y: cute.Tensor, columns: Constexpr = 128):
    """Rows of at most `columns` numbers."""
    kernel(x, y, columns).launch(grid=(cute.ceil_div(x.shape[0], ROWS), 1, 1), block=(128, 1, 1))


def check(target="tenstorrent", shape=(96, 100)):
    x = np.random.default_rng(0).standard_normal(shape).astype(ml_dtypes.bfloat16)
    y = np.zeros(shape, ml_dtypes.bfloat16)
    cute.compile(main, x, y, target=target)(x, y)
    powers = np.exp(x.astype(np.float64))
    expected = powers / powers.sum(1, keepdims=True)
    return np.linalg.norm(y.astype(np.float64) - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    error = check()
    assert error < 5e-3, error
    print(f"softmax: relative error {error:.1e}")
