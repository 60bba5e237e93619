"""Pipelines whose buffers the copy engine fills or empties (TMA).

`PipelineTmaAsync`: a warp starts copies, "full" counts their bytes; consumers say by "empty" that a buffer is free, to
all blocks of the cluster that copy into it. `PipelineTmaStore`: copies to global memory, by groups of the thread that
starts them.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.arch import block_idx_in_cluster, lane_idx, make_warp_uniform
from tilewright.lang.control.generate import run_if
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, as_numeric
from tilewright.lang.nvgpu.bulk_groups import cp_async_bulk_commit_group, cp_async_bulk_wait_group
from tilewright.lang.nvgpu.mbarrier import mbarrier_arrive_after_reads
from tilewright.lang.tensors.pointer import Pointer
from tilewright.layout import Layout, size
from tilewright.pipeline.barriers import MbarrierArray, init_barriers, pipeline_init_arrive, pipeline_init_wait
from tilewright.pipeline.groups import CooperativeGroup, PipelineOp
from tilewright.pipeline.pipeline_async import PipelineAsync, storage_of
from tilewright.pipeline.state import PipelineState


class PipelineTmaAsync(PipelineAsync):
    """A pipeline that one warp fills by tensor copies and others read. Make it with `create`.

    `producer_acquire` waits for a free buffer and lets "full" expect the bytes of its copies, which take
    `producer_get_barrier(state)` as `tma_bar_ptr=`; the copies themselves commit. `consumer_release` counts one arrival
    for each warp, at the block itself and at all blocks that copy into the same buffers; so no block may end before
    `producer_tail`, while others of its cluster tell it.
    """

    def __init__(
        self,
        sync_object_full: MbarrierArray,
        sync_object_empty: MbarrierArray,
        num_stages: int,
        producer_mask: Any = None,
        consumer_mask: Any = None,
        is_signalling_thread: Any = None,
    ) -> None:
        super().__init__(sync_object_full, sync_object_empty, num_stages, producer_mask, consumer_mask)
        self.is_signalling_thread = is_signalling_thread

    producer_op = PipelineOp.TmaLoad

    @classmethod
    def create(  # type: ignore[override]
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer | None = None,
        cta_layout_vmnk: Layout | None = None,
        tidx: Any = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        defer_sync: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> PipelineTmaAsync:
        """Make the barriers and wait for all threads, of the cluster where there is one; all call it.

        Args:
            num_stages: buffers.
            producer_group: how many arrive to say that copies are on their way, usually 1.
            consumer_group: how many arrive to say that a buffer is free: the warps that read it, times the blocks that
                they tell.
            tx_count: bytes that are copied into a buffer.
            barrier_storage: two Int64 for each stage, in shared memory; by default `alloc_reserved_mbarrier` gives it.
            cta_layout_vmnk: the blocks of the cluster by (V,M,N,K); without it each block is alone.
            tidx: the thread's index; by default its lane is asked.
            mcast_mode_mn: whether tiles are shared along M and along N of the cluster.
            defer_sync: do not wait; the caller does (`pipeline_init_arrive`, `pipeline_init_wait`).
        """
        trace.device("a pipeline")
        barriers = storage_of(num_stages, barrier_storage)
        full = MbarrierArray(barriers, num_stages, (cls.producer_op, producer_group), tx_count)
        empty = MbarrierArray(barriers + num_stages, num_stages, consumer_group)
        init_barriers(full, empty)
        target, signals = _whom_to_tell(cta_layout_vmnk, tidx, mcast_mode_mn)
        if not defer_sync:
            shape = None if cta_layout_vmnk is None else cta_layout_vmnk.shape
            pipeline_init_arrive(shape, is_relaxed=True)
            pipeline_init_wait(shape)
        return cls(full, empty, num_stages, None, target, signals)

    def producer_acquire(
        self, state: PipelineState, try_acquire_token: Any = None, *, loc: object = None, ip: object = None
    ) -> None:
        """Wait until the buffer is free, and expect the bytes of the copies into it."""
        super().producer_acquire(state, try_acquire_token)
        self.sync_object_full.arrive(state.index, self.producer_mask)

    def producer_commit(self, state: PipelineState, *, loc: object = None, ip: object = None) -> None:
        """Nothing to do: copies tell the barrier when they are done."""

    def consumer_release(self, state: PipelineState, *, loc: object = None, ip: object = None) -> None:
        """The buffer is free: one lane of the warp for each block tells it."""
        with run_if(self.is_signalling_thread):
            if self.consumer_mask is None:
                self.sync_object_empty.arrive(state.index)
            else:
                mbarrier_arrive_after_reads(self.sync_object_empty.get_barrier(state.index), self.consumer_mask)


def _whom_to_tell(blocks: Layout | None, tidx: Any, shared: tuple[int, int]) -> tuple[Any, Boolean]:
    """The block that a lane tells of free buffers (None: its own), and whether it tells one.

    Lane r tells block r of the cluster, where both share tiles: of A along N (the same M), of B along M.
    """
    lane = lane_idx() if tidx is None else Int32(as_numeric(tidx)) % 32
    if blocks is None or int(size(blocks)) == 1:
        return None, lane == 0
    count = int(size(blocks))
    if count > 32:
        raise CompileError("a cluster of more than 32 blocks", location=user_location(3), values={"blocks": blocks})
    own = blocks.get_flat_coord(make_warp_uniform(block_idx_in_cluster()))
    other = blocks.get_flat_coord(lane % count)
    same = [_equal(own[mode], other[mode]) for mode in (1, 2)]
    shares = lane == block_idx_in_cluster()
    for along, fixed in ((1, 0), (0, 1)):
        if shared[along]:
            shares = shares | same[fixed]
    return lane, (lane < count) & shares


def _equal(a: Any, b: Any) -> Boolean:
    return Boolean(Int32(as_numeric(a)) == Int32(as_numeric(b)))


class PipelineTmaStore:
    """Buffers that a thread copies to global memory: at most `num_stages` groups of copies read theirs at a time."""

    def __init__(self, num_stages: int, producer_group: CooperativeGroup | None = None) -> None:
        self.num_stages = num_stages
        self.producer_group = producer_group

    @classmethod
    def create(
        cls, *, num_stages: int, producer_group: CooperativeGroup | None = None, loc: object = None, ip: object = None
    ) -> PipelineTmaStore:
        """A pipeline of `num_stages` buffers; it needs no memory."""
        if not isinstance(num_stages, int) or num_stages < 1:
            raise CompileError(f"a pipeline of {num_stages} stages", location=user_location(), hint="a positive int")
        return cls(num_stages, producer_group)

    def producer_acquire(self, *, loc: object = None, ip: object = None) -> None:
        """Wait until one buffer at least was read, and may be written again."""
        cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def producer_commit(self, *, loc: object = None, ip: object = None) -> None:
        """Close the group of the copies from a buffer."""
        cp_async_bulk_commit_group()

    def producer_tail(self, *, loc: object = None, ip: object = None) -> None:
        """Wait until all buffers were read."""
        cp_async_bulk_wait_group(0, read=True)
