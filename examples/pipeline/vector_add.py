"""c = a + b, one element a thread: the kernel that docs/vector-add.md shows at every stage."""

import tilewright.cute as cute


@cute.kernel
def vector_add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def vector_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    vector_add_kernel(a, b, c).launch(grid=(cute.ceil_div(cute.size(c), 256), 1, 1), block=(256, 1, 1))
