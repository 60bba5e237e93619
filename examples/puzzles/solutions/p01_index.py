# %% [markdown]
# # Puzzle 1: one thread, one element
#
# Add 10 to each element of `x`. The block has as many threads as the vector has elements, and each thread takes one.
#
# ```text
# x        0    1    2    3   ...
# thread   0    1    2    3   ...
# y       10   11   12   13   ...
# ```
#
# Hint: `thread` is the number of the thread that runs, and tensors are read and written by `x[i]`.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    # solution
    y[thread] = x[thread] + 10.0
    # end


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=1, block=32)


# %%
x = np.arange(32, dtype=np.float32)
check(1, launch, [x, np.empty_like(x)], x + 10)
