"""Barriers of the primitives: of a warp, of a block, of a cluster, and those in shared memory."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.experimental.enums import MBarrierScope, MBarrierWait, MemOrder, MemScope, Proxy, SharedSpace
from tilewright.experimental.places import shared_place
from tilewright.hw.features import supports
from tilewright.lang import arch, trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Uint64, as_numeric
from tilewright.lang.nvgpu import barriers, mbarrier, threads
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.pointer import AddressSpace

fence_mbarrier_init = mbarrier.mbarrier_init_fence
_KINDS = {"and": "and", "or": "or", "popc": "popc"}


def bar_warp_sync(mask: Any = arch.FULL_MASK, *, loc: object = None, ip: object = None) -> None:
    """Wait for the lanes of `mask`."""
    arch.sync_warp(mask)


def barrier_cta_sync(barrier_id: Any = 0, thread_count: Any = None, *, loc: object = None, ip: object = None) -> None:
    """Wait at barrier `barrier_id` for `thread_count` threads, by default all of the block; one by one, if need be."""
    if thread_count is None:
        arch.barrier(barrier_id=barrier_id)
    else:
        barriers.barrier_unaligned(barrier_id, thread_count)


def barrier_cta_sync_aligned(
    barrier_id: Any = 0, thread_count: Any = None, *, loc: object = None, ip: object = None
) -> None:
    """`barrier_cta_sync`, to which all threads of a warp come together."""
    arch.barrier(barrier_id=barrier_id, number_of_threads=thread_count)


def barrier_cta_arrive(barrier_id: Any, thread_count: Any, *, loc: object = None, ip: object = None) -> None:
    """Arrive at a barrier without waiting; `thread_count` counts those that arrive and those that wait."""
    barriers.barrier_arrive(barrier_id=barrier_id, number_of_threads=thread_count, aligned=False)


def barrier_cta_arrive_aligned(barrier_id: Any, thread_count: Any, *, loc: object = None, ip: object = None) -> None:
    """`barrier_cta_arrive`, to which all threads of a warp come together."""
    barriers.barrier_arrive(barrier_id=barrier_id, number_of_threads=thread_count)


def barrier_cta_red(
    pred: Any, barrier_id: Any = 0, kind: Any = "or", thread_count: Any = None, *, loc: object = None, ip: object = None
) -> Any:
    """Wait at a barrier, and give what the threads' predicates come to: whether all hold (`and`), whether one holds
    (`or`), or how many do (`popc`).

    Raises:
        CompileError: another kind.
    """
    name = str(getattr(kind, "value", kind)).lower()
    if name not in _KINDS:
        raise CompileError(f"barrier_cta_red has no kind {kind!r}", location=user_location(), hint="and, or or popc")
    count = "" if thread_count is None else ", $3"
    given = [Int32(Boolean(as_numeric(pred))), Int32(as_numeric(barrier_id))]
    given += [] if thread_count is None else [Int32(as_numeric(thread_count))]
    if name == "popc":
        text = f"{{ .reg .pred p; setp.ne.s32 p, $1, 0; barrier.cta.red.popc.aligned.u32 $0, $2{count}, p; }}"
        return instruction(text, given, result=Int32)
    text = (
        f"{{ .reg .pred p, q; setp.ne.s32 p, $1, 0; barrier.cta.red.{name}.aligned.pred q, $2{count}, p; "
        "selp.b32 $0, 1, 0, q; }"
    )
    return instruction(text, given, result=Int32) != 0


def barrier_cluster_arrive(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Arrive at the cluster's barrier; memory written before is visible to blocks that wait."""
    threads.cluster_arrive(aligned=aligned)


def barrier_cluster_arrive_relaxed(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Arrive at the cluster's barrier without ordering memory."""
    threads.cluster_arrive_relaxed(aligned=aligned)


def barrier_cluster_wait(*, aligned: bool = True, loc: object = None, ip: object = None) -> None:
    """Wait for all blocks of the cluster to arrive."""
    threads.cluster_wait(aligned=aligned)


def mbarrier_init(mbar: Any, count: Any, *, loc: object = None, ip: object = None) -> None:
    """Make an mbarrier expect `count` arrivals in each phase. One thread does it, before any other uses it."""
    mbarrier.mbarrier_init(shared_place(mbar, "mbarrier_init"), count)


def mbarrier_inval(mbar: Any, *, loc: object = None, ip: object = None) -> None:
    """End an mbarrier's life: its memory may be used for something else."""
    mbarrier.mbarrier_inval(shared_place(mbar, "mbarrier_inval"))


def mbarrier_arrive(
    mbar: Any,
    *,
    scope: MemScope = MemScope.CTA,
    relaxed: bool = False,
    count: Any = None,
    loc: object = None,
    ip: object = None,
) -> Uint64 | None:
    """Arrive at an mbarrier, `count` times; gives the state of its phase, which an mbarrier of another block has not.

    With `relaxed` nothing that was written before is ordered by it.
    """
    pointer = shared_place(mbar, "mbarrier_arrive", AddressSpace.dsmem)
    remote = pointer.memspace is AddressSpace.dsmem
    plain = scope is MemScope.CTA and not relaxed and not remote
    seen = MemScope.CLUSTER if remote and scope is MemScope.CTA else scope
    order = "" if plain else f".{'relaxed' if relaxed else 'release'}.{seen.value}"
    space = "shared::cluster" if remote else "shared" if plain and count is None else "shared::cta"
    feature = "mbarrier.remote_arrive" if remote or not plain else "mbarrier" if count is None else "mbarrier.try_wait"
    operands = (pointer.toint(), *(() if count is None else (Int32(as_numeric(count)),)))
    tail = "" if count is None else f", ${len(operands) - (1 if remote else 0)}"
    if remote:
        instruction(f"mbarrier.arrive{order}.{space}.b64 _, [$0]{tail};", operands, feature=feature)
        return None
    text = f"mbarrier.arrive{order}.{space}.b64 $0, [$1]{tail};"
    return Uint64(instruction(text, operands, result=Int64, feature=feature))


def mbarrier_arrive_expect_tx(mbar: Any, tx_count: Any, *, loc: object = None, ip: object = None) -> Uint64 | None:
    """Expect `tx_count` more bytes in this phase, and arrive once; gives what `mbarrier_arrive` gives."""
    pointer = shared_place(mbar, "mbarrier_arrive_expect_tx", AddressSpace.dsmem)
    given = (pointer.toint(), Int32(as_numeric(tx_count)))
    if pointer.memspace is AddressSpace.dsmem:
        text = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;"
        instruction(text, given, feature="mbarrier.remote_arrive")
        return None
    text = "mbarrier.arrive.expect_tx.shared::cta.b64 $0, [$1], $2;"
    return Uint64(instruction(text, given, result=Int64, feature="mbarrier.expect_tx"))


def mbarrier_try_wait_parity(
    mbar: Any, phase: Any, time_limit: Any = None, *, loc: object = None, ip: object = None
) -> Boolean:
    """Whether the phase of parity `phase` is complete, after waiting for it, at most about `time_limit` nanoseconds."""
    return _waited(mbar, ".parity", Int32(as_numeric(phase)), time_limit, "mbarrier_try_wait_parity")


def mbarrier_try_wait_timelimit(
    mbar: Any, state: Any, time_limit: Any = None, *, loc: object = None, ip: object = None
) -> Boolean:
    """Whether the phase that an arrival gave as `state` is complete, after waiting at most about `time_limit`
    nanoseconds."""
    return _waited(mbar, "", Int64(as_numeric(state)), time_limit, "mbarrier_try_wait_timelimit")


mbarrier_try_wait = mbarrier_try_wait_timelimit


def _waited(mbar: Any, form: str, phase: Any, time_limit: Any, what: str) -> Boolean:
    given = [shared_place(mbar, what).toint(), phase]
    tail = "" if time_limit is None else ", $3"
    given += [] if time_limit is None else [Int32(as_numeric(time_limit))]
    text = (
        f"{{ .reg .pred done; mbarrier.try_wait{form}.shared::cta.b64 done, [$1], $2{tail}; selp.b32 $0, 1, 0, done; }}"
    )
    return Boolean(instruction(text, given, result=Int32, feature="mbarrier.try_wait") != 0)


def mbarrier_wait_parity(
    mbar: Any,
    phase: Any,
    wait: MBarrierWait = MBarrierWait.TRY,
    *,
    scope: MBarrierScope = MBarrierScope.CTA,
    order: MemOrder = MemOrder.ACQUIRE,
    loc: object = None,
    ip: object = None,
) -> Boolean:
    """Whether the phase of parity `phase` is complete: one look (TEST), or after waiting a while for it (TRY).

    What was written before arrivals that release at `scope` is then visible, unless `order` is RELAXED.
    """
    at = shared_place(mbar, "mbarrier_wait_parity").toint()
    chip = trace.device("mbarrier_wait_parity").arch or "sm_90"
    plain = scope is MBarrierScope.CTA and order is MemOrder.ACQUIRE
    qualifiers = "" if plain else f".{order.value}.{scope.value}"
    waits = wait is MBarrierWait.TRY and supports("mbarrier.try_wait", chip)
    feature = "mbarrier.try_wait" if waits else "mbarrier.test_wait.parity" if plain else "mbarrier.remote_arrive"
    text = (
        f"{{ .reg .pred done; mbarrier.{'try' if waits else 'test'}_wait.parity{qualifiers}.shared.b64 done, [$1], $2; "
        "selp.b32 $0, 1, 0, done; }"
    )
    return Boolean(instruction(text, (at, Int32(as_numeric(phase))), result=Int32, feature=feature) != 0)


def cp_async_mbarrier_arrive(mbar: Any, *, noinc: bool = False, loc: object = None, ip: object = None) -> None:
    """Arrive when all `cp.async` copies of this thread so far are done; with `noinc` the arrival counts as expected."""
    mbarrier.cp_async_mbarrier_arrive(shared_place(mbar, "cp_async_mbarrier_arrive"), noinc=noinc)


def fence_proxy(kind: Proxy, *, space: SharedSpace | None = None, loc: object = None, ip: object = None) -> None:
    """Order this thread's accesses through one proxy with those through another."""
    threads.fence_proxy(kind.value, space=None if space is None else space.value)


def fence_sync_restrict(order: MemOrder, *, loc: object = None, ip: object = None) -> None:
    """A fence that orders shared memory alone: RELEASE what this block wrote, ACQUIRE what others of the cluster did.

    Raises:
        CompileError: another order.
    """
    spaces = {MemOrder.RELEASE: "shared::cta", MemOrder.ACQUIRE: "shared::cluster"}
    if order not in spaces:
        raise CompileError(
            f"fence_sync_restrict has no order {order}", location=user_location(), hint="MemOrder.RELEASE or ACQUIRE"
        )
    instruction(f"fence.{order.value}.sync_restrict::{spaces[order]}.cluster;", feature="fence.sync_restrict")
