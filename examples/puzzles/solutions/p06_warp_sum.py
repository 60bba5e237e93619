# %% [markdown]
# # Puzzle 6: a sum within a warp
#
# Each of four warps adds its 32 elements; every lane writes the sum. The lanes of a warp can read each other's
# registers: `cute.arch.shuffle_sync_bfly(value, offset=n)` gives the value of the lane whose number differs in the
# bit n.
#
# ```text
# lane           0      1      2      3
# value          a      b      c      d
# offset=1      a+b    a+b    c+d    c+d
# offset=2    a+b+c+d   ...    ...    ...
# ```
#
# Hints: five exchanges are enough for 32 lanes. `for step in cutlass.range_constexpr(5):` is unrolled while
# tracing, so `1 << step` is a constant.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    value = x[thread]
    # solution
    for step in cutlass.range_constexpr(5):
        value += cute.arch.shuffle_sync_bfly(value, offset=1 << step)
    # end
    y[thread] = value


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=1, block=128)


# %%
x = np.arange(128, dtype=np.float32)
sums = np.repeat(x.reshape(4, 32).sum(axis=1), 32)
check(6, launch, [x, np.empty_like(x)], sums, instructions=["shfl.sync"])
