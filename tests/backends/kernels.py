"""Programs that the toy back end runs."""

from __future__ import annotations

import tilewright.cute as cute
from tilewright import Float32
from tilewright.targets.target import register

register("toy", "tests.backends.toy.back_end:BACK_END", ("toy",))

THREADS = 64


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """c = a + b."""
    add_kernel(a, b, c).launch(grid=(cute.ceil_div(cute.size(c), THREADS), 1, 1), block=(THREADS, 1, 1))


@cute.kernel
def scale_kernel(c: cute.Tensor, factor: Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < cute.size(c):
        c[i] = factor * c[i]


@cute.jit
def scaled_sum(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, factor: Float32):
    """c = factor * (a + b), by two launches."""
    blocks = cute.ceil_div(cute.size(c), THREADS)
    add_kernel(a, b, c).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
    scale_kernel(c, factor).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
