"""Pipelines filled by `cp.async`, groups that take turns, barriers by number."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright import pipeline
from tilewright.base.errors import CompileError
from tilewright.base.not_built import NotBuiltError


def group(size=32):
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, size)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("stages", [1, 3])
def test_cp_async_fills_buffers(stages, arch):
    tiles = 7

    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cutlass.Int64, 2 * stages]
        buffer: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 128 * stages], 128]

    def body(x: cute.Tensor, out: cute.Tensor):
        storage = cutlass.utils.SmemAllocator().allocate(Storage)
        buffer = storage.buffer.get_tensor(cute.make_layout((4, 32, stages)))
        pipe = pipeline.PipelineCpAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=stages,
            producer_group=group(32),
            consumer_group=group(32),
        )
        producer, consumer = pipe.make_participants()
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        if warp == 0:
            atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
            for tile in cutlass.range(tiles):
                handle = producer.acquire_and_advance()
                cute.copy(atom, x[None, lane, tile], buffer[None, lane, handle.index])
                handle.commit()
            producer.tail()
        if warp == 1:
            for tile in cutlass.range(tiles):
                handle = consumer.wait_and_advance()
                for i in cutlass.range_constexpr(4):
                    out[i, lane, tile] = buffer[i, 31 - lane, handle.index]
                handle.release()

    x = np.asfortranarray(np.random.default_rng(0).normal(size=(4, 32, tiles)).astype(np.float32))
    out = np.zeros((4, 32, tiles), np.float32)
    on_device(body, x, out, block=64, arch=arch)
    np.testing.assert_array_equal(out, x[:, ::-1])


@pytest.mark.parametrize(("length", "depth", "rounds"), [(2, 1, 4), (3, 2, 3), (4, 3, 2)])
def test_groups_take_turns_in_each_stage(length, depth, rounds):
    def body(log: cute.Tensor):
        allocator = cutlass.utils.SmemAllocator()
        barriers = allocator.allocate_array(cutlass.Int64, depth * length)
        counts = allocator.allocate_tensor(cutlass.Int32, depth)
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        if cute.arch.thread_idx()[0] < depth:
            counts[cute.arch.thread_idx()[0]] = 0
        order = pipeline.PipelineOrder.create(
            barrier_storage=barriers, depth=depth, length=length, group_id=warp, producer_group=group(32)
        )
        for step in cutlass.range(rounds * depth):
            order.wait()
            if lane == 0:
                stage = step % depth
                log[counts[stage], stage] = warp
                counts[stage] = counts[stage] + 1
            cute.arch.sync_warp()
            order.arrive()

    log = on_device(body, np.full((length * rounds, depth), -1, np.int32), block=32 * length)
    assert log.T.tolist() == [list(range(length)) * rounds] * depth


def test_barriers_by_number():
    def body(out: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, 64)
        i = cute.arch.thread_idx()[0]
        shared[i] = i
        pipeline.arrive_and_wait(barrier_id=1, num_threads=64)
        out[i, 0] = shared[63 - i]
        pipeline.sync(barrier_id=2)
        shared[i] = 2 * i
        pipeline.agent_sync(group=pipeline.Agent.ThreadBlock)
        out[i, 1] = shared[63 - i]
        if i < 32:
            pipeline.arrive(3, 64)
        else:
            pipeline.wait(3, 64)
        barrier = pipeline.NamedBarrier(barrier_id=4, num_threads=64)
        barrier.wait_unaligned()
        shared[i] = 3 * i
        if i < 32:
            barrier.arrive_unaligned()
            pipeline.agent_sync(pipeline.Agent.Warp)
        else:
            barrier.wait_unaligned()
            out[i, 2] = shared[63 - i]

    out = on_device(body, np.zeros((64, 3), np.int32), block=64)
    order = np.arange(63, -1, -1)
    np.testing.assert_array_equal(out[:, 0], order)
    np.testing.assert_array_equal(out[:, 1], 2 * order)
    np.testing.assert_array_equal(out[32:, 2], 3 * order[32:])
    barrier = pipeline.NamedBarrier(5, 32)
    assert (barrier.get_barrier(), barrier.max()) == (5, 16)


def refused(body, error, match):
    with pytest.raises(error, match=match):
        on_device(body, np.zeros(1, np.int32))


def test_what_is_refused():
    def order(**options):
        barriers = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 4)
        wanted = {"depth": 2, "length": 2, "group_id": 0} | options
        pipeline.PipelineOrder.create(barriers, producer_group=group(), **wanted)

    refused(lambda out: order(group_id=2), CompileError, "a pipeline order has groups 0 to length - 1, in stages")
    refused(lambda out: order(depth=0), CompileError, "a pipeline order has groups")

    def array(agent, **options):
        pipeline.MbarrierArray(cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1), 1, agent, **options)

    kind = pipeline.PipelineOp.TCGen05Mma
    refused(lambda out: array((kind, group())), (NotBuiltError, CompileError), "MbarrierArray with")
    refused(lambda out: array(group(), tx_count=64), CompileError, "barriers at which threads arrive expect no bytes")
