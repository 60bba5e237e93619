# %% [markdown]
# # Vector add
#
# This page teaches how threads share out a vector: first one element a thread, then four, so that a thread moves 16
# bytes with one instruction. It shows how to see that in the PTX and in what the memory has to do.

# %%
import numpy as np

import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.emulate import observe

# %% [markdown]
# ## One element a thread
#
# `@cute.kernel` marks device code. Each thread works out its own index, and the guard keeps the last block inside
# the vector.


# %%
@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(cute.ceil_div(cute.size(c), 256), 1, 1), block=(256, 1, 1))


a = np.arange(10_000, dtype=np.float32)
b = np.ones_like(a)
c = np.zeros_like(a)
compiled = cute.compile(add, a, b, c)
compiled(a, b, c)
print(np.array_equal(c, a + b))

# %% [markdown]
# The loads and the store of the PTX move one float each:

# %%
ptx = compiled.stages["ptx"]
print([line.split()[0] for line in ptx.splitlines() if ".global." in line])

# %% [markdown]
# ## Four elements a thread
#
# Memory moves up to 16 bytes a thread in one instruction. `zipped_divide` cuts the vector into tiles of 1024
# elements, one for each block; a *thread-value layout* says which elements of the tile belong to which thread.
# Composed with the tile, it gives a tensor that is indexed by thread and value.

# %%
THREADS, VALUES = 256, 4
TILER, TV = cute.make_layout_tv(cute.make_layout(THREADS), cute.make_layout(VALUES))
print(TILER, TV)


@cute.kernel
def add_vectors_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    mine = [cute.composition(tensor[(None,), block], TV)[thread, None] for tensor in (a, b, c)]
    mine[2].store(mine[0].load() + mine[1].load())


@cute.jit
def add_vectors(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tiled = [cute.zipped_divide(tensor, TILER) for tensor in (a, b, c)]
    blocks = cute.size(tiled[0], mode=[1])
    add_vectors_kernel(*tiled).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


# %% [markdown]
# The picture shows the same distribution for a small tile: thread 0 has the first four elements, thread 1 the next
# four.

# %%
small_tiler, small_tv = cute.make_layout_tv(cute.make_layout(8), cute.make_layout(4))
cute.tv_layout_svg(small_tv, small_tiler)

# %% [markdown]
# Vectors need addresses that are multiples of 16 bytes. NumPy arrays promise only the alignment of their elements, so
# `assumed_align` states more; the call checks that it is true.

# %%
n = 8 * 1024
x, y, z = (from_dlpack(array[:n], assumed_align=16) for array in (a, b, c))
vectors = cute.compile(add_vectors, x, y, z)
c[:] = 0
vectors(x, y, z)
print(np.array_equal(c[:n], (a + b)[:n]))
print([line.split()[0] for line in vectors.stages["ptx"].splitlines() if ".global." in line])

# %% [markdown]
# ## What the memory does
#
# The emulator counts what the memory does. Both kernels move the same sectors of 32 bytes, as few as possible; the
# second one needs fewer instructions.

# %%
for name, run in (("one", lambda: compiled(a[:n], b[:n], c[:n])), ("four", lambda: vectors(x, y, z))):
    with observe(counters=True) as reports:
        run()
    (report,) = reports
    print(f"{name:4} {report.sectors} sectors, ideal {report.sectors_ideal}; {report.instructions} instructions")

# %% [markdown]
# ## Where to go on
#
# * The [tutorial](../tutorial.md) continues with a reduction, and with what a call costs.
# * [Vector add at every stage](../vector-add.md) shows what each stage of the compiler makes of this kernel.
# * `tilewright.ops.elementwise` fuses functions of several tensors, for any shape and alignment.
