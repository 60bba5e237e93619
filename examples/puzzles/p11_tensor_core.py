# %% [markdown]
# # Puzzle 11: one instruction of a tensor core
#
# A warp multiplies A (16, 16) with B (8, 16) and writes C (16, 8) = A·Bᵀ, by a single `mma.sync`. The instruction
# wants each element in a certain register of a certain lane; a `TiledMma` knows which, and partitions tensors
# accordingly.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack
from tilewright.tools.puzzles import check

# %% [markdown]
# Where C lies: T is the lane, V its register.

# %%
cute.tv_layout_svg(cute.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8))), (16, 8))

# %% [markdown]
# Hints: `mine.partition_A(a)` is this lane's part of A in memory, `tiled.make_fragment_A(part)` are registers for
# it, and `cute.autovec_copy(source, target)` moves one to the other. C begins as zero: `sums.fill(0.0)`. Then
# `cute.gemm(tiled, sums, left, right, sums)`, and back to memory.


# %%
@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    tiled = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    mine = tiled.get_slice(lane)
    # Your code.


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    kernel(a, b, c).launch(grid=1, block=32)


# %%
generator = np.random.default_rng(0)
a, b = (generator.integers(-4, 5, (rows, 16)).astype(np.float16) for rows in (16, 8))
product = a.astype(np.float64) @ b.astype(np.float64).T
out = np.empty((16, 8), np.float32)
check(11, launch, [from_dlpack(array) for array in (a, b, out)], product, instructions=["mma.sync"], output=out)
