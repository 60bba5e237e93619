# %% [markdown]
# # Puzzle 7: a sum over a block
#
# Add 256 numbers in a block of 256 threads, by halving: in each round, the lower half of the threads adds what the
# upper half has.
#
# ```text
# round 0   shared[0 ... 127] += shared[128 ... 255]
# round 1   shared[0 ...  63] += shared[ 64 ... 127]
# ...
# round 7   shared[0]         += shared[1]
# ```
#
# Hints: a `while` loop over a runtime number, or a `for` loop over a constant one, both work. Where do barriers
# have to stand? All threads of the block must reach each of them, so not in a branch that only half of them take.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(256))
    shared[thread] = x[thread]
    # solution
    for step in cutlass.range_constexpr(8):
        half = 128 >> step
        cute.arch.sync_threads()
        if thread < half:
            shared[thread] += shared[thread + half]
    # end
    if thread == 0:
        y[0] = shared[0]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=1, block=256)


# %%
x = np.arange(256, dtype=np.float32)
check(7, launch, [x, np.empty(1, np.float32)], x.sum(keepdims=True))
