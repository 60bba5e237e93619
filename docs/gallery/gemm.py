# %% [markdown]
# # A matrix product on tensor cores
#
# This page teaches the three parts of a tensor-core kernel: `cp.async` brings tiles from global to shared memory,
# `ldmatrix` takes them to registers in the order that the tensor cores want, and `make_tiled_mma` says how the
# warps of a block share the product of two tiles. It runs on every GPU from sm_80 on; [Hopper](../hopper.md) has
# the instructions that came later.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.cute.runtime import from_dlpack

# %% [markdown]
# ## The tiled product
#
# One `mma.sync` of a warp multiplies 16×16 elements of A with 16×8 of B, and adds to 16×8 of C. `make_tiled_mma`
# repeats it: here 2×2 warps, each of which takes two steps along N, which makes 32×32×16 with one set of
# instructions.

# %%
TILE_M, TILE_N, TILE_K = 64, 64, 32
OP = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
ATOMS, PERMUTATION = (2, 2, 1), (32, 32, 16)


@cute.jit
def describe():
    tiled = cute.make_tiled_mma(OP, ATOMS, permutation_mnk=PERMUTATION)
    print(tiled.size, "threads")
    print("A", tiled.tv_layout_A_tiled)
    print("C", tiled.tv_layout_C_tiled)


describe()

# %% [markdown]
# Which thread holds which element of C, for one warp, T the thread and V its register:

# %%
C_OF_ONE_WARP = cute.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
cute.tv_layout_svg(C_OF_ONE_WARP, (16, 8))

# %% [markdown]
# ## Shared memory
#
# A row of the tile of A has 32 halves, four vectors of 16 bytes. `ldmatrix` reads eight rows at once, at the same
# column: in a plain layout they would lie in few banks. The swizzle exchanges the vectors of a row by the number of
# the row.


# %%
def shared_layout(rows):
    """(rows, TILE_K), K contiguous, without bank conflicts for ldmatrix."""
    return cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((rows, TILE_K), stride=(TILE_K, 1))
    )


for layout in (cute.make_layout((TILE_M, TILE_K), stride=(TILE_K, 1)), shared_layout(TILE_M)):
    eight_rows = cute.composition(layout, cute.make_layout((8, 8), stride=(1, TILE_M)))
    print(cute.bank_conflicts(eight_rows, "f16"))

# %% [markdown]
# ## The kernel
#
# A *tiled copy* is to copies what the tiled product is to products: an instruction, repeated over threads and
# values. `partition_S` and `partition_D` give a thread its part of source and destination, and `cute.copy` moves
# it.
#
# The loop over K is the simplest one that is right: copy a tile, wait, multiply, and go on when all threads have
# done with it. [Pipelines](pipelines.ipynb) lets copies and products overlap.


# %%
@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, fill: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE_M, TILE_K), (row, None))  # (TILE_M, TILE_K, steps)
    tiles_b = cute.local_tile(b, (TILE_N, TILE_K), (column, None))
    tile_c = cute.local_tile(c, (TILE_M, TILE_N), (row, column))

    memory = cutlass.utils.SmemAllocator()
    shared_a = memory.allocate_tensor(cute.Float16, shared_layout(TILE_M), byte_alignment=1024)
    shared_b = memory.allocate_tensor(cute.Float16, shared_layout(TILE_N), byte_alignment=1024)

    # Global to shared memory: each thread's part of a tile.
    filling = fill.get_slice(thread)
    from_a, into_a = filling.partition_S(tiles_a), filling.partition_D(shared_a)
    from_b, into_b = filling.partition_S(tiles_b), filling.partition_D(shared_b)

    # Registers: fragments for the product, and how ldmatrix fills them.
    mine = tiled.get_slice(thread)
    left = tiled.make_fragment_A(mine.partition_A(shared_a))
    right = tiled.make_fragment_B(mine.partition_B(shared_b))
    sums = tiled.make_fragment_C(mine.partition_C(tile_c).shape)
    sums.fill(0.0)
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    read_a = cute.make_tiled_copy_A(ldmatrix, tiled).get_slice(thread)
    read_b = cute.make_tiled_copy_B(ldmatrix, tiled).get_slice(thread)

    for step in cutlass.range(cute.size(tiles_a, mode=[2])):
        cute.copy(fill, from_a[None, None, None, step], into_a)
        cute.copy(fill, from_b[None, None, None, step], into_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()  # all copies have arrived
        cute.copy(read_a, read_a.partition_S(shared_a), read_a.retile(left))
        cute.copy(read_b, read_b.partition_S(shared_b), read_b.retile(right))
        cute.gemm(tiled, sums, left, right, sums)
        cute.arch.sync_threads()  # nobody reads the tiles any more
    cute.autovec_copy(sums, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C (M, N) = A (M, K) · B (N, K), all multiples of the tile."""
    tiled = cute.make_tiled_mma(OP, ATOMS, permutation_mnk=PERMUTATION)
    vector = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), cute.Float16, num_bits_per_copy=128
    )
    fill = cute.make_tiled_copy_tv(vector, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
    grid = (c.shape[0] // TILE_M, c.shape[1] // TILE_N, 1)
    gemm_kernel(a, b, c, tiled, fill).launch(grid=grid, block=(tiled.size, 1, 1))


# %% [markdown]
# Small integers have exact products and sums, so the result must be equal, not just close:

# %%
generator = np.random.default_rng(0)
a = generator.integers(-4, 5, (128, 96)).astype(np.float16)
b = generator.integers(-4, 5, (64, 96)).astype(np.float16)
c = np.zeros((128, 64), np.float32)
arguments = [from_dlpack(array, assumed_align=16) for array in (a, b, c)]
compiled = cute.compile(gemm, *arguments)
compiled(*arguments)
print(np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T))

# %% [markdown]
# The instructions that were meant are the ones in the PTX, where the three steps along K stand one after the other:

# %%
ptx = compiled.stages["ptx"]
for instruction in ("cp.async.cg.shared.global", "ldmatrix.sync", "mma.sync"):
    print(f"{instruction:26} {ptx.count(instruction)}")

# %% [markdown]
# ## Other types, and B by rows
#
# What changes for another problem:
#
# * **bfloat16.** Write `cute.BFloat16` for `cute.Float16`, in `OP` too. NumPy has the type from `ml_dtypes`.
# * **A result in 16 bits.** Convert the sums before they are stored: `out = cute.make_rmem_tensor_like(sums,
#   cute.BFloat16)`, `out.store(sums.load().to(cute.BFloat16))`, then `cute.autovec_copy(out, ...)`.
# * **B stored as (K, N), N contiguous.** Pass `b.T`, which is (N, K) with the strides (1, N). Keep N contiguous in
#   shared memory as well: `cute.make_layout((TILE_N, TILE_K), stride=(1, TILE_N))` under `cute.make_swizzle(3, 3, 4)`.
#   Fill it by a tiled copy whose vectors lie along N, for tiles of 128 columns `cute.make_tiled_copy_tv(vector,
#   cute.make_layout((16, 8), stride=(1, 16)), cute.make_layout((8, 1)))`. `ldmatrix` then transposes:
#   `warp.LdMatrix8x8x16bOp(True, 4)`.
# * **Extents that are no multiples of the tile.** Copies need a predicate, which `cute.copy(..., pred=)` takes; the
#   library's kernel has them.

# %% [markdown]
# ## How fast that can be
#
# `tilewright.ops.gemm` has larger tiles, several stages, an order of tiles that suits the cache, and epilogues. On
# an H200 beside cuBLAS, which uses Hopper's `wgmma` there, from one run ([all
# rows](../../bench/results/peers-h200-2026-11-29.json)):
#
# ![Matrix products on an H200: TFLOP/s over the extent](../images/gemm_h200.svg)
#
# ## Where to go on
#
# * [Pipelines](pipelines.ipynb): copies that overlap with products.
# * [Hopper](../hopper.md): TMA and `wgmma`.
# * [gemm](../kernels/gemm.md): the library's kernel, part by part.
