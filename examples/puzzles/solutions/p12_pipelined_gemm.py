# %% [markdown]
# # Puzzle 12: a matrix product whose copies run ahead
#
# C (M, N) = A (M, K) · Bᵀ, B (N, K), in tiles of 32×32×16, with a ring of three stages in shared memory. While the
# tensor cores work on one stage, `cp.async` fills the next two. All is there but the loop over K.
#
# ```text
# step             0        1        2        3
# waits for        0        1        2        3
# starts to copy   2        3        4        5        into stage (step + 2) % 3
# multiplies       0        1        2        3        out of stage step % 3
# ```
#
# Hints, in the order of the loop:
#
# * `cute.arch.cp_async_wait_group(n)` waits until at most n groups of copies are under way. Two are when a step
#   begins; how many may remain?
# * Every thread waited for its own copies. What shows them to the others, and keeps a stage from being overwritten
#   while somebody still reads it?
# * Copy only where a tile is left, but close a group at each step (`cute.arch.cp_async_commit_group()`), so that
#   counts stay right.
# * `read_a.partition_S(shared_a)[None, None, None, stage]` is this thread's part of a stage, `read_a.retile(left)`
#   the registers as the copy sees them.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.cute.runtime import from_dlpack
from tilewright.tools.puzzles import check

TILE, DEPTH, STAGES = 32, 16, 3


# %%
@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma, fill: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    tiles_a = cute.local_tile(a, (TILE, DEPTH), (row, None))
    tiles_b = cute.local_tile(b, (TILE, DEPTH), (column, None))
    steps = cute.size(tiles_a, mode=[2])

    memory = cutlass.utils.SmemAllocator()
    ring = cute.make_layout((TILE, DEPTH, STAGES), stride=(DEPTH, 1, TILE * DEPTH))
    shared_a = memory.allocate_tensor(cute.Float16, ring, byte_alignment=128)
    shared_b = memory.allocate_tensor(cute.Float16, ring, byte_alignment=128)
    filling = fill.get_slice(thread)
    from_a, into_a = filling.partition_S(tiles_a), filling.partition_D(shared_a)
    from_b, into_b = filling.partition_S(tiles_b), filling.partition_D(shared_b)

    mine = tiled.get_slice(thread)
    left = tiled.make_fragment_A(mine.partition_A(shared_a)[None, None, None, 0])
    right = tiled.make_fragment_B(mine.partition_B(shared_b)[None, None, None, 0])
    tile_c = mine.partition_C(cute.local_tile(c, (TILE, TILE), (row, column)))
    sums = tiled.make_fragment_C(tile_c)
    sums.fill(0.0)
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    read_a = cute.make_tiled_copy_A(ldmatrix, tiled).get_slice(thread)
    read_b = cute.make_tiled_copy_B(ldmatrix, tiled).get_slice(thread)

    for stage in cutlass.range_constexpr(STAGES - 1):
        if stage < steps:
            cute.copy(fill, from_a[None, None, None, stage], into_a[None, None, None, stage])
            cute.copy(fill, from_b[None, None, None, stage], into_b[None, None, None, stage])
        cute.arch.cp_async_commit_group()

    for step in cutlass.range(steps):
        stage, ahead = step % STAGES, step + STAGES - 1
        # solution
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        if ahead < steps:
            cute.copy(fill, from_a[None, None, None, ahead], into_a[None, None, None, ahead % STAGES])
            cute.copy(fill, from_b[None, None, None, ahead], into_b[None, None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        cute.copy(read_a, read_a.partition_S(shared_a)[None, None, None, stage], read_a.retile(left))
        cute.copy(read_b, read_b.partition_S(shared_b)[None, None, None, stage], read_b.retile(right))
        cute.gemm(tiled, sums, left, right, sums)
        # end
    cute.autovec_copy(sums, tile_c)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    operation = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    tiled = cute.make_tiled_mma(operation, (2, 1, 1), permutation_mnk=(32, 16, 16))
    vector = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), cute.Float16, num_bits_per_copy=128
    )
    fill = cute.make_tiled_copy_tv(vector, cute.make_layout((32, 2), stride=(2, 1)), cute.make_layout((1, 8)))
    kernel(a, b, c, tiled, fill).launch(grid=(c.shape[0] // TILE, c.shape[1] // TILE, 1), block=64)


# %%
generator = np.random.default_rng(0)
a, b = (generator.integers(-4, 5, (rows, 80)).astype(np.float16) for rows in (64, 32))
out = np.empty((64, 32), np.float32)
arguments = [from_dlpack(array, assumed_align=16) for array in (a, b, out)]
product = a.astype(np.float64) @ b.astype(np.float64).T
check(12, launch, arguments, product, instructions=["cp.async", "ldmatrix", "mma.sync"], output=out)
