"""Pipelines that the copy engine fills and empties, with clusters, on the emulator with all checks."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, EmulationError, Float16, Float32, Int64, pipeline
from tilewright.cute.nvgpu import cpasync
from tilewright.emulate import observe
from tilewright.utils import sm90

arch = cute.arch
ALL = pytest.mark.parametrize
ROWS = cutlass.utils.LayoutEnum.ROW_MAJOR
ONE = pipeline.CooperativeGroup(pipeline.Agent.Thread)


class Gemm:
    """C = A * B by a warp that copies and one warpgroup that multiplies, in clusters of `cluster` blocks (M, N)."""

    def __init__(self, stages=2, cluster=(1, 1), tile=(64, 64, 32), wrong="", reserved=False):
        self.stages, self.cluster, self.tile, self.wrong, self.reserved = stages, cluster, tile, wrong, reserved

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        m, n, k = self.tile
        layouts = [
            make(ROWS, self.tile, Float16, self.stages) for make in (sm90.make_smem_layout_a, sm90.make_smem_layout_b)
        ]
        atoms = []
        for tensor, layout, extent, shared in (
            (a, layouts[0], m, self.cluster[1]),
            (b, layouts[1], n, self.cluster[0]),
        ):
            op = cpasync.CopyBulkTensorTileG2SMulticastOp if shared > 1 else cpasync.CopyBulkTensorTileG2SOp
            one = cute.slice_(layout, (None, None, 0))
            atoms += cpasync.make_tiled_tma_atom(op(), tensor, one, (extent, k), num_multicast=shared)
        major = ROWS.sm90_mma_major_mode()
        mma = sm90.make_trivial_tiled_mma(Float16, Float16, major, major, Float32, (1, 1, 1), (m, n))
        grid = tuple(cute.ceil_div(extent, size) for extent, size in zip(c.shape, (m, n), strict=True))
        self.kernel(*atoms, c, mma, *layouts).launch(grid=(*grid, 1), block=160, cluster=(*self.cluster, 1))

    @cute.kernel
    def kernel(self, load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
               mma: cute.TiledMma, la: cutlass.Constexpr, lb: cutlass.Constexpr):  # fmt: skip
        thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
        x, y, _ = arch.block_idx()
        allocator = cutlass.utils.SmemAllocator()
        barriers = None if self.reserved else allocator.allocate_array(Int64, 2 * self.stages)
        sa, sb = (allocator.allocate_tensor(Float16, layout.outer, 1024, layout.inner) for layout in (la, lb))
        blocks = cute.make_layout((1, *self.cluster, 1))
        told = self.cluster[0] + self.cluster[1] - 1
        m, n, k = self.tile
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=ONE,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * told),
            tx_count=(m + n) * k * 2 // (2 if self.wrong == "bytes" else 1),
            barrier_storage=barriers,
            cta_layout_vmnk=blocks,
        )
        ga, gb = cute.local_tile(a, (m, k), (x, None)), cute.local_tile(b, (n, k), (y, None))
        _, at_m, at_n, _ = blocks.get_flat_coord(arch.make_warp_uniform(arch.block_idx_in_cluster()))
        parts = []
        for load, place, tile, whole in ((load_a, at_n, sa, ga), (load_b, at_m, sb, gb)):
            shared = self.cluster[1] if load is load_a else self.cluster[0]
            groups = [cute.group_modes(tensor, 0, 2) for tensor in (tile, whole)]
            parts.append(cpasync.tma_partition(load, place, cute.make_layout(shared), *groups))
        masks = [cpasync.create_tma_multicast_mask(blocks, (0, at_m, at_n, 0), mode) for mode in (2, 1)]
        count = cute.size(ga, mode=[2])
        if warp == 4:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for step in cutlass.range(count):
                pipe.producer_acquire(state)
                for load, (inside, outside), mask in zip((load_a, load_b), parts, masks, strict=True):
                    cute.copy(
                        load,
                        outside[None, step],
                        inside[None, state.index],
                        tma_bar_ptr=pipe.producer_get_barrier(state),
                        mcast_mask=mask,
                    )
                state.advance()
            pipe.producer_tail(state)
        else:
            part = mma.get_slice(thread)
            left, right = mma.make_fragment_A(part.partition_A(sa)), mma.make_fragment_B(part.partition_B(sb))
            sums = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), Float32)
            mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, False)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for _ in cutlass.range(count):
                if cutlass.const_expr(self.wrong != "wait"):
                    pipe.consumer_wait(state, pipe.consumer_try_wait(state))
                cute.nvgpu.warpgroup.fence()
                for step in cutlass.range_constexpr(cute.size(left, mode=[2])):
                    place = (None, None, step, state.index)
                    cute.gemm(mma, sums, left[place], right[place], sums)
                    mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
                cute.nvgpu.warpgroup.commit_group()
                if cutlass.const_expr(self.wrong == "release"):
                    pipe.consumer_release(state)
                cute.nvgpu.warpgroup.wait_group(0)
                if cutlass.const_expr(self.wrong != "release"):
                    pipe.consumer_release(state)
                state.advance()
            cute.autovec_copy(sums, part.partition_C(cute.local_tile(c, (m, n), (x, y))))


def _operands(m, n, k):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (extent, k)).astype(np.float16) for extent in (m, n))
    return a, b, np.zeros((m, n), np.float32)


def _run(gemm, m, n, k):
    arrays = _operands(m, n, k)
    a, b, c = (cute.runtime.from_dlpack(x, assumed_align=16) for x in arrays)
    cute.compile(gemm, a, b, c)(a, b, c)
    exact = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64).T
    np.testing.assert_array_equal(arrays[2], exact)


@ALL("stages", (1, 2, 3))
def test_a_warp_copies_while_a_warpgroup_multiplies(stages):
    _run(Gemm(stages), 64, 128, 160)


@ALL("cluster", ((2, 1), (1, 2), (2, 2)))
def test_clusters_share_tiles(cluster):
    _run(Gemm(2, cluster, reserved=cluster == (2, 2)), 128, 128, 128)


@ALL(("cluster", "loads"), (((1, 1), 4 * (64 + 64)), ((2, 1), 4 * 64 + 2 * 64), ((2, 2), 2 * 64 + 2 * 64)))
def test_a_tile_that_blocks_share_is_read_once(cluster, loads):
    """Four blocks; `loads` are the rows of 128 elements of 16 bits that they read."""
    with observe(counters=True) as reports:
        _run(Gemm(2, cluster), 128, 128, 128)
    assert reports[0].sectors_ideal == loads * 128 * 2 // 32 + 128 * 128 * 4 // 32


@ALL(
    ("wrong", "words"),
    (("wait", "race|never written"), ("release", "wgmma|race"), ("bytes", "mbarrier")),
)
def test_faults_are_found_by_the_emulator(wrong, words):
    """Reading before the copies are there, giving a buffer back while products read it, expecting half the bytes."""
    with pytest.raises(EmulationError, match=f"(?i){words}") as caught:
        _run(Gemm(1, wrong=wrong), 64, 64, 96)
    assert "test_tma_pipelines.py" in str(caught.value)


@cute.kernel
def writes_rows(store: cute.CopyAtom, out: cute.Tensor, layout: cutlass.Constexpr, stages: cutlass.Constexpr):
    """Row tiles by way of `stages` buffers."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    tiles = cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)
    pipe = pipeline.PipelineTmaStore.create(num_stages=stages, producer_group=ONE)
    parts = cute.local_tile(out, (8, 64), (None, 0))
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tiles, parts)]
    inside, outside = cpasync.tma_partition(store, 0, cute.make_layout(1), *groups)
    for step in cutlass.range_constexpr(6):
        for row in cutlass.range_constexpr(8):
            tiles[row, thread, step % stages] = Float16(step * 100 + row) + Float16(thread) / 64
        arch.fence_proxy("async.shared", space="cta")
        pipeline.sync(barrier_id=1)
        if warp == 0:
            cute.copy(store, inside[None, step % stages], outside[None, step])
            pipe.producer_commit()
            pipe.producer_acquire()
        pipeline.sync(barrier_id=1)
    if warp == 0:
        pipe.producer_tail()


@ALL("stages", (1, 3))
def test_buffers_go_to_global_memory(stages):
    @cute.jit
    def host(out: cute.Tensor):
        layout = sm90.make_smem_layout_epi(Float16, ROWS, (8, 64), stages)
        op = cpasync.CopyBulkTensorTileS2GOp()
        store, coordinates = cpasync.make_tiled_tma_atom(op, out, cute.slice_(layout, (None, None, 0)), (8, 64))
        writes_rows(store, coordinates, layout, stages).launch(grid=1, block=64)

    out = np.zeros((48, 64), np.float16)
    cute.compile(host, out)(out)
    rows, columns = np.mgrid[:48, :64]
    np.testing.assert_array_equal(out, (rows // 8 * 100 + rows % 8 + columns / 64).astype(np.float16))


@ALL(
    ("make", "message"),
    (
        (lambda place: pipeline.PipelineTmaStore.create(num_stages=0), "a pipeline of 0 stages"),
        (
            lambda place: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=ONE, consumer_group=ONE, tx_count=8, barrier_storage=place.recast(Float32)
            ),
            "barrier_storage is not a pointer to Int64 in shared memory",
        ),
        (
            lambda place: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=ONE, consumer_group=ONE, tx_count=8, barrier_storage=place,
                cta_layout_vmnk=cute.make_layout((1, 64, 1, 1)),
            ),
            "a cluster of more than 32 blocks",
        ),
    ),
)  # fmt: skip
def test_pipelines_that_cannot_be_are_refused(make, message):
    @cute.kernel
    def kernel():
        make(cutlass.utils.SmemAllocator().allocate_array(Int64, 4))

    @cute.jit
    def host():
        kernel().launch(grid=1, block=32)

    with pytest.raises(CompileError) as caught:
        cute.compile(host)
    assert message in str(caught.value)
