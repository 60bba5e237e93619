# %% [markdown]
# # Layer norm
#
# This page teaches two things that softmax does not need: parameters that all rows share, and a variance that stays
# exact where the mean is large.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

# %% [markdown]
# ## The kernel
#
# A block of 128 threads takes a row, as in [softmax](softmax.ipynb). The row stays in registers, so the variance
# can be computed from the differences to the mean. The formula that needs only one pass, the mean of squares less
# the square of the mean, subtracts two large numbers; [below](#why-two-passes) it goes wrong.
#
# `weight` and `bias` are vectors of one element a column. They are partitioned by the same layout as the row, so
# that thread and value meet the column they belong to.

# %%
THREADS = 128


def thread_values(threads, columns):
    """(thread, (4, repetitions)) -> column."""
    return cute.make_layout((threads, (4, columns // (4 * threads))), stride=(4, (1, 4 * threads)))


@cute.jit
def mean_over_block(values: cute.TensorSSA, columns: cutlass.Constexpr):
    """The mean of a row, of which this thread has `values`; all threads get it."""
    return cute.allreduce(values.reduce(cute.ReductionOp.ADD, 0.0, 0), op="add", scope="block") / columns


@cute.kernel
def layer_norm_kernel(
    x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, eps: cute.Float32,
    two_passes: cutlass.Constexpr,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = cutlass.const_expr(x.shape[1])
    tv = thread_values(THREADS, columns)
    mine, scale, shift, out = (
        cute.composition(vector, tv)[thread, None] for vector in (x[row, None], weight, bias, y[row, None])
    )
    values = mine.load().to(cute.Float32)
    mean = mean_over_block(values, columns)
    centred = values - mean
    if cutlass.const_expr(two_passes):
        variance = mean_over_block(centred * centred, columns)
    else:
        variance = mean_over_block(values * values, columns) - mean * mean
    normal = centred * cute.math.rsqrt(variance + eps)
    out.store((normal * scale.load() + shift.load()).to(y.element_type))


@cute.jit
def layer_norm(
    x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, eps: cute.Float32,
    two_passes: cutlass.Constexpr,
):  # fmt: skip
    grid = (x.shape[0], 1, 1)
    layer_norm_kernel(x, weight, bias, y, eps, two_passes).launch(grid=grid, block=(THREADS, 1, 1))


# %% [markdown]
# ## Against NumPy in float64


# %%
def reference(x, weight, bias, eps):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) * weight + bias


def greatest_error(x, two_passes=True, eps=1e-5):
    """Run the kernel on random parameters; the greatest distance from the reference."""
    generator = np.random.default_rng(1)
    weight, bias = generator.standard_normal((2, x.shape[1]), dtype=np.float32)
    y = np.zeros_like(x)
    tensors = [from_dlpack(array, assumed_align=16) for array in (x, weight, bias, y)]
    layer_norm(*tensors, eps, two_passes)
    return np.abs(y - reference(x, weight, bias, eps)).max()


x = np.random.default_rng(0).standard_normal((8, 1024), dtype=np.float32)
print(f"greatest error {greatest_error(x):.0e}")

# %% [markdown]
# ## Why two passes
#
# Add 3000 to every element. The variance stays 1, but the mean of squares is about nine million, where neighbouring
# float32 numbers are 1 apart. The difference has lost all of its digits; in some rows it is negative, and its root
# is NaN. The two passes lose only the rounding of the mean itself:

# %%
far = x + np.float32(3000)
print(f"differences to the mean: {greatest_error(far):.0e}")
print(f"squares less the mean's: {greatest_error(far, two_passes=False):.0e}")

# %% [markdown]
# ## How fast that can be
#
# The row is in registers, so the second pass costs arithmetic but no memory traffic. The library's
# `tilewright.ops.layernorm` on an H200 beside its peers, from one run
# ([all rows](../../bench/results/peers-h200-2026-11-29.json)):
#
# ![Layer norm on an H200: GB/s over the length of rows](../images/layernorm_h200.svg)
#
# ## Where to go on
#
# * [Transpose](transpose.ipynb) is about shared memory.
# * [layernorm](../kernels/layernorm.md) has the backward pass, whose sums over rows need several blocks.
