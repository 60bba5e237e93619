# %% [markdown]
# # Puzzle 8: counting together
#
# Count how often each number from 0 to 31 is among 1000. Four blocks of 256 threads count in shared memory first,
# so that each block touches the result only 32 times.
#
# ```text
# 1. clear the block's counts        a thread for each count
# 2. count the block's elements      an atomic addition for each element
# 3. add the counts to the result    an atomic addition for each count
# ```
#
# Hints: `cute.arch.atomic_add(pointer, value)` adds without losing another thread's addition. `t.iterator` is the
# pointer to the first element of a tensor; pointers can be added to. What stands between the steps? Shared memory
# holds anything at first.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.tools.puzzles import check


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    counts = cutlass.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(32))
    i = block * 256 + thread
    # solution
    if thread < 32:
        counts[thread] = 0
    cute.arch.sync_threads()
    if i < cute.size(x):
        cute.arch.atomic_add(counts.iterator + x[i], 1)
    cute.arch.sync_threads()
    if thread < 32:
        cute.arch.atomic_add(y.iterator + thread, counts[thread])
    # end


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=cute.ceil_div(cute.size(x), 256), block=256)


# %%
x = np.random.default_rng(0).integers(0, 32, 1000).astype(np.int32)
check(8, launch, [x, np.empty(32, np.int32)], np.bincount(x, minlength=32), start=0, instructions=["shared.add"])
