"""Pipelines, barriers in shared memory, and what threads do together."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright import pipeline

LANES = np.arange(32)


def group(size=32):
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, size)


def make(stages, reserved=False, **options):
    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cutlass.Int64, 2 * stages]
        buffer: cute.struct.MemRange[cutlass.Int32, stages]

    storage = cutlass.utils.SmemAllocator().allocate(Storage)
    made = pipeline.PipelineAsync.create(
        num_stages=stages,
        producer_group=group(),
        consumer_group=group(),
        barrier_storage=None if reserved else storage.barriers.data_ptr(),
        **options,
    )
    return made, storage.buffer


@pytest.mark.parametrize(("stages", "reserved"), [(1, False), (2, False), (2, True), (5, False)])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_pipeline_hands_over_in_order(stages, arch, reserved):
    def body(out: cute.Tensor):
        pipe, buffer = make(stages, reserved)
        producer, consumer = pipe.make_participants()
        warp = cute.arch.warp_idx()
        if warp == 0:
            for i in cutlass.range(cute.size(out)):
                handle = producer.acquire_and_advance()
                buffer[handle.index] = i * 3
                handle.commit()
            producer.tail()
        if warp == 1:
            for i in cutlass.range(cute.size(out)):
                handle = consumer.wait_and_advance()
                out[i] = buffer[handle.index]
                handle.release()

    out = on_device(body, np.zeros(11, np.int32), block=64, arch=arch)
    assert out.tolist() == [3 * i for i in range(11)]


def test_states_and_tokens():
    def body(out: cute.Tensor):
        pipe, buffer = make(2)
        write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
        warp = cute.arch.warp_idx()
        if warp == 0:
            for i in cutlass.range(cute.size(out)):
                pipe.producer_acquire(write, pipe.producer_try_acquire(write))
                buffer[write.index] = i + 1
                pipe.producer_commit(write)
                write.advance()
            pipe.producer_tail(write)
        if warp == 1:
            for i in cutlass.range(cute.size(out)):
                pipe.consumer_wait(read, pipe.consumer_try_wait(read))
                out[i] = buffer[read.index]
                pipe.consumer_release(read)
                read.advance()

    assert on_device(body, np.zeros(7, np.int32), block=64).tolist() == list(range(1, 8))


def test_the_tail_waits_for_consumers_that_take_turns():
    """Warp 1 has buffer 0 and may release it last: after the tail both buffers belong to the producer again."""

    def body(out: cute.Tensor):
        pipe, buffer = make(2)
        write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
        warp = cute.arch.warp_idx()
        if warp == 0:
            for i in cutlass.range_constexpr(2):
                pipe.producer_acquire(write)
                buffer[write.index] = i + 1
                pipe.producer_commit(write)
                write.advance()
            pipe.producer_tail(write)
            for i in cutlass.range_constexpr(2):
                buffer[i] = 0
        else:
            if warp == 2:
                read.advance()
            pipe.consumer_wait(read)
            out[warp - 1] = buffer[read.index]
            pipe.consumer_release(read)

    assert on_device(body, np.zeros(2, np.int32), block=96).tolist() == [1, 2]


def test_two_names_of_one_state():
    def body(out: cute.Tensor):
        first = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
        second = first
        for _ in cutlass.range(3, unroll=1):
            first.advance()
        for number, state in enumerate((first, second)):
            out[number, 0], out[number, 1], out[number, 2] = state.index, state.phase, state.count

    assert on_device(body, np.zeros((2, 3), np.int32), block=1).tolist() == [[1, 0, 3], [1, 0, 3]]


def test_barrier_storage_is_checked():
    def body(out: cute.Tensor):
        pipeline.PipelineAsync.create(
            num_stages=1, producer_group=group(), consumer_group=group(), barrier_storage=out.iterator
        )

    with pytest.raises(cutlass.CompileError, match="barrier_storage is not a pointer to Int64 in shared memory"):
        on_device(body, np.zeros(1, np.float32))


def test_an_elected_thread_runs_the_block_alone():
    def body(out: cute.Tensor):
        count = cutlass.Int32(0)
        with cute.arch.elect_one():
            count += 1
        out[cute.arch.thread_idx()[0]] = count

    assert on_device(body, np.zeros(32, np.int32)).sum() == 1


def test_match_and_bits():
    def body(out: cute.Tensor):
        lane = cute.arch.lane_idx()
        out[lane, 0] = cute.arch.match_any_sync(lane % 3)
        out[lane, 1] = cute.arch.popc(lane)
        out[lane, 2] = cute.arch.clz(lane)
        out[lane, 3] = cute.arch.mul_hi(lane << 20, lane << 20)
        out[lane, 4] = cute.arch.prmt(lane, 0x11223344, 0x4560)

    out = on_device(body, np.zeros((32, 5), np.int32)).astype(np.int64) & 0xFFFFFFFF
    assert out[:, 0].tolist() == [sum(1 << i for i in range(32) if i % 3 == lane % 3) for lane in LANES]
    assert out[:, 1].tolist() == [bin(lane).count("1") for lane in LANES]
    assert out[:, 2].tolist() == [32 - int(lane).bit_length() for lane in LANES]
    assert out[:, 3].tolist() == [((int(lane) << 20) ** 2 >> 32) & 0xFFFFFFFF for lane in LANES]
    assert out[:, 4].tolist() == [0x44332200 | int(lane) for lane in LANES]


def test_cluster_barrier():
    def body(out: cute.Tensor):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        out[cute.arch.block_idx()[0]] = cute.arch.block_idx_in_cluster()

    assert on_device(body, np.full(4, -1, np.int32), grid=4, cluster=(2, 1, 1)).tolist() == [0, 1, 0, 1]


def test_chips_without_an_instruction_refuse_it():
    def body(out: cute.Tensor):
        cute.arch.cluster_wait()

    with pytest.raises(cutlass.CompileError, match="sm_80"):
        on_device(body, np.zeros(1, np.int32), arch="sm_80")


def test_control_flow_as_functions():
    def body(out: cute.Tensor):
        lane = cute.arch.lane_idx()
        out[lane, 0] = cutlass.if_generate(lane < 3, lambda: lane * 2, lambda: lane, None, [cutlass.Int32])
        loop = cutlass.while_generate([lane, cutlass.Int32(0)], lambda n, turns: n > 1)
        with loop as (n, turns):
            cutlass.yield_out([n // 2, turns + 1])
        out[lane, 1] = loop.results[1]
        total = cutlass.for_generate(0, lane, 1, [cutlass.Int32(0)])
        with total as (i, a):
            cutlass.yield_out([a + i])
        out[lane, 2] = total.results[0]

    out = on_device(body, np.zeros((32, 3), np.int32))
    assert out[:, 0].tolist() == [lane * 2 if lane < 3 else lane for lane in LANES]
    assert out[:, 1].tolist() == [max(int(lane).bit_length() - 1, 0) for lane in LANES]
    assert out[:, 2].tolist() == [lane * (lane - 1) // 2 for lane in LANES]


def test_barriers_made_first_and_waited_for_later():
    def body(out: cute.Tensor):
        pipe, buffer = make(2, defer_sync=True)
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        producer, consumer = pipe.make_participants()
        warp = cute.arch.warp_idx()
        if warp == 0:
            buffer[producer.acquire().index] = 5
            producer.commit()
        if warp == 1:
            out[0] = buffer[consumer.wait().index]
            consumer.release()

    assert on_device(body, np.zeros(1, np.int32), block=64)[0] == 5


def test_a_handle_of_another_pipeline_is_refused():
    def body(out: cute.Tensor):
        first, second = make(1)[0], make(1)[0]
        handle = first.make_producer().acquire()
        second.make_producer().commit(handle)

    with pytest.raises(cutlass.CompileError, match="a handle of another pipeline"):
        on_device(body, np.zeros(1, np.int32))


def test_named_spellings():
    def body(out: cute.Tensor):
        cute.arch.barrier_wait(barrier_id=1, number_of_threads=32)
        cute.arch.fence_proxy_async()
        cute.arch.fence_mbarrier_init()
        cute.arch.cp_async_commit()
        cute.arch.cp_async_wait_group(0)
        out[cute.arch.tid_x()] = cute.arch.lane_id()

    assert on_device(body, np.zeros(32, np.int32)).tolist() == LANES.tolist()
