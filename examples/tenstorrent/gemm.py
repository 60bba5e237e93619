"""C = A B of (M, K) and (K, N), accumulated in DST: in the simulator, against NumPy.

python examples/tenstorrent/gemm.py
tilewright compile examples/tenstorrent/gemm.py:main --target tenstorrent -o out \
        --arg 'bf16[256,256]' --arg 'bf16[256,256]' --arg 'bf16[256,256]'
"""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr, Float32


@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr):
    row, column, _ = cute.arch.block_idx()
    acc = tile.zeros((m, n), Float32)
    for step in range(cute.ceil_div(a.shape[1], k)):
        acc = tile.dot(tile.load(a, (row, step), (m, k)), tile.load(b, (step, column), (k, n)), acc)
    tile.store(c, (row, column), acc.to(c.element_type))


@cute.jit
def main(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr = 64, n: Constexpr = 64, k: Constexpr = 32):
    grid = (cute.ceil_div(c.shape[0], m), cute.ceil_div(c.shape[1], n), 1)
    kernel(a, b, c, m, n, k).launch(grid=grid, block=(128, 1, 1))


def check(target="tenstorrent", sizes=(256, 256, 256), options=None):
    m, n, k = sizes
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    cute.compile(main, a, b, c, target=target, options=options)(a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    error = check()
    assert error < 2.5e-3, error
    print(f"gemm: relative error {error:.1e}")
