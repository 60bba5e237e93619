# %% [markdown]
# # Puzzle 2: blocks, and the end of the vector
#
# Double each element of a vector of 100 elements, with four blocks of 32 threads. That makes 128 threads: 28 of
# them have nothing to do, and must not touch memory.
#
# ```text
# block          0               1               2               3
# thread    0 ... 31        0 ... 31        0 ... 31        0 ... 3 | 4 ... 31
# element   0 ... 31       32 ... 63       64 ... 95       96 ... 99| none
# ```
#
# Hints: the element of a thread is `block * 32 + thread`. `if i < cute.size(x):` becomes a branch of the kernel.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    # solution
    i = block * 32 + thread
    if i < cute.size(x):
        y[i] = 2.0 * x[i]
    # end


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=cute.ceil_div(cute.size(x), 32), block=32)


# %%
x = np.arange(100, dtype=np.float32)
check(2, launch, [x, np.empty_like(x)], 2 * x)
