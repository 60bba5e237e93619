"""Kernels for the debugger: a transpose through a swizzled tile, correct and with planted faults."""

import tilewright as cutlass
import tilewright.cute as cute

N = 32


@cute.jit
def swizzled_tile(memory: cute.Pointer) -> cute.Tensor:
    """A tile of N x N numbers whose columns lie in different banks."""
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, cute.make_layout((N, N), stride=(N, 1)))
    return cute.make_tensor(memory, layout)


@cute.kernel
def transpose_kernel(source: cute.Tensor, target: cute.Tensor, fault: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    memory = cutlass.utils.SmemAllocator().allocate_array(cutlass.Float32, N * N)
    tile = swizzled_tile(memory)
    column = thread % N
    for step in cutlass.range(N // 4):
        row = step * 4 + thread // N
        tile[row, column] = source[block * N + row, column]
    if cutlass.const_expr(fault != "race"):
        cute.arch.sync_threads()
    for step in cutlass.range(N // 4):
        row = step * 4 + thread // N
        taken = tile[column, row]
        if cutlass.const_expr(fault == "index"):
            taken = tile[column, (row + thread // 96) % N]
        target[row, block * N + column] = taken


@cute.jit
def transpose(source: cute.Tensor, target: cute.Tensor):
    """target = source transposed, for (32 n, 32) and (32, 32 n)."""
    transpose_kernel(source, target, "").launch(grid=(source.shape[0] // N, 1, 1), block=(128, 1, 1))


@cute.jit
def racing(source: cute.Tensor, target: cute.Tensor):
    """The same without its barrier."""
    transpose_kernel(source, target, "race").launch(grid=(source.shape[0] // N, 1, 1), block=(128, 1, 1))


@cute.jit
def misplaced(source: cute.Tensor, target: cute.Tensor):
    """The same with a wrong index in the last warp."""
    transpose_kernel(source, target, "index").launch(grid=(source.shape[0] // N, 1, 1), block=(128, 1, 1))


@cute.kernel
def spin_kernel(target: cute.Tensor):
    turns = cutlass.Int32(0)
    cute.printf("round and round\n")
    while target[0, 0] >= 0:
        turns = turns + 1
        target[0, 0] = cutlass.Float32(turns)


@cute.jit
def spinning(source: cute.Tensor, target: cute.Tensor):
    """Counts for hours."""
    spin_kernel(target).launch(grid=1, block=1)


@cute.kernel
def scale_kernel(target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    for step in cutlass.range(N // 4):
        row = step * 4 + thread // N
        target[row, block * N + thread % N] *= 2.0


@cute.jit
def two_launches(source: cute.Tensor, target: cute.Tensor):
    """target = twice the source transposed, by two kernels."""
    transpose_kernel(source, target, "").launch(grid=(source.shape[0] // N, 1, 1), block=(128, 1, 1))
    scale_kernel(target).launch(grid=(source.shape[0] // N, 1, 1), block=(128, 1, 1))
