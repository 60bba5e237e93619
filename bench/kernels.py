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


@cute.kernel
def nothing_of_many_kernel(
    t0: cute.Tensor, t1: cute.Tensor, t2: cute.Tensor, t3: cute.Tensor, t4: cute.Tensor, t5: cute.Tensor,
    t6: cute.Tensor, t7: cute.Tensor, t8: cute.Tensor, t9: cute.Tensor, t10: cute.Tensor, t11: cute.Tensor,
    t12: cute.Tensor, t13: cute.Tensor, t14: cute.Tensor, t15: cute.Tensor, t16: cute.Tensor, t17: cute.Tensor,
    t18: cute.Tensor, n0: cute.Int32, n1: cute.Int32, n2: cute.Int32, n3: cute.Int32, n4: cute.Int32, n5: cute.Int32,
    n6: cute.Int32, n7: cute.Int32, n8: cute.Int32, n9: cute.Int32, n10: cute.Int32, n11: cute.Int32,
    n12: cute.Int32, n13: cute.Int32, n14: cute.Int32, n15: cute.Int32, n16: cute.Int32, n17: cute.Int32,
    n18: cute.Int32,
):  # fmt: skip
    pass


@cute.jit
def nothing_of_many(
    t0: cute.Tensor, t1: cute.Tensor, t2: cute.Tensor, t3: cute.Tensor, t4: cute.Tensor, t5: cute.Tensor,
    t6: cute.Tensor, t7: cute.Tensor, t8: cute.Tensor, t9: cute.Tensor, t10: cute.Tensor, t11: cute.Tensor,
    t12: cute.Tensor, t13: cute.Tensor, t14: cute.Tensor, t15: cute.Tensor, t16: cute.Tensor, t17: cute.Tensor,
    t18: cute.Tensor, n0: cute.Int32, n1: cute.Int32, n2: cute.Int32, n3: cute.Int32, n4: cute.Int32, n5: cute.Int32,
    n6: cute.Int32, n7: cute.Int32, n8: cute.Int32, n9: cute.Int32, n10: cute.Int32, n11: cute.Int32,
    n12: cute.Int32, n13: cute.Int32, n14: cute.Int32, n15: cute.Int32, n16: cute.Int32, n17: cute.Int32,
    n18: cute.Int32,
):  # fmt: skip
    nothing_of_many_kernel(
        t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17, t18, n0, n1, n2, n3, n4, n5,
        n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18,
    ).launch(grid=(1, 1, 1), block=(32, 1, 1))  # fmt: skip


@cute.jit
def launches_nothing(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    pass


@cute.kernel
def long_sum_kernel(a: cute.Tensor, operations: cutlass.Constexpr):
    """Loads, integer and float arithmetic and stores, without a loop."""
    thread = cute.arch.thread_idx()[0]
    total, number = cute.Float32(0), thread
    for turn in cutlass.range_constexpr(operations // 5):
        number = number * 5 + turn
        total = total * a[thread + turn * 32] + number.to(cute.Float32)
    a[thread] = total


@cute.jit
def long_sum(a: cute.Tensor, operations: cutlass.Constexpr):
    """A generated kernel of about so many operations."""
    long_sum_kernel(a, operations).launch(grid=(1, 1, 1), block=(32, 1, 1))
