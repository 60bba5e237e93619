"""Step 8 of docs/gemm.md: the warpgroups take turns, so that one stores its tile while the other multiplies."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float32, Int64, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

TILE_M, TILE_N, DEPTH, STAGES = 128, 128, 64, 6
PIECE, BUFFERS = 64, 2  # rows and columns of C that are stored at once; pieces of a warpgroup on their way
CLUSTER = 2  # blocks along M
GROUP = 8  # clusters along M before the next column
WARPGROUP, CONSUMERS = 128, 2
COPYING_REGISTERS, MULTIPLYING_REGISTERS = 40, 232
MULTIPROCESSORS = 132  # of an H100 or H200
ROWS = LayoutEnum.ROW_MAJOR
ON_EMULATOR = {"shape": (512, 256, 256), "multiprocessors": 2}  # M, N, K; so few blocks that each has several tiles


class Tiles:
    """The tiles of C that a cluster goes through: every n-th of them, where n clusters run."""

    def __init__(self, c):
        block, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        self.rank = block % CLUSTER
        self.down, self.along = c.shape[0] // (CLUSTER * TILE_M), c.shape[1] // TILE_N
        self.first, self.count, self.step = block // CLUSTER, self.down * self.along, blocks // CLUSTER
        self.numbers = cutlass.range(self.first, self.count, self.step)

    def every_other(self, group):
        """The numbers of the tiles of one warpgroup."""
        return cutlass.range(self.first + group * self.step, self.count, CONSUMERS * self.step)

    @cute.jit
    def place(self, number):
        """(m, n) of this block's tile: GROUP clusters along M, then the next column."""
        first = number // (GROUP * self.along) * GROUP
        height = min(self.down - first, GROUP)
        inside = number % (GROUP * self.along)
        return (first + inside % height) * CLUSTER + self.rank, inside // height


@cute.jit
def copy_tiles(tiles, pipe, copies, places, targets):
    """Bring the operands of one tile of C after the other, without a pause; run by one warp."""
    alone, both = cute.make_layout(1), cute.make_layout(CLUSTER)
    tiles_a = cute.local_tile(places[0], (TILE_M, DEPTH), (None, None))  # (TILE_M, DEPTH, rows of tiles, steps)
    tiles_b = cute.local_tile(places[1], (TILE_N, DEPTH), (None, None))
    into_a, from_a = cpasync.tma_partition(
        copies[0], 0, alone, cute.group_modes(targets[0], 0, 2), cute.group_modes(tiles_a, 0, 2)
    )
    into_b, from_b = cpasync.tma_partition(  # this block's half, which goes to both
        copies[1], tiles.rank, both, cute.group_modes(targets[1], 0, 2), cute.group_modes(tiles_b, 0, 2)
    )
    mask = cutlass.Int16((1 << CLUSTER) - 1)  # every block of the cluster
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    for number in tiles.numbers:
        m, n = tiles.place(number)
        for step in cutlass.range(cute.size(tiles_a, mode=[3]), unroll=1):
            pipe.producer_acquire(state)  # waits until the stage is free in both blocks
            barrier = pipe.producer_get_barrier(state)
            cute.copy(copies[0], from_a[None, m, step], into_a[None, state.index], tma_bar_ptr=barrier)
            cute.copy(copies[1], from_b[None, n, step], into_b[None, state.index], tma_bar_ptr=barrier, mcast_mask=mask)
            state.advance()
    pipe.producer_tail(state)  # neither block ends while the other still tells it of free stages


@cute.jit
def multiply(pipe, state, steps, mma: cute.TiledMma, left: cute.Tensor, right: cute.Tensor, sums: cute.Tensor):
    """sums = the products of `steps` stages from `state` on; returns the last stage, whose products may still run."""
    mma.set(warpgroup.Field.ACCUMULATE, False)
    pipe.consumer_wait(state)
    warpgroup.fence()
    for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
        cute.gemm(mma, sums, left[None, None, k, state.index], right[None, None, k, state.index], sums)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()
    released = state.clone()
    state.advance()
    for _ in cutlass.range(steps - 1, unroll=1):
        pipe.consumer_wait(state)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.gemm(mma, sums, left[None, None, k, state.index], right[None, None, k, state.index], sums)
        warpgroup.commit_group()
        warpgroup.wait_group(1)
        pipe.consumer_release(released)
        released.advance()
        state.advance()
    return released


@cute.jit
def store(sums: cute.Tensor, copy_c: cute.CopyAtom, tile_c: cute.Tensor, buffers: cute.Tensor, thread, sync):
    """Store a tile of C piece by piece: registers to shared memory (stmatrix), and from there by the copy engine."""
    piece = sm90.make_trivial_tiled_mma(
        BFloat16, BFloat16, *[ROWS.sm90_mma_major_mode()] * 2, Float32, (1, 1, 1), (64, PIECE)
    )
    writing = cute.make_tiled_copy_C(sm90.sm90_get_smem_store_op(ROWS, BFloat16, Float32), piece)
    mine = writing.get_slice(thread)
    written = mine.partition_D(buffers)
    pieces = cute.local_tile(tile_c, (PIECE, PIECE), (None, None))
    from_shared, to_pieces = cpasync.tma_partition(
        copy_c, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 2), cute.group_modes(pieces, 0, 2)
    )
    stores = pipeline.PipelineTmaStore.create(num_stages=BUFFERS)
    leader = cute.arch.make_warp_uniform(thread // 32) == 0
    held, across = PIECE * PIECE // WARPGROUP, TILE_N // PIECE  # sums of a thread in a piece; pieces of 64 rows
    for number in cutlass.range_constexpr(TILE_M // PIECE * across):
        narrow = cute.make_rmem_tensor(piece.partition_shape_C((PIECE, PIECE)), BFloat16)
        for value in cutlass.range_constexpr(held):
            narrow[value] = sums[number * held + value].to(BFloat16)
        if leader:
            stores.producer_acquire()  # the copy engine has read this buffer
        sync()
        cute.copy(writing, mine.retile(narrow), written[None, None, None, number % BUFFERS])
        cute.arch.fence_proxy("async.shared", space="cta")  # the copy engine sees what was written
        sync()
        if leader:
            at = number // across, number % across
            cute.copy(copy_c, from_shared[None, number % BUFFERS], to_pieces[(None, *at)])
            stores.producer_commit()


@cute.kernel
def gemm_kernel(copies, places, mma: cute.TiledMma, layouts: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    memory = cutlass.utils.SmemAllocator()
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP // 32 * CLUSTER),  # of one warpgroup
        tx_count=(TILE_M + TILE_N) * DEPTH * 2,
        barrier_storage=memory.allocate_array(Int64, 2 * STAGES),
        cta_layout_vmnk=cute.make_layout((1, CLUSTER, 1, 1)),
    )
    order = pipeline.PipelineOrder.create(  # two turns for each tile: to multiply, and to store
        memory.allocate_array(Int64, 2 * CONSUMERS), 2, CONSUMERS, group,
        pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP),
    )  # fmt: skip
    shared_a, shared_b, shared_c = (
        memory.allocate_tensor(BFloat16, layout.outer, 1024, layout.inner) for layout in layouts
    )
    tiles = Tiles(places[2])

    if group < 0:
        cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(tiles, pipe, copies, places, (shared_a, shared_b))
    else:
        cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        mine = mma.get_slice(thread % WARPGROUP)
        left, right = mma.make_fragment_A(mine.partition_A(shared_a)), mma.make_fragment_B(mine.partition_B(shared_b))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((TILE_M, TILE_N)), Float32)
        barrier = pipeline.NamedBarrier(1 + group, WARPGROUP)
        buffers = cute.local_tile(shared_c, (PIECE, PIECE, BUFFERS), (0, 0, group))
        steps = cute.ceil_div(places[0].shape[1], DEPTH)
        turn = group
        for number in tiles.every_other(group):
            m, n = tiles.place(number)
            state = after(turn * steps)
            order.wait()
            last = multiply(pipe, state, steps, mma, left, right, sums)
            order.arrive()  # the other one may multiply
            warpgroup.wait_group(0)
            pipe.consumer_release(last)
            order.wait()
            tile_c = cute.local_tile(places[2], (TILE_M, TILE_N), (m, n))
            store(sums, copies[2], tile_c, buffers, thread % WARPGROUP, barrier.arrive_and_wait)
            order.arrive()
            turn = turn + CONSUMERS
        if cute.arch.make_warp_uniform(thread // 32) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)  # shared memory is read before the block ends


def after(steps):
    """Where a consumer stands after so many stages, its own and those of the other warpgroup."""
    return pipeline.PipelineState(STAGES, steps, steps % STAGES, steps // STAGES % 2)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, multiprocessors: cutlass.Constexpr = MULTIPROCESSORS):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of the tile of a cluster."""
    one, shared = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileG2SMulticastOp()
    copied = (
        (one, a, (TILE_M, DEPTH), STAGES, 1),
        (shared, b, (TILE_N, DEPTH), STAGES, CLUSTER),
        (cpasync.CopyBulkTensorTileS2GOp(), c, (PIECE, PIECE), CONSUMERS * BUFFERS, 1),
    )
    layouts, copies, places = [], [], []
    for copy, matrix, tile, buffers, blocks in copied:
        layout = sm90.make_smem_layout(BFloat16, ROWS, tile, buffers)
        atom, place = cpasync.make_tiled_tma_atom(
            copy, matrix, cute.slice_(layout, (None, None, 0)), tile, num_multicast=blocks
        )
        layouts.append(layout)
        copies.append(atom)
        places.append(place)
    major = ROWS.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(BFloat16, BFloat16, major, major, Float32, (1, 1, 1), (64, TILE_N))
    clusters = min((c.shape[0] // (CLUSTER * TILE_M)) * (c.shape[1] // TILE_N), multiprocessors // CLUSTER)
    gemm_kernel(tuple(copies), tuple(places), mma, tuple(layouts)).launch(
        grid=clusters * CLUSTER, block=WARPGROUP * (1 + CONSUMERS), cluster=(CLUSTER, 1, 1)
    )


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
