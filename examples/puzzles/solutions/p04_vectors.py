# %% [markdown]
# # Puzzle 4: sixteen bytes at a time
#
# Negate a vector of 512 elements with 128 threads. Each thread takes four neighbours, as one vector, so that it
# moves 16 bytes by one load and one store.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.tools.puzzles import check

# %% [markdown]
# The first eight threads of the vector, T the thread and V the element that it takes:

# %%
cute.tv_layout_svg(cute.make_layout((8, 4), stride=(4, 1)), (1, 32))

# %% [markdown]
# Hints: `cute.local_tile(x, (4,), (thread,))` is a tensor of the four elements. `load()` gives them as a vector,
# which can be calculated with, and `store(vector)` writes one.


# %%
@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    # solution
    mine = cute.local_tile(x, (4,), (thread,))
    cute.local_tile(y, (4,), (thread,)).store(-mine.load())
    # end


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=1, block=128)


# %%
x = np.arange(512, dtype=np.float32)
out = np.empty_like(x)
arguments = [from_dlpack(array, assumed_align=16) for array in (x, out)]
check(4, launch, arguments, -x, instructions=["ld.global.v4", "st.global.v4"], output=out)
