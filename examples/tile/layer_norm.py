"""Layer norm of rows with weight and bias, at tile level.

`python examples/tile/layer_norm.py` checks it against NumPy.
"""

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def layer_norm_kernel(
    x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, eps: Float32, rows: Constexpr,
    columns: Constexpr,
):  # fmt: skip
    row, _, _ = cute.arch.block_idx()
    values = tile.load(x, (row, 0), (rows, columns)).to(Float32)
    count = Float32(x.shape[1])
    mean = tile.sum(values, 1) / count
    # Columns beyond the row are zeros: each adds mean² to the sum of squares, which is taken off again.
    squares = tile.sum((values - mean) * (values - mean), 1) - (columns - count) * mean * mean
    normal = (values - mean) * tile.rsqrt(squares / count + eps)
    scaled = normal * tile.load(weight, (0, 0), (1, columns)).to(Float32)
    shifted = scaled + tile.load(bias, (0, 0), (1, columns)).to(Float32)
    tile.store(y, (row, 0), shifted.to(y.element_type))


@cute.jit
def main(
    x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, eps: Float32 = 1e-5,
    rows: Constexpr = 32, columns: Constexpr = 128, threads: Constexpr = 128,
):  # fmt: skip
    """Rows of x, of (M, N), have at most `columns` elements; weight and bias are (1, N)."""
    grid = (cute.ceil_div(x.shape[0], rows), 1, 1)
    layer_norm_kernel(x, weight, bias, y, eps, rows, columns).launch(grid=grid, block=(threads, 1, 1))


def reference(x, weight, bias, eps=1e-5):
    x = x.astype(np.float64)
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias


def check(shape, dtype=np.float32, **options):
    """The greatest error on random numbers."""
    rng = np.random.default_rng(0)
    x = (3 * rng.standard_normal(shape) + 1).astype(dtype)
    weight, bias = (rng.standard_normal((1, shape[1])).astype(dtype) for _ in range(2))
    y = np.zeros_like(x)
    main(x, weight, bias, y, **options)
    return np.abs(y - reference(x, weight, bias)).max()


if __name__ == "__main__":
    for shape in ((64, 128), (50, 77)):
        error = check(shape)
        assert error < 1e-5, error
        print(shape, f"greatest error {error:.1e}")
