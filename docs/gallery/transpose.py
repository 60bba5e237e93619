# %% [markdown]
# # Transpose, and bank conflicts
#
# This page teaches how to see, count and avoid the two costs of moving data: sectors of global memory that are read
# for a few of their bytes, and banks of shared memory that several threads want at once.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.emulate import observe

# %% [markdown]
# ## Straight from global to global
#
# A block of 32×8 threads moves a tile of 32×32 floats. A warp reads a row, which is 4 sectors of 32 bytes, and
# writes a column: 32 places that are far from each other, a sector each.

# %%
TILE, ROWS = 32, 8


@cute.kernel
def naive_kernel(x: cute.Tensor, y: cute.Tensor):
    column, row, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    for step in cutlass.range_constexpr(TILE // ROWS):
        i, j = by * TILE + row + step * ROWS, bx * TILE + column
        y[j, i] = x[i, j]


# %% [markdown]
# ## Through shared memory
#
# Now the tile goes through shared memory. It is written by rows and read by columns, so both global accesses are
# whole rows. The layout of the shared tile is a parameter: the code stays the same for all of them.


# %%
@cute.kernel
def shared_kernel(x: cute.Tensor, y: cute.Tensor, layout: cutlass.Constexpr):
    column, row, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, byte_alignment=128)
    for step in cutlass.range_constexpr(TILE // ROWS):
        at = row + step * ROWS
        tile[at, column] = x[by * TILE + at, bx * TILE + column]
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(TILE // ROWS):
        at = row + step * ROWS
        y[bx * TILE + at, by * TILE + column] = tile[column, at]


@cute.jit
def transpose(x: cute.Tensor, y: cute.Tensor, layout: cutlass.Constexpr):
    grid = (x.shape[1] // TILE, x.shape[0] // TILE, 1)
    if cutlass.const_expr(layout is None):
        naive_kernel(x, y).launch(grid=grid, block=(TILE, ROWS, 1))
    else:
        shared_kernel(x, y, layout).launch(grid=grid, block=(TILE, ROWS, 1))


# %% [markdown]
# Shared memory has 32 banks of 4 bytes. In the plain layout, the 32 elements of a column lie in one bank, and a
# warp that reads a column is served one thread at a time. There are two remedies: a padded row, whose length is an
# odd number of banks (33 floats, or 34 halves), and a *swizzle*, which exchanges places within each row and needs no
# extra memory. This swizzle works for halves too.
#
# The kernels take shapes that are multiples of the tile. For others, round the grid up with `cute.ceil_div`, and
# guard both loops with `if i < x.shape[0] and j < x.shape[1]`; keep the barrier outside of the guard.

# %%
plain = cute.make_layout((TILE, TILE), stride=(TILE, 1))
padded = cute.make_layout((TILE, TILE), stride=(TILE + 1, 1))
swizzled = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, plain)

x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
for name, layout in (("global", None), ("plain", plain), ("padded", padded), ("swizzled", swizzled)):
    y = np.zeros((96, 64), np.float32)
    with observe(counters=True) as reports:
        transpose(x, y, layout)
    (report,) = reports
    assert np.array_equal(y, x.T)
    print(f"{name:9} {report.sectors:5} sectors (ideal {report.sectors_ideal}), {report.bank_conflicts:5} conflicts")

# %% [markdown]
# The layout algebra counts the same without running anything. It takes the layout from a thread of the warp to its
# place, here a column of the tile:

# %%
for layout in (plain, padded, swizzled):
    print(f"{layout!s:36} {cute.bank_conflicts(cute.composition(layout, cute.make_layout((32, 1))), 'f32')}")

# %% [markdown]
# The picture shows why. Each cell has the colour of its bank: a column of the upper tile lies in one bank, and a column
# of the lower tile in all of them. (It shows a tile of 8×8 vectors of 16 bytes, as matrix products use it.)

# %%
vectors = cute.make_layout((8, 64), stride=(64, 1))
cute.swizzle_svg(cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, vectors))

# %% [markdown]
# ## How fast that can be
#
# The library's `tilewright.ops.copy_transpose` moves larger tiles by vectors. On an H200, from one run
# ([all rows](../../bench/results/peers-h200-2026-11-29.json)):
#
# ![Transpose on an H200, as a part of the speed of a copy](../images/copy_transpose_h200.svg)
#
# ## Where to go on
#
# * [A matrix product](gemm.ipynb) needs the same swizzle, so that `ldmatrix` meets no conflicts.
# * [Layouts](../layouts.md) explains swizzles, and `bank_conflicts` and `coalescing`.
