# %% [markdown]
# # Finding mistakes
#
# This page teaches what to do when a kernel is wrong: what the emulator finds by itself, how to print, how to stop
# in a debugger, and how to find the first number that is not one.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


def reported(function, *arguments):
    """Run on the emulator; the error, shortened to what is the same on every machine."""
    try:
        cute.compile(function, *arguments, target="emu")(*arguments)
    except cutlass.TilewrightError as error:
        print(error.message)
        print("hint:", error.hint)


# %% [markdown]
# ## A missing barrier
#
# Each thread writes one element of shared memory and reads that of another thread. Without a barrier in between, the
# result depends on which warp is first; on a GPU it is right most of the time. The emulator orders accesses by what
# the program guarantees, not by when they happened, and reports the pair.


# %%
@cute.kernel
def reverse_kernel(x: cute.Tensor, barrier: cutlass.Constexpr):
    i, _, _ = cute.arch.thread_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(128))
    shared[i] = x[i]
    if cutlass.const_expr(barrier):
        cute.arch.sync_threads()
    x[i] = shared[127 - i]


@cute.jit
def reverse(x: cute.Tensor, barrier: cutlass.Constexpr):
    reverse_kernel(x, barrier).launch(grid=1, block=128)


x = np.arange(128, dtype=np.float32)
reported(reverse, x, False)
reported(reverse, x, True)

# %% [markdown]
# With the barrier, the second call reports nothing. `print(error)` shows more than its first line: the kernel, the
# line of the source, the line of the PTX, block, threads and address.
#
# ## An access out of bounds


# %%
@cute.kernel
def shift_kernel(x: cute.Tensor, y: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    y[i] = x[i + 1]


@cute.jit
def shift(x: cute.Tensor, y: cute.Tensor):
    shift_kernel(x, y).launch(grid=1, block=cute.size(y))


reported(shift, x, np.zeros_like(x))

# %% [markdown]
# ## Printing
#
# `print` runs while the kernel is traced, and shows what is known then: types, layouts, constants. `cute.printf`
# runs with the kernel. Let few threads print, and say which.


# %%
@cute.kernel
def shown_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    value = x[i] * 2.0
    print("while tracing:", value, x.layout)
    if i % 48 == 0:
        cute.printf("thread %d has %f", i, value)


@cute.jit
def shown(x: cute.Tensor):
    shown_kernel(x).launch(grid=1, block=cute.size(x))


cute.compile(shown, x, target="emu")(x)

# %% [markdown]
# ## A debugger while tracing
#
# A kernel is traced by running it, so `breakpoint()` and `pdb` stop in it while it is compiled. You see the variables
# with their types and layouts, but not their values. The emulator has those: `tilewright.emulate.Debugger` records
# the steps of one thread, and [a debugger with a prompt](../debugging.md) steps through the kernel.

# %%
from tilewright.emulate import Debugger, observe

compiled = cute.compile(reverse, x, True, target="emu")
watcher = Debugger(block=0, thread=5)
with observe(debugger=watcher):
    compiled(x, True)
print(
    [step.instruction.split()[0] for step in watcher.steps if "shared" in step.instruction or "bar" in step.instruction]
)

# %% [markdown]
# ## The first number that is not one
#
# NaN is the only number that differs from itself. A guard like the one below costs little, and prints the input and
# where it was; remove it when you have found the mistake.


# %%
@cute.kernel
def log_kernel(x: cute.Tensor, y: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    value = cute.math.log(x[i])
    if value != value:
        cute.printf("log(%f) in thread %d", x[i], i)
    y[i] = value


@cute.jit
def logarithms(x: cute.Tensor, y: cute.Tensor):
    log_kernel(x, y).launch(grid=1, block=cute.size(x))


x = np.arange(32, dtype=np.float32) + 1
x[7] = -1.5
cute.compile(logarithms, x, np.zeros_like(x), target="emu")(x, np.zeros_like(x))

# %% [markdown]
# ## Where to go on
#
# * [The emulator](../emulator.md): all that is checked, and checkers of your own.
# * [Profiling](../profiling.md): a kernel that is right, and slow.
