# %% [markdown]
# # Puzzle 10: a transpose without bank conflicts
#
# The kernel is complete, but slow: it goes through shared memory, and 32 threads that read a column of the tile
# meet in one bank. Change only the layout of the tile.
#
# Hints: shared memory has 32 banks of 4 bytes; element k of a Float32 tile lies in bank k modulo 32. Two layouts do
# it: a stride that is odd, or a swizzle. `cute.bank_conflicts(column, "f32")` says what a warp has to expect of a
# layout.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.tools.puzzles import check

# %% [markdown]
# What is wrong, on a tile of 8×8: the number in a cell is the offset, and the offsets of a column leave the same
# remainder.

# %%
cute.layout_svg(cute.make_layout((8, 8), stride=(8, 1)))


# %%
def tile_layout():
    """(32, 32) -> offset in shared memory."""
    # Your code.
    return cute.make_layout((32, 32), stride=(32, 1))


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    column, row, _ = cute.arch.thread_idx()
    block_x, block_y, _ = cute.arch.block_idx()
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, tile_layout(), byte_alignment=128)
    for step in cutlass.range_constexpr(4):
        at = row + step * 8
        tile[at, column] = x[block_y * 32 + at, block_x * 32 + column]
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(4):
        at = row + step * 8
        y[block_x * 32 + at, block_y * 32 + column] = tile[column, at]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=(x.shape[1] // 32, x.shape[0] // 32, 1), block=(32, 8, 1))


# %%
x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
check(10, launch, [x, np.empty((32, 64), np.float32)], x.T, limits={"bank_conflicts": 0, "sectors": 512})
