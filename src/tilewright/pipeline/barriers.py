"""The barriers of a pipeline: one `mbarrier` for each stage, in shared memory."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.base.stubs import NotBuiltError
from tilewright.lang.arch import barrier, sync_threads, sync_warp, thread_idx
from tilewright.lang.control.generate import run_if
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int64, as_numeric
from tilewright.lang.nvgpu import mbarrier
from tilewright.lang.nvgpu.elect import one_thread_of_warp
from tilewright.lang.nvgpu.threads import cluster_arrive, cluster_arrive_relaxed, cluster_wait
from tilewright.lang.tensors.allocation import SmemAllocator, SmemPartition
from tilewright.lang.tensors.pointer import Pointer
from tilewright.layout import size
from tilewright.pipeline.groups import Agent, CooperativeGroup, PipelineOp


class MbarrierArray:
    """`num_stages` barriers from `barrier_storage` on, at which all of a group arrive.

    `agent` is the group, or a pair of how it arrives and the group: threads, their `cp.async` copies when done, or one
    thread of a warp that expects `tx_count` bytes of tensor copies.
    """

    def __init__(
        self,
        barrier_storage: Pointer,
        num_stages: int,
        agent: CooperativeGroup | tuple[PipelineOp, CooperativeGroup],
        tx_count: int = 0,
        *,
        loc: object = None,
        ip: object = None,
    ) -> None:
        self.barrier_storage = barrier_storage
        self.num_stages = num_stages
        self.op_type, group = agent if isinstance(agent, tuple) else (PipelineOp.AsyncThread, agent)
        if self.op_type not in (PipelineOp.AsyncThread, PipelineOp.AsyncLoad, PipelineOp.TmaLoad):
            raise NotBuiltError(f"pipeline.MbarrierArray with {self.op_type} needs sm_100 (Blackwell), not built yet")
        if tx_count and self.op_type is not PipelineOp.TmaLoad:
            raise CompileError(
                f"barriers at which {self.op_type.value} expect no bytes",
                location=user_location(),
                values={"tx_count": tx_count},
                hint="give the agent as (PipelineOp.TmaLoad, group)",
            )
        self.arrive_count = group.size
        self.tx_count = tx_count

    def init(self) -> None:
        """Make the barriers; called by one thread."""
        for stage in range(self.num_stages):
            mbarrier.mbarrier_init(self.get_barrier(stage), self.arrive_count)

    def get_barrier(self, index: Any, *, loc: object = None, ip: object = None) -> Pointer:
        """The barrier of a stage."""
        return self.barrier_storage + index

    def max(self) -> int:
        """How many barriers."""
        return self.num_stages

    def arrive(
        self, index: Any, dst: Any = None, cta_group: Any = None, *, loc: object = None, ip: object = None
    ) -> None:
        """Arrive at the barrier of a stage as the group does; with a rank `dst`, at that of another block."""
        if self.op_type is PipelineOp.TmaLoad:
            self.arrive_and_expect_tx(index, self.tx_count)
        elif self.op_type is PipelineOp.AsyncLoad:
            self.arrive_cp_async_mbarrier(index)
        else:
            self.arrive_mbarrier(index, dst)

    def arrive_mbarrier(self, index: Any, dst_rank: Any = None, *, loc: object = None, ip: object = None) -> None:
        """Arrive at the barrier of a stage; with a rank, at that of another block of the cluster."""
        mbarrier.mbarrier_arrive(self.get_barrier(index), dst_rank)

    def arrive_cp_async_mbarrier(self, index: Any, *, loc: object = None, ip: object = None) -> None:
        """Arrive when the `cp.async` copies of this thread so far are done."""
        mbarrier.cp_async_mbarrier_arrive_noinc(self.get_barrier(index))

    def arrive_and_expect_tx(self, index: Any, tx_count: Any, *, loc: object = None, ip: object = None) -> None:
        """Arrive, and expect `tx_count` bytes of copies. One thread of the warp does it."""
        barrier = self.get_barrier(index)
        with one_thread_of_warp():
            mbarrier.mbarrier_arrive_and_expect_tx(barrier, tx_count)

    def wait(self, index: Any, phase: Any, *, loc: object = None, ip: object = None) -> None:
        """Wait until a phase of the stage's barrier is complete."""
        mbarrier.mbarrier_wait(self.get_barrier(index), phase)

    def try_wait(self, index: Any, phase: Any, *, loc: object = None, ip: object = None) -> Boolean:
        """Whether the phase is complete, after waiting a while."""
        return mbarrier.mbarrier_try_wait(self.get_barrier(index), phase)

    def wait_unless(self, token: Any, index: Any, phase: Any) -> None:
        """Wait, unless `token` says that `try_wait` saw the phase complete; None is no token."""
        if token is None:
            self.wait(index, phase)
            return
        with run_if(~Boolean(as_numeric(token))):
            self.wait(index, phase)


def alloc_reserved_mbarrier(num_stages: int, *, loc: object = None, ip: object = None) -> Pointer:
    """Shared memory for the barriers of a pipeline: two for each stage, that it is full and that it is empty."""
    return SmemAllocator().allocate_array(Int64, 2 * num_stages, partition=SmemPartition.RESERVED)


def init_barriers(*arrays: MbarrierArray) -> None:
    """Thread 0 makes the barriers and shows them to copies and the cluster."""
    x, y, z = thread_idx()
    with run_if((x == 0) & (y == 0) & (z == 0)):
        for array in arrays:
            array.init()
        mbarrier.mbarrier_init_fence()


def pipeline_init_arrive(
    cluster_shape_mn: Any = None, is_relaxed: bool = False, *, loc: object = None, ip: object = None
) -> None:
    """After making barriers without waiting (`defer_sync`): arrive at the cluster's barrier, if there is a cluster."""
    if _in_cluster(cluster_shape_mn):
        (cluster_arrive_relaxed if is_relaxed else cluster_arrive)()


def pipeline_init_wait(cluster_shape_mn: Any = None, *, loc: object = None, ip: object = None) -> None:
    """Wait until all blocks of the cluster, or all threads of the block, have made their barriers."""
    if _in_cluster(cluster_shape_mn):
        cluster_wait()
    else:
        sync_threads()


def _in_cluster(shape: Any) -> bool:
    return shape is not None and int(size(shape)) > 1


def sync(barrier_id: int = 0, *, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of the block: barriers made before may be used after."""
    if barrier_id == 0:
        sync_threads()
    else:
        barrier(barrier_id=barrier_id)


def agent_sync(group: Agent, is_relaxed: bool = False, *, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of an agent: a warp, the block, the cluster (with `is_relaxed` without a fence)."""
    if group is Agent.ThreadBlockCluster:
        (cluster_arrive_relaxed if is_relaxed else cluster_arrive)()
        cluster_wait()
    elif group is Agent.ThreadBlock:
        sync_threads()
    elif group is Agent.Warp:
        sync_warp()
