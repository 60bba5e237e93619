"""c = a * b - a, tile by tile, on a Tenstorrent core grid: in the simulator, against NumPy.

python examples/tenstorrent/elementwise.py
tilewright compile examples/tenstorrent/elementwise.py:main --target tenstorrent -o out \
        --arg 'bf16[256,256]' --arg 'bf16[256,256]' --arg 'bf16[256,256]'
"""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile

ROWS, COLUMNS = 32, 64


@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    row, column, _ = cute.arch.block_idx()
    x = tile.load(a, (row, column), (ROWS, COLUMNS))
    y = tile.load(b, (row, column), (ROWS, COLUMNS))
    tile.store(c, (row, column), x * y - x)


@cute.jit
def main(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    grid = (cute.ceil_div(c.shape[0], ROWS), cute.ceil_div(c.shape[1], COLUMNS), 1)
    kernel(a, b, c).launch(grid=grid, block=(128, 1, 1))


def check(target="tenstorrent", shape=(256, 256)):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros(shape, ml_dtypes.bfloat16)
    cute.compile(main, a, b, c, target=target)(a, b, c)
    wide = a.astype(np.float64)
    expected = wide * b.astype(np.float64) - wide
    return np.linalg.norm(c.astype(np.float64) - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    error = check()
    assert error < 5e-3, error
    print(f"elementwise: relative error {error:.1e}")
