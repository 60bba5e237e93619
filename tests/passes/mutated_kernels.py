"""Small kernels of every kind of memory and control flow, for the mutants: the numbers stay whole, sums exact."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import cpasync


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    index = block * 32 + thread
    if index < n:
        y[index] = x[index] * 2.0 + 1.0


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    scale_kernel(x, y, n).launch(grid=(2, 1, 1), block=(32, 1, 1))


@cute.kernel
def rows_kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    given, result = (cute.local_tile(t, (32, 4), (block, 0)) for t in (x, y))
    held = cute.make_rmem_tensor((4,), cutlass.Float32)
    cute.autovec_copy(given[thread, None], held)
    for _ in range(n):
        held.store(held.load() * 2.0 + 1.0)
    if thread < 24:
        result[thread, None].store(held.load())


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    rows_kernel(x, y, n).launch(grid=(cute.size(x) // 128, 1, 1), block=(32, 1, 1))


@cute.kernel
def turn_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, cute.make_layout((8, 4), stride=(4, 1)))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, layout, 16)
    row, column = thread // 4, thread % 4
    tile[row, column] = x[row, column]
    cute.arch.sync_threads()
    y[column, row] = tile[row, column] + tile[7 - row, column]


@cute.jit
def turn(x: cute.Tensor, y: cute.Tensor):
    turn_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def halve_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    value, steps = x[thread], 0
    while value > 1:
        value = value // 2 if value % 2 == 0 else value - 1
        steps = steps + 1
    y[thread] = steps


@cute.jit
def halve(x: cute.Tensor, y: cute.Tensor):
    halve_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def masked_kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    thread = cute.arch.thread_idx()[0]
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
    given = cute.local_partition(cute.local_tile(x, (32, 4), (0, 0)), cute.make_layout((32, 1)), thread)
    held = cute.make_rmem_tensor((4,), cutlass.Float32)
    mask = cute.make_rmem_tensor((4,), cutlass.Boolean)
    for i in cutlass.range_constexpr(4):
        mask[i] = thread * 4 + i < n
    held.fill(-3.0)
    for i in cutlass.range_constexpr(4):
        held[i] = given[0, i]
    cute.copy(atom, held, cute.local_tile(y, (1, 4), (thread, 0))[0, None], pred=mask)


@cute.jit
def masked(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    masked_kernel(x, y, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def fold_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    parts = cute.zipped_divide(x, (4, 1))
    values = parts[(None, None), (thread // 4, thread % 4)].load()
    total = values.reduce(cute.ReductionOp.ADD, 0.0, 0)
    total = cute.arch.warp_reduction_sum(total)
    other = cute.arch.shuffle_sync_bfly(total + thread, 1)
    y[thread] = other


@cute.jit
def fold(x: cute.Tensor, y: cute.Tensor):
    fold_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def staged_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 4), stride=(4, 1)), 16)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
    cute.copy(atom, cute.local_tile(x, (32, 4), (0, 0))[thread, None], tile[thread, None])
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.local_tile(y, (32, 4), (0, 0))[thread, None].store(tile[31 - thread, None].load())


@cute.jit
def staged(x: cute.Tensor, y: cute.Tensor):
    staged_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def count_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    tile = cute.domain_offset((4,), x)
    cute.arch.atomic_add(y.iterator + tile[thread] % 8, 1)
    if thread % 2 == 0:
        cute.arch.atomic_max((y.iterator + 8).align(4), tile[thread])


@cute.jit
def count(x: cute.Tensor, y: cute.Tensor):
    count_kernel(x, y).launch(grid=(1, 1, 1), block=(28, 1, 1))


@cute.kernel
def product_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    sums = cute.make_rmem_tensor((2, 2), cutlass.Float32)
    sums.fill(0.0)
    for k in range(4):
        for i in cutlass.range_constexpr(2):
            for j in cutlass.range_constexpr(2):
                sums[i, j] = sums[i, j] + x[thread, k] * x[i + 2 * j, k]
    cute.local_tile(y, (32, 4), (0, 0))[thread, None].store(cute.make_tensor(sums.iterator, cute.make_layout(4)).load())


@cute.jit
def product(x: cute.Tensor, y: cute.Tensor):
    product_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def _whole(shape, dtype, seed):
    return np.random.default_rng(seed).integers(1, 40, shape).astype(dtype)


CASES = {
    "scale": (scale, lambda: (_whole(64, np.float32, 1), np.zeros(64, np.float32)), {"n": 50}),
    "rows": (rows, lambda: (_whole((64, 4), np.float32, 2), np.zeros((64, 4), np.float32)), {"n": 3}),
    "turn": (turn, lambda: (_whole((8, 4), np.int32, 3), np.zeros((4, 8), np.int32)), {}),
    "halve": (halve, lambda: (_whole(32, np.int32, 4), np.zeros(32, np.int32)), {}),
    "masked": (masked, lambda: (_whole((32, 4), np.float32, 5), np.zeros((32, 4), np.float32)), {"n": 77}),
    "fold": (fold, lambda: (_whole((32, 4), np.float32, 6), np.zeros(32, np.float32)), {}),
    "staged": (staged, lambda: (_whole((32, 4), np.float32, 7), np.zeros((32, 4), np.float32)), {}),
    "count": (count, lambda: (_whole(32, np.int32, 8), np.zeros(16, np.int32)), {}),
    "product": (product, lambda: (_whole((32, 4), np.float32, 9), np.zeros((32, 4), np.float32)), {}),
}  # fmt: skip
"""Host function, its arrays `x` and `y`, and its numbers."""
