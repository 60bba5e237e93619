# %% [markdown]
# # Softmax
#
# This page teaches how a block works on a row together: it loads the row once, keeps it in registers, reduces it
# over its threads, and stores it once. That is what *fused* means: three steps of arithmetic, and each element
# crosses the memory bus twice.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.emulate import observe

# %% [markdown]
# ## The layout
#
# A row has `columns` elements, and 128 threads share it: each takes four neighbours, then skips over those of the
# other threads to the next four, until the row ends. As a layout from (thread, (neighbour, repetition)) to the
# column that is the expression below. Neighbouring threads read neighbouring vectors, so each warp reads whole
# sectors.

# %%
THREADS = 128


def thread_values(threads, columns):
    """(thread, (4, repetitions)) -> column, for rows of whole repetitions."""
    assert columns % (4 * threads) == 0, f"{columns} columns are no multiple of {4 * threads}"
    return cute.make_layout((threads, (4, columns // (4 * threads))), stride=(4, (1, 4 * threads)))


print(thread_values(THREADS, 1024))

# %% [markdown]
# The same for a row of 64 elements and 8 threads, drawn as 2 lines of 32; T is the thread, V its value:

# %%
cute.tv_layout_svg(cute.make_layout((8, (4, 2)), stride=(8, (2, 1))), (2, 32))

# %% [markdown]
# ## The kernel
#
# `load()` takes a thread's elements into registers, as a vector to calculate with. `reduce` folds a thread's own
# elements; `cute.allreduce` folds over the threads of the block, and every thread gets the result. The compiler
# chooses how: shuffles within a warp, a few words of shared memory between warps.


# %%
@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, columns: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    tv = thread_values(THREADS, columns)
    mine = cute.composition(x[row, None], tv)[thread, None]
    values = mine.load().to(cute.Float32)

    highest = cute.allreduce(values.reduce(cute.ReductionOp.MAX, -cute.Float32.inf, 0), op="max", scope="block")
    powers = cute.math.exp(values - highest)
    total = cute.allreduce(powers.reduce(cute.ReductionOp.ADD, 0.0, 0), op="add", scope="block")

    out = cute.composition(y[row, None], tv)[thread, None]
    out.store((powers / total).to(y.element_type))


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor):
    softmax_kernel(x, y, x.shape[1]).launch(grid=(x.shape[0], 1, 1), block=(THREADS, 1, 1))


# %% [markdown]
# The number of columns has to be known when the kernel is compiled, since it decides how many registers a thread
# needs. `from_dlpack` makes tensors whose shapes are compiled in.

# %%
x = np.random.default_rng(0).standard_normal((8, 1024), dtype=np.float32) * 10
y = np.zeros_like(x)
arguments = [from_dlpack(array, assumed_align=16) for array in (x, y)]
compiled = cute.compile(softmax, *arguments)
compiled(*arguments)

powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
exact = powers / powers.sum(axis=1, keepdims=True)
print(f"greatest error {np.abs(y - exact).max():.0e}")

# %% [markdown]
# ## What it costs
#
# Each element is read once and written once, by vectors of 16 bytes:

# %%
with observe(counters=True) as reports:
    compiled(*arguments)
print(reports[0].sectors * 32, "bytes, the least is", x.nbytes + y.nbytes)
print(sorted({line.split()[0] for line in compiled.stages["ptx"].splitlines() if ".global." in line}))

# %% [markdown]
# ## Rows of any length
#
# The layout above needs rows of whole repetitions, here multiples of 512 columns; for others its assertion stops the
# compilation. For rows of any length, let each thread take every 128th column, and compare the column with the end of
# the row. A place beyond the end counts as -inf, whose power is 0. The layout of the tensors may be dynamic now, so
# one compilation serves all shapes; the price is that loads are narrow, and that the row is read three times.


# %%
@cute.kernel
def any_softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = x.shape[1]

    highest = -cute.Float32.inf
    for column in range(thread, columns, THREADS):
        highest = max(highest, x[row, column].to(cute.Float32))
    highest = cute.allreduce(highest, op="max", scope="block")
    total = 0.0
    for column in range(thread, columns, THREADS):
        total += cute.math.exp(x[row, column].to(cute.Float32) - highest)
    total = cute.allreduce(total, op="add", scope="block")
    for column in range(thread, columns, THREADS):
        power = cute.math.exp(x[row, column].to(cute.Float32) - highest)
        y[row, column] = (power / total).to(y.element_type)


@cute.jit
def any_softmax(x: cute.Tensor, y: cute.Tensor):
    any_softmax_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(THREADS, 1, 1))


for columns in (1000, 77):
    x = np.random.default_rng(0).standard_normal((4, columns)).astype(np.float16)
    y = np.zeros_like(x)
    any_softmax(x, y)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact = powers / powers.sum(axis=1, keepdims=True)
    print(columns, f"greatest error {np.abs(y - exact).max():.0e}")

# %% [markdown]
# ## How fast that can be
#
# The first kernel keeps a row in the registers of one block, which serves rows of up to about 16,000 elements. The
# library's `tilewright.ops.softmax_online` goes further: several rows for a block where rows are short, clusters or
# streaming where they are long, any alignment, gradients. Its figures on an H200, beside PyTorch, Triton and quack,
# from one run ([all rows](../../bench/results/peers-h200-2026-11-29.json)); the roof is the faster of a copy and a
# read of equal bytes:
#
# ![Softmax on an H200: GB/s over the length of rows](../images/softmax_h200.svg)
#
# ## Where to go on
#
# * [Layer norm](layer_norm.ipynb) adds parameters to the same pattern.
# * [Collectives](../communication.md) has the other scopes of `cute.allreduce`, and what they cost.
# * [softmax_online](../kernels/softmax_online.md) says how the library's kernel chooses its plans.
