# %% [markdown]
# # Autotuning
#
# This page teaches how to let measurements choose between configurations of a kernel, and how to keep what they
# chose.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.testing import CantImplementError, JitArguments, autotune_jit, tune

# %% [markdown]
# ## A kernel with parameters
#
# A `Constexpr` is a value of compile time. Here it is the size of a block and the number of elements that a thread
# takes. Each pair gives a kernel of its own.


# %%
@cute.kernel
def scale_kernel(a: cute.Float32, x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr, each: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    for k in cutlass.range_constexpr(each):
        i = (block * each + k) * threads + thread
        if i < cute.size(y):
            y[i] = a * x[i]


@autotune_jit({"threads": [64, 256], "each": [1, 4]}, update_on_change=["n"], warmup_iterations=1, iterations=2)
@cute.jit
def scale(
    a: cute.Float32, x: cute.Tensor, y: cute.Tensor, n: cutlass.Constexpr, threads: cutlass.Constexpr = 64,
    each: cutlass.Constexpr = 1,
):  # fmt: skip
    grid = (cute.ceil_div(cute.size(y), threads * each), 1, 1)
    scale_kernel(a, x, y, threads, each).launch(grid=grid, block=(threads, 1, 1))


# %% [markdown]
# The first call compiles and times all four, and runs the fastest; later calls take it without measuring. When an
# argument that `update_on_change` names has a new value, the choice is made again.

# %%
x = np.arange(10_000, dtype=np.float32)
y = np.zeros_like(x)
scale(3.0, x, y, len(x))
print(np.array_equal(y, 3 * x))
print(sorted(scale.best_config))

# %% [markdown]
# On a GPU, the times are those of the device. On the emulator they say nothing about a GPU; choose there by the
# sectors and conflicts that `observe(counters=True)` counts.
#
# ## When a configuration cannot work
#
# `tune` is the plain function: it calls yours with each configuration, and times the function that comes back. One
# that raises `CantImplementError`, or that does not compile, is left out.


# %%
@cute.jit
def scaled(a: cute.Float32, x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr):
    grid = (cute.ceil_div(cute.size(y), threads), 1, 1)
    scale_kernel(a, x, y, threads, 1).launch(grid=grid, block=(threads, 1, 1))


tried = []


def configured(x, y, threads):
    """A function without arguments for one configuration."""
    if threads > 1024:
        raise CantImplementError("a block has at most 1024 threads")
    compiled = cute.compile(scaled, 3.0, x, y, threads)
    tried.append(threads)
    return lambda: compiled(3.0, x, y)


best = tune(configured, {"threads": [128, 512, 2048]}, JitArguments(x, y), warmup_iterations=1, iterations=2)
print(tried, best["threads"] in tried)

# %% [markdown]
# ## Keeping the choice
#
# Keep a choice in a file of the project, with the device and the shapes on which it was measured. A program that tunes
# at every start is slow to start, and its results change from one machine to the next. The kernel library keeps its
# plans in `tilewright/kernels/tuned`.
#
# ## Where to go on
#
# * [Profiling](../profiling.md): why one configuration is faster than another.
# * [Benchmarks](../benchmarks.md): how times are taken so that they can be compared.
