# %% [markdown]
# # Puzzle 9: softmax of rows of any length
#
# A warp takes a row of 100 elements, lane by lane: lane 0 has elements 0, 32, 64 and 96. The result is
# `exp(x - max) / sum(exp(x - max))`; without the maximum, large numbers overflow, and these are large.
#
# ```text
# 1. the maximum of the row     each lane of its elements, then the warp of its lanes
# 2. the sum of the powers      the same
# 3. write
# ```
#
# Hints: a row has `cute.ceil_div(columns, 32)` steps, and the last one needs a guard. A variable that a loop
# changes must exist before it: `highest = -cute.Float32.inf`. `cute.arch.warp_reduction_max(value)` and
# `warp_reduction_sum` fold over the lanes.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    lane = cute.arch.lane_idx()
    row, _, _ = cute.arch.block_idx()
    columns = x.shape[1]
    # Your code.


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=x.shape[0], block=32)


# %%
x = np.random.default_rng(0).standard_normal((4, 100), dtype=np.float32) * 200
powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
check(9, launch, [x, np.empty_like(x)], powers / powers.sum(axis=1, keepdims=True), tolerance=1e-6)
