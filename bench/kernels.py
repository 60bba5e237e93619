"""Kernels that the benchmarks compile and run."""

from __future__ import annotations

import tilewright as cutlass
import tilewright.cute as cute

THREADS = 256


@cute.kernel
def vector_add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    index = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if index < cute.size(c):
        c[index] = a[index] + b[index]


@cute.jit
def vector_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    blocks = cute.ceil_div(cute.size(c), THREADS)
    vector_add_kernel(a, b, c).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


@cute.kernel
def row_sum_kernel(x: cute.Tensor, output: cute.Tensor):
    partial = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, block, threads = cute.arch.thread_idx()[0], cute.arch.block_idx()[0], cute.arch.block_dim()[0]
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    _, columns = x.shape
    total = 0.0
    for tile in range(cute.ceil_div(columns, threads)):
        column = tile * threads + thread
        if column < columns:
            total += x[block, column]
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        partial[warp] = total
    cute.arch.sync_threads()
    if warp == 0:
        rest = partial[lane] if lane < threads // 32 else 0.0
        rest = cute.arch.warp_reduction_sum(rest)
        if lane == 0:
            output[block] = rest


@cute.jit
def row_sum(x: cute.Tensor, output: cute.Tensor):
    rows, _ = x.shape
    row_sum_kernel(x, output).launch(grid=(rows, 1, 1), block=(THREADS, 1, 1))


@cute.kernel
def nothing_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    pass


@cute.jit
def nothing(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    nothing_kernel(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def launches_nothing(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    pass
