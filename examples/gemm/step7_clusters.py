"""Step 7 of docs/gemm.md: two blocks share tiles of B, and go through many tiles of C in an order that suits L2."""

from harness import main

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Float32, Int64, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

TILE_M, TILE_N, DEPTH, STAGES = 128, 256, 64, 4
CLUSTER = 2  # blocks along M
GROUP = 8  # clusters along M before the next column
WARPGROUP, CONSUMERS = 128, 2
SHARE = TILE_M // CONSUMERS
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
        self.numbers = cutlass.range(block // CLUSTER, self.down * self.along, blocks // CLUSTER)

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
    """sums = the products of `steps` stages from `state` on, which moves on; run by each warpgroup."""
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
    warpgroup.wait_group(0)
    pipe.consumer_release(released)


@cute.kernel
def gemm_kernel(
    copies, places, c: cute.Tensor, mma: cute.TiledMma, layout_a: cutlass.Constexpr, layout_b: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    memory = cutlass.utils.SmemAllocator()
    warps = CONSUMERS * WARPGROUP // 32
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, warps * CLUSTER),  # those of both blocks
        tx_count=(TILE_M + TILE_N) * DEPTH * 2,
        barrier_storage=memory.allocate_array(Int64, 2 * STAGES),
        cta_layout_vmnk=cute.make_layout((1, CLUSTER, 1, 1)),
    )
    shared_a = memory.allocate_tensor(BFloat16, layout_a.outer, 1024, layout_a.inner)
    shared_b = memory.allocate_tensor(BFloat16, layout_b.outer, 1024, layout_b.inner)
    tiles = Tiles(c)

    group = cute.arch.make_warp_uniform(thread // WARPGROUP) - 1
    if group < 0:
        cute.arch.setmaxregister_decrease(COPYING_REGISTERS)
        if warp == 0:
            copy_tiles(tiles, pipe, copies, places, (shared_a, shared_b))
    else:
        cute.arch.setmaxregister_increase(MULTIPLYING_REGISTERS)
        mine = mma.get_slice(thread % WARPGROUP)
        rows = cute.local_tile(shared_a, (SHARE, DEPTH), (group, 0, None))
        left, right = mma.make_fragment_A(mine.partition_A(rows)), mma.make_fragment_B(mine.partition_B(shared_b))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((SHARE, TILE_N)), Float32)
        steps = cute.ceil_div(places[0].shape[1], DEPTH)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for number in tiles.numbers:
            m, n = tiles.place(number)
            multiply(pipe, state, steps, mma, left, right, sums)
            narrow = cute.make_rmem_tensor(sums.shape, BFloat16)
            narrow.store(sums.load().to(BFloat16))
            tile_c = cute.local_tile(c, (SHARE, TILE_N), (m * CONSUMERS + group, n))
            cute.autovec_copy(narrow, mine.partition_C(tile_c))


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, multiprocessors: cutlass.Constexpr = MULTIPROCESSORS):
    """C (M, N) = A (M, K) · B (N, K), M and N multiples of the tile of a cluster."""
    layouts, copies, places = [], [], []
    one, shared = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileG2SMulticastOp()
    for load, matrix, rows, blocks in ((one, a, TILE_M, 1), (shared, b, TILE_N, CLUSTER)):
        layout = sm90.make_smem_layout(BFloat16, ROWS, (rows, DEPTH), STAGES)  # (rows, DEPTH, STAGES)
        copy, place = cpasync.make_tiled_tma_atom(
            load, matrix, cute.slice_(layout, (None, None, 0)), (rows, DEPTH), num_multicast=blocks
        )
        layouts.append(layout)
        copies.append(copy)
        places.append(place)
    major = ROWS.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(BFloat16, BFloat16, major, major, Float32, (1, 1, 1), (64, TILE_N))
    clusters = min((c.shape[0] // (CLUSTER * TILE_M)) * (c.shape[1] // TILE_N), multiprocessors // CLUSTER)
    gemm_kernel(tuple(copies), tuple(places), c, mma, *layouts).launch(
        grid=clusters * CLUSTER, block=WARPGROUP * (1 + CONSUMERS), cluster=(CLUSTER, 1, 1)
    )


if __name__ == "__main__":
    main(gemm, **ON_EMULATOR)
