# %% [markdown]
# # Puzzle 3: two dimensions
#
# `y[i, j]` is `a[i] + b[j]`, for 20 rows and 13 columns. Blocks have 8×8 threads, and there are enough of them
# along both dimensions.
#
# ```text
#          b0      b1      b2
# a0    a0 + b0 a0 + b1 a0 + b2
# a1    a1 + b0 a1 + b1 a1 + b2
# ```
#
# Hints: let the threads' x go along a row, so that neighbours write neighbours. Both indices need a guard; `and`
# joins conditions.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, y: cute.Tensor):
    x_in_block, y_in_block, _ = cute.arch.thread_idx()
    block_x, block_y, _ = cute.arch.block_idx()
    # solution
    row, column = block_y * 8 + y_in_block, block_x * 8 + x_in_block
    if row < y.shape[0] and column < y.shape[1]:
        y[row, column] = a[row] + b[column]
    # end


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, y: cute.Tensor):
    grid = (cute.ceil_div(y.shape[1], 8), cute.ceil_div(y.shape[0], 8), 1)
    kernel(a, b, y).launch(grid=grid, block=(8, 8, 1))


# %%
a, b = np.arange(20, dtype=np.float32) * 100, np.arange(13, dtype=np.float32)
check(3, launch, [a, b, np.empty((20, 13), np.float32)], a[:, None] + b, limits={"sectors": 90})
