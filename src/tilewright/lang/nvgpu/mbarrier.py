"""`mbarrier`: barriers in shared memory that count arrivals and bytes (PTX ISA 9.0, section 9.7.13.15).

A barrier is 8 bytes, aligned to 8. Its phase flips when all expected arrivals and bytes have come; a waiter gives the
parity (0 or 1) of the phase that it waits for to complete.
"""

from __future__ import annotations

from typing import Any

from tilewright.hw.features import supports
from tilewright.ir import build, mlir
from tilewright.lang import trace
from tilewright.lang.numbers.arithmetic import invert
from tilewright.lang.numbers.numeric import Boolean, Int32, as_numeric
from tilewright.lang.nvgpu.instructions import instruction, shared_address


def mbarrier_init(mbar_ptr: Any, cnt: Any, *, loc: object = None, ip: object = None) -> None:
    """Make the barrier expect `cnt` arrivals in each phase. One thread does it, before any other uses it."""
    at = shared_address(mbar_ptr, "mbarrier_init")
    instruction("mbarrier.init.shared.b64 [$0], $1;", (at, Int32(as_numeric(cnt))), feature="mbarrier")


def mbarrier_inval(mbar_ptr: Any, *, loc: object = None, ip: object = None) -> None:
    """End the barrier's life: its memory may be used for something else."""
    at = shared_address(mbar_ptr, "mbarrier_inval")
    instruction("mbarrier.inval.shared.b64 [$0];", (at,), feature="mbarrier")


def mbarrier_init_fence(*, loc: object = None, ip: object = None) -> None:
    """Make barriers that this thread made visible to the cluster and to copies; a fence for the block before sm_90."""
    if supports("fence.mbarrier_init", trace.device("mbarrier_init_fence").arch or "sm_90"):
        instruction("fence.mbarrier_init.release.cluster;", feature="fence.mbarrier_init")
    else:
        instruction("fence.acq_rel.cta;")


def mbarrier_arrive(
    mbar_ptr: Any,
    peer_cta_rank_in_cluster: Any = None,
    arrive_count: Any = 1,
    *,
    loc: object = None,
    ip: object = None,
) -> None:
    """Arrive `arrive_count` times; with a rank, at the same barrier of that block of the cluster."""
    at, count = shared_address(mbar_ptr, "mbarrier_arrive"), Int32(as_numeric(arrive_count))
    if peer_cta_rank_in_cluster is not None:
        _remote(
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote], $2;", at, peer_cta_rank_in_cluster, count
        )
    elif isinstance(arrive_count, int) and arrive_count == 1:
        instruction("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [$0]; }", (at,), feature="mbarrier")
    else:
        text = "{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [$0], $1; }"
        instruction(text, (at, count), feature="mbarrier.try_wait")


def mbarrier_arrive_after_reads(mbar_ptr: Any, peer_cta_rank_in_cluster: Any) -> None:
    """Arrive once at the same barrier of another block, to say that this warp is done with reading its own memory.

    What this thread wrote to other memory is not ordered for that block, which spares a fence of the whole device.
    """
    at = shared_address(mbar_ptr, "mbarrier_arrive")
    text = "mbarrier.arrive.shared::cluster.b64 _, [remote], $2;"
    _remote(text, at, peer_cta_rank_in_cluster, Int32(1))


def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Any,
    bytes: Any,
    peer_cta_rank_in_cluster: Any = None,
    *,
    loc: object = None,
    ip: object = None,
) -> None:
    """Expect `bytes` more to be copied in this phase, and arrive once."""
    at, count = shared_address(mbar_ptr, "mbarrier_arrive_and_expect_tx"), Int32(as_numeric(bytes))
    if peer_cta_rank_in_cluster is not None:
        text = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [remote], $2;"
        _remote(text, at, peer_cta_rank_in_cluster, count)
        return
    text = "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [$0], $1; }"
    instruction(text, (at, count), feature="mbarrier.expect_tx")


def mbarrier_expect_tx(
    mbar_ptr: Any,
    bytes: Any,
    peer_cta_rank_in_cluster: Any = None,
    *,
    loc: object = None,
    ip: object = None,
) -> None:
    """Expect `bytes` more to be copied in this phase."""
    at, count = shared_address(mbar_ptr, "mbarrier_expect_tx"), Int32(as_numeric(bytes))
    if peer_cta_rank_in_cluster is not None:
        text = "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [remote], $2;"
        _remote(text, at, peer_cta_rank_in_cluster, count)
        return
    instruction("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", (at, count), feature="mbarrier.expect_tx")


def _remote(text: str, at: Int32, rank: Any, count: Int32) -> None:
    """An operation on the barrier at the same address in another block of the cluster."""
    whole = f"{{ .reg .b32 remote; mapa.shared::cluster.u32 remote, $0, $1; {text} }}"
    instruction(whole, (at, Int32(as_numeric(rank)), count), feature="mbarrier.remote_arrive")


def mbarrier_try_wait(mbar_ptr: Any, phase: Any, *, loc: object = None, ip: object = None) -> Boolean:
    """Whether the phase of parity `phase` is complete, after waiting a while for it (sm_90; one look before)."""
    at = shared_address(mbar_ptr, "mbarrier_try_wait")
    return _test(at, Int32(as_numeric(phase)))


def mbarrier_test_wait(mbar_ptr: Any, phase: Any, *, loc: object = None, ip: object = None) -> Boolean:
    """Whether the phase of parity `phase` is complete now: one look, without waiting."""
    at = shared_address(mbar_ptr, "mbarrier_test_wait")
    return _test(at, Int32(as_numeric(phase)), waits=False)


def _test(at: Int32, parity: Int32, waits: bool = True) -> Boolean:
    modern = waits and supports("mbarrier.try_wait", trace.device("mbarrier wait").arch or "sm_90")
    name = "try_wait" if modern else "test_wait"
    text = f"{{ .reg .pred done; mbarrier.{name}.parity.shared.b64 done, [$1], $2; selp.b32 $0, 1, 0, done; }}"
    feature = "mbarrier.try_wait" if modern else "mbarrier.test_wait.parity"
    done = instruction(text, (at, parity), result=Int32, feature=feature)
    return done != 0


def mbarrier_wait(mbar_ptr: Any, phase: Any, *, loc: object = None, ip: object = None) -> None:
    """Wait until the phase of parity `phase` is complete; memory written before the arrivals is visible after."""
    at, parity = shared_address(mbar_ptr, "mbarrier_wait"), Int32(as_numeric(phase))
    at_value, parity_value = at.ir_value(), parity.ir_value()
    loop = build.emit("scf.while", (), (), regions=2)
    with mlir.ir.InsertionPoint(loop.regions[0].blocks.append()):
        done = _test(Int32.from_ir(at_value), Int32.from_ir(parity_value))
        build.emit("scf.condition", (), (invert(done.ir_value()),))
    with mlir.ir.InsertionPoint(loop.regions[1].blocks.append()):
        build.emit("scf.yield")


def mbarrier_conditional_try_wait(
    cond: Any, mbar_ptr: Any, phase: Any, *, loc: object = None, ip: object = None
) -> Boolean:
    """`mbarrier_try_wait` where `cond` holds, else True."""
    at, parity = shared_address(mbar_ptr, "mbarrier_conditional_try_wait"), Int32(as_numeric(phase))
    condition = Boolean(as_numeric(cond)).ir_value()
    operands = at.ir_value(), parity.ir_value()
    choice = build.emit("scf.if", (Boolean.mlir_type,), (condition,), regions=2)
    with mlir.ir.InsertionPoint(choice.regions[0].blocks.append()):
        tested = _test(Int32.from_ir(operands[0]), Int32.from_ir(operands[1]))
        build.emit("scf.yield", (), (tested.ir_value(),))
    with mlir.ir.InsertionPoint(choice.regions[1].blocks.append()):
        build.emit("scf.yield", (), (Boolean(True).ir_value(),))
    return Boolean.from_ir(choice.results[0])


def cp_async_mbarrier_arrive(mbar_ptr: Any, *, noinc: bool = False, loc: object = None, ip: object = None) -> None:
    """Arrive when all `cp.async` copies of this thread so far are done; with `noinc` the arrival counts as expected."""
    at = shared_address(mbar_ptr, "cp_async_mbarrier_arrive")
    suffix = ".noinc" if noinc else ""
    instruction(f"cp.async.mbarrier.arrive{suffix}.shared.b64 [$0];", (at,), feature="cp.async.mbarrier")


def cp_async_mbarrier_arrive_noinc(mbar_ptr: Any, *, loc: object = None, ip: object = None) -> None:
    """`cp_async_mbarrier_arrive(noinc=True)`."""
    cp_async_mbarrier_arrive(mbar_ptr, noinc=True)
