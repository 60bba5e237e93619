"""C = relu(A B + bias), bias a row, in one kernel: in the simulator, against NumPy.

    python examples/tenstorrent/fused_matmul.py

All of it is of the matrix engine and the packer, whose relu costs nothing.
"""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Float32

M, N, K = 32, 64, 64


@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor, c: cute.Tensor):
    row, column, _ = cute.arch.block_idx()
    acc = tile.zeros((M, N), Float32)
    for step in range(cute.ceil_div(a.shape[1], K)):
        acc = tile.dot(tile.load(a, (row, step), (M, K)), tile.load(b, (step, column), (K, N)), acc)
    shifted = acc + tile.load(bias, (0, column), (1, N)).to(Float32)
    tile.store(c, (row, column), tile.maximum(shifted, 0.0).to(c.element_type))


@cute.jit
def main(a: cute.Tensor, b: cute.Tensor, bias: cute.Tensor, c: cute.Tensor):
    """`bias` has one row."""
    grid = (cute.ceil_div(c.shape[0], M), cute.ceil_div(c.shape[1], N), 1)
    kernel(a, b, bias, c).launch(grid=grid, block=(128, 1, 1))


def check(target="tenstorrent", sizes=(128, 128, 192)):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n), (1, n)))
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    cute.compile(main, a, b, bias, c, target=target)(a, b, bias, c)
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64), 0)
    return np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    error = check()
    assert error < 3e-3, error
    print(f"fused matmul: relative error {error:.1e}")
