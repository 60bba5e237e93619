"""The kernels of `tilewright demo`: short, and written for the reader.

They show, one after the other, indexing and a bounds guard; a block that works together on a row; the same with
layouts in place of index arithmetic; and a tree in shared memory.
"""

import tilewright as cutlass
import tilewright.cute as cute

ADD_THREADS = 256
ROW_THREADS = 128
LAYOUT_THREADS = 512
TREE_THREADS = 256


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    """One thread adds one element; the last block is guarded."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    i = block * threads + thread
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    """c = a + b; all three of shape (n,)."""
    add_kernel(a, b, c).launch(
        grid=(cute.ceil_div(cute.size(c), ADD_THREADS), 1, 1),
        block=(ADD_THREADS, 1, 1),
    )


@cute.kernel
def row_sum_kernel(x: cute.Tensor, output: cute.Tensor) -> None:
    """One block sums one row of x (m, n) into output (m,): threads, then warps, then the block."""
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()

    _, columns = x.shape
    total = cute.Float32(0.0)
    for tile in range(cute.ceil_div(columns, threads)):
        column = tile * threads + thread
        if column < columns:
            total += x[row, column]

    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        shared[warp] = total
    cute.arch.sync_threads()

    if warp == 0:
        warps = threads // 32
        total = shared[lane] if lane < warps else cute.Float32(0.0)
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            output[row] = total


@cute.jit
def row_sum(x: cute.Tensor, output: cute.Tensor) -> None:
    """output[i] = the sum of row i of x (m, n)."""
    rows, _ = x.shape
    row_sum_kernel(x, output).launch(grid=(rows, 1, 1), block=(ROW_THREADS, 1, 1))


@cute.kernel
def row_sum_layout_kernel(
    tiles: cute.Tensor,
    coordinates: cute.Tensor,
    output: cute.Tensor,
    tv_layout: cute.Layout,
    shape: cute.Shape,
) -> None:
    """The row sum with layouts. tiles is ((1, threads), (m, n / threads)), rounded up; so are the coordinates.

    `tv_layout` maps (thread, value) to the place in a tile. A place beyond the row has a coordinate outside `shape`.
    """
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()

    _, rest = tiles.shape
    total = cute.Float32(0.0)
    for tile in range(rest[1]):
        block_coord = ((0, None), (row, tile))
        mine = cute.composition(tiles[block_coord], tv_layout)
        where = cute.composition(coordinates[block_coord], tv_layout)
        if cute.elem_less(where[thread, 0], shape):
            total += mine[thread, 0]

    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        shared[warp] = total
    cute.arch.sync_threads()

    if warp == 0:
        total = shared[lane] if lane < LAYOUT_THREADS // 32 else cute.Float32(0.0)
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            output[row] = total


@cute.jit
def row_sum_layout(x: cute.Tensor, output: cute.Tensor) -> None:
    """output[i] = the sum of row i of x (m, n), with make_layout_tv, zipped_divide and composition."""
    rows, _ = x.shape
    threads = cute.make_layout((LAYOUT_THREADS,), stride=(1,))
    values = cute.make_layout((1,), stride=(1,))
    tiler, tv_layout = cute.make_layout_tv(threads, values)
    tiler = (1, tiler[0])
    tiles = cute.zipped_divide(x, tiler)
    coordinates = cute.zipped_divide(cute.make_identity_tensor(x.shape), tiler)
    row_sum_layout_kernel(tiles, coordinates, output, tv_layout, x.shape).launch(
        grid=(rows, 1, 1), block=(LAYOUT_THREADS, 1, 1)
    )


@cute.kernel
def block_sum_kernel(x: cute.Tensor, partial: cute.Tensor) -> None:
    """Each block sums its part of x (n,) by halving in shared memory, into partial[block]."""
    shared = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, cute.make_layout((TREE_THREADS,)))
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * TREE_THREADS + thread
    shared[thread] = x[i] if i < cute.size(x) else x.element_type(0)
    cute.arch.sync_threads()

    half = cutlass.Int32(TREE_THREADS // 2)
    while half > 0:
        if thread < half:
            shared[thread] = shared[thread] + shared[thread + half]
        cute.arch.sync_threads()
        half = half // 2

    if thread == 0:
        partial[block] = shared[0]


@cute.jit
def block_sum(x: cute.Tensor, partial: cute.Tensor) -> None:
    """partial[b] = the sum of the b-th run of 256 elements of x (n,); partial has ceil(n / 256) elements."""
    block_sum_kernel(x, partial).launch(grid=(cute.size(partial), 1, 1), block=(TREE_THREADS, 1, 1))
