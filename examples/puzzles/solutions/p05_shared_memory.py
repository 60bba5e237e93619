# %% [markdown]
# # Puzzle 5: threads that exchange values
#
# Reverse each block of 64 elements. A thread reads its element, puts it into shared memory, and takes the one of its
# opposite.
#
# ```text
# x        0   1   2  ...  63  |  64  65 ...
# shared   0   1   2  ...  63
# y       63  62  61  ...   0  | 127 126 ...
# ```
#
# Hints: nobody may read before all have written; `cute.arch.sync_threads()` waits for all threads of the block. Try
# it without: the emulator shows what it says about a race.

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
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64))
    # solution
    shared[thread] = x[block * 64 + thread]
    cute.arch.sync_threads()
    y[block * 64 + thread] = shared[63 - thread]
    # end


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=cute.size(x) // 64, block=64)


# %%
x = np.arange(256, dtype=np.float32)
check(5, launch, [x, np.empty_like(x)], x.reshape(-1, 64)[:, ::-1].reshape(-1), instructions=["ld.shared"])
