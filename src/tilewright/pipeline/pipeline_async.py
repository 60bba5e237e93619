"""`PipelineAsync`: buffers between threads that fill them and threads that read them.

Each stage has two barriers: at "full" the producers arrive when it is filled, at "empty" the consumers when it is
free. A side that waits gives the parity that its position holds, see `PipelineState`.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.pipeline.barriers import MbarrierArray, alloc_reserved_mbarrier, init_barriers, sync
from tilewright.pipeline.groups import CooperativeGroup, PipelineOp, PipelineUserType
from tilewright.pipeline.participants import PipelineConsumer, PipelineProducer
from tilewright.pipeline.state import PipelineState, make_pipeline_state


class PipelineAsync:
    """A pipeline of `num_stages` buffers. Make it with `create`."""

    def __init__(
        self,
        sync_object_full: MbarrierArray,
        sync_object_empty: MbarrierArray,
        num_stages: int,
        producer_mask: Any = None,
        consumer_mask: Any = None,
    ) -> None:
        self.sync_object_full = sync_object_full
        self.sync_object_empty = sync_object_empty
        self.num_stages = num_stages
        self.producer_mask = producer_mask
        self.consumer_mask = consumer_mask

    producer_op = PipelineOp.AsyncThread

    @staticmethod
    def _make_sync_object(
        barrier_storage: Pointer, num_stages: int, agent: tuple[PipelineOp, CooperativeGroup], tx_count: int = 0
    ) -> MbarrierArray:
        """The barriers of one side, made by thread 0; the caller waits before their first use."""
        array = MbarrierArray(barrier_storage, num_stages, agent, tx_count)
        init_barriers(array)
        return array

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        producer_mask: Any = None,
        consumer_mask: Any = None,
        defer_sync: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> PipelineAsync:
        """Make the barriers and wait for all threads of the block; all call it.

        Args:
            num_stages: buffers.
            producer_group: as many agents as arrive to say that a buffer is filled.
            consumer_group: as many as arrive to say that it is free.
            barrier_storage: two Int64 for each stage, in shared memory; by default `alloc_reserved_mbarrier` gives it.
            producer_mask: rank of the block of the cluster at which producers arrive; None is the own one.
            consumer_mask: rank at which consumers arrive.
            defer_sync: do not wait; the caller does (`pipeline.sync`) before the first use.
        """
        trace.device("a pipeline")
        barriers = storage_of(num_stages, barrier_storage)
        full = MbarrierArray(barriers, num_stages, (cls.producer_op, producer_group))
        empty = MbarrierArray(barriers + num_stages, num_stages, consumer_group)
        init_barriers(full, empty)
        if not defer_sync:
            sync()
        return cls(full, empty, num_stages, producer_mask, consumer_mask)

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: object = None, ip: object = None
    ) -> None:
        """Wait until the buffer is free."""
        self.sync_object_empty.wait_unless(try_acquire_token, state.index, state.phase)

    def producer_try_acquire(self, state: PipelineState, *, loc: object = None, ip: object = None) -> Boolean:
        """Whether the buffer is free."""
        return self.sync_object_empty.try_wait(state.index, state.phase)

    def producer_commit(self, state: PipelineState, *, loc: object = None, ip: object = None) -> None:
        """The buffer is filled."""
        self.sync_object_full.arrive(state.index, self.producer_mask)

    def producer_get_barrier(self, state: PipelineState, *, loc: object = None, ip: object = None) -> Pointer:
        """The barrier of the buffer that says it is filled."""
        return self.sync_object_full.get_barrier(state.index)

    def producer_tail(self, state: PipelineState, *, loc: object = None, ip: object = None) -> None:
        """Wait until every buffer is free, whatever order consumers release them in. `state` moves to the last one."""
        for stage in range(self.num_stages):
            if stage:
                state.advance()
            self.sync_object_empty.wait(state.index, state.phase)

    def consumer_wait(
        self, state: PipelineState, try_wait_token: Any = None, *, loc: object = None, ip: object = None
    ) -> None:
        """Wait until the buffer is filled."""
        self.sync_object_full.wait_unless(try_wait_token, state.index, state.phase)

    def consumer_try_wait(self, state: PipelineState, *, loc: object = None, ip: object = None) -> Boolean:
        """Whether the buffer is filled."""
        return self.sync_object_full.try_wait(state.index, state.phase)

    def consumer_release(self, state: PipelineState, *, loc: object = None, ip: object = None) -> None:
        """The buffer is free."""
        self.sync_object_empty.arrive(state.index, self.consumer_mask)

    def make_producer(self, *, loc: object = None, ip: object = None) -> PipelineProducer:
        """The producing side, at the first buffer."""
        return PipelineProducer(self, make_pipeline_state(PipelineUserType.Producer, self.num_stages))

    def make_consumer(self, *, loc: object = None, ip: object = None) -> PipelineConsumer:
        """The consuming side, at the first buffer."""
        return PipelineConsumer(self, make_pipeline_state(PipelineUserType.Consumer, self.num_stages))

    def make_participants(self, *, loc: object = None, ip: object = None) -> tuple[PipelineProducer, PipelineConsumer]:
        """Both sides."""
        return self.make_producer(), self.make_consumer()


class PipelineCpAsync(PipelineAsync):
    """A pipeline that threads fill with `cp.async`: a buffer is full when the copies that its producers began are done.

    `producer_group` counts the threads that copy; each commits after its copies.
    """

    producer_op = PipelineOp.AsyncLoad


def storage_of(num_stages: int, storage: Any) -> Pointer:
    """The memory for the barriers of a pipeline: the caller's or, without it, reserved.

    Raises:
        CompileError: the caller's cannot hold barriers, or the number of stages is not positive.
    """
    if not isinstance(num_stages, int) or num_stages < 1:
        raise CompileError(f"a pipeline of {num_stages} stages", location=user_location(3), hint="a positive int")
    if storage is None:
        return alloc_reserved_mbarrier(num_stages)
    if not isinstance(storage, Pointer) or storage.memspace is not AddressSpace.smem or storage.dtype.width != 64:
        raise CompileError(
            "barrier_storage is not a pointer to Int64 in shared memory",
            location=user_location(3),
            values={"got": storage},
            hint="a field `cute.struct.MemRange[cutlass.Int64, 2 * num_stages]` gives one: storage.field.data_ptr()",
        )
    return storage
