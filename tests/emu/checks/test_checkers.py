"""Unwritten values, bounds, barriers, proxies and wgmma, from events alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.emu.checks.batch import U4, Fed, instructions
from tilewright.targets.emu.checks import Access, Barriers, Bounds, Proxies, Unwritten, WgmmaRegisters
from tilewright.targets.emu.checks.observer import GroupRead
from tilewright.targets.emu.faults import Fault

IDS = np.arange(64)


# Unwritten.

PLAIN = "st.shared.u32 [%r1], %r2; ld.shared.u32 %r3, [%r4];"


def test_a_load_answers_which_bytes_no_one_has_written():
    fed = Fed([Unwritten], PLAIN)
    fed.shared(0, IDS[:10], True, ids=IDS[:10])
    missing = fed.shared(1, IDS, False)
    np.testing.assert_array_equal(missing[:, 0], IDS >= 10)
    fed.shared(0, IDS, True)
    assert fed.shared(1, IDS, False) is None and not fed.findings


def test_bytes_within_words():
    fed = Fed([Unwritten], "st.shared.u8 [%r1], %r2; ld.shared.u32 %r3, [%r4];")
    L, address = fed.lanes([5]), np.array([6], np.uint64)
    fed.on.shared_access(Access("shared", 0, L, address, np.array([6]), 0, True))
    missing = fed.shared(1, [1], False, ids=[5])
    np.testing.assert_array_equal(missing, [[True, True, False, True]])


def test_what_is_stored_unwritten_counts_as_not_written():
    fed = Fed([Unwritten], PLAIN)
    fed.shared(0, IDS, True)
    assert fed.shared(1, IDS, False) is None
    address = IDS.astype(np.uint64) * np.uint64(4)
    fed.on.unwritten_stored(0, fed.lanes(), "shared", address, 0, 2, IDS == 3)
    np.testing.assert_array_equal(np.flatnonzero(fed.shared(1, IDS, False)), [3])


@pytest.mark.parametrize(("unit", "replaced", "left"), [(4, False, True), (0, True, False)])
def test_atomics_combine_or_replace(unit, replaced, left):
    """`add` leaves unwritten what was; `exch` writes. Both results depend on what was there."""
    fed = Fed([Unwritten], f"atom.shared.{'exch.b32' if replaced else 'add.u32'} %r1, [%r2], %r3; {PLAIN}")
    L, address = fed.lanes([0]), np.array([8], np.uint64)
    missing = fed.on.atomic_begins(0, L, "shared", address, 4)
    assert missing.tolist() == [[True]]
    rows = fed.on.atomic_ends(0, L, "shared", address, 4, unit, missing, np.bool_(False), np.bool_(replaced), True)
    assert rows.tolist() == [[True] * 4]
    assert (fed.shared(2, [2], False, ids=[0]) is not None) == left


def test_a_use_is_reported_with_its_threads():
    fed = Fed([Unwritten], PLAIN)
    fed.on.value_used(1, fed.lanes(), IDS % 2 == 1, "address")
    (fault,) = fed.findings
    assert fault.message == "A value that was never written is used as an address" and fault.kind == "uninitialised"
    np.testing.assert_array_equal(fault.lanes, IDS[1::2])


# Bounds.


def test_bounds_leave_out_who_is_refused():
    fed = Fed([Bounds], PLAIN)
    fault = Fault("bounds", "Out-of-bounds access to shared memory", 1, np.array([2, 5]))
    np.testing.assert_array_equal(fed.on.refused(fault, fed.lanes()), [2, 5])
    assert fed.findings == [fault]
    assert fed.on.refused(Fault("race", "another"), fed.lanes()) is None


def test_local_memory_behind_the_frames_that_run():
    fed = Fed([Bounds], "ld.local.u32 %r1, [%r2];", threads=32, frame_end=lambda: 16)
    address = np.full(32, 8, np.uint64)
    assert fed.on.before_local(Access("local", 0, fed.lanes(), address, None, 2, False)) is None
    address[7] = 16
    left_out = fed.on.before_local(Access("local", 0, fed.lanes(), address, None, 2, False))
    np.testing.assert_array_equal(left_out, [7])
    assert fed.findings[0].message == "Access to local memory of a function that has returned"


# Barriers.


def standing(fed, gate, ids, number=0):
    """A cohort in front of a barrier in block `number` of its code, which a store follows."""
    block = SimpleNamespace(gate_site=gate, targets=[1], classes={"bar": 1})
    behind = SimpleNamespace(gate_site=None, targets=[], classes={"st": 1})
    code = SimpleNamespace(blocks=[block, behind])
    return SimpleNamespace(L=fed.lanes(ids), code=code, pc=number, frames=())


BAR, OTHER = instructions("bar.sync 0; bar.sync 0;")[:2]


@pytest.mark.parametrize(("all_arrive", "count"), [(False, 0), (True, 1)])
def test_a_warp_that_has_ended_before_a_barrier(all_arrive, count):
    """By PTX it releases the barrier; where all threads must arrive, it is missing."""
    fed = Fed([Barriers], "bar.sync 0;", all_arrive=all_arrive)
    cohort = standing(fed, BAR, IDS[:32])
    fed.batch.end(IDS[32:])
    fed.on.threads_ended(fed.lanes(IDS[32:]), cohort)
    fed.on.barrier_passed(cohort)
    fed.on.barrier_passed(cohort)
    assert len(fed.findings) == count  # the same threads again are not looked at twice
    for fault in fed.findings:
        assert fault.values["missing"] == "block (0, 0, 0), thread (32, 0, 0) and 31 more: ended without it"
        assert fault.instruction is BAR


def test_threads_of_a_warp_at_different_barriers():
    fed = Fed([Barriers], "bar.sync 0;")
    cohorts = [standing(fed, BAR, IDS[:16]), standing(fed, OTHER, IDS[16:])]
    fed.on.barrier_done(0, np.array([True]), cohorts, np.array([False]))
    assert [fault.message for fault in fed.findings] == [
        "The threads of a warp wait at different barrier instructions"
    ]  # fmt: skip


def test_arrivals_count_at_a_barrier_for_some():
    fed = Fed([Barriers], "bar.arrive 1, 64;")
    fed.on.barrier_arrived(fed.lanes(IDS[:32]), 1)
    fed.on.barrier_done(1, np.array([True]), [standing(fed, BAR, IDS[32:])], np.array([True]))
    assert not fed.findings


# Proxies.


@pytest.mark.parametrize(("fences", "count"), [((), 1), (("before",), 0), (("behind",), 0), (("early",), 1)])
def test_asynchronous_reads_need_a_proxy_fence(fences, count):
    """Between store and read: in the thread that stores, or behind the barrier in the one that reads."""
    fed = Fed([Proxies], "st.shared.u32 [%r1], %r2; wgmma.fence.sync.aligned;", threads=128)
    L = fed.lanes()

    def fence(place):
        if place in fences:
            fed.on.fence(L, "gpu", "async")

    fence("early")
    fed.shared(0, np.arange(128), True, value=np.zeros(128, U4))
    fence("before")
    fed.on.barrier_passed(None)
    fence("behind")
    fed.on.wgmma_read([GroupRead(1, fed.lanes([0]), 0, np.arange(0, 512, 2), 2)])
    assert len(fed.findings) == count
    for fault in fed.findings:
        assert fault.message.endswith("across proxies") and "st.shared.u32" in fault.values["other access"]


# wgmma.


def test_registers_of_products_are_in_flight_until_their_group_was_waited_for():
    fed = Fed([WgmmaRegisters], "wgmma.fence.sync.aligned;", threads=128)
    L = fed.lanes()
    fed.on.wgmma_fenced(0, L)
    fed.on.wgmma_issued(0, L, (1, 2), (7,))
    fed.on.wgmma_moved(L, 5, 2)
    fed.on.wgmma_committed(0, L)
    fed.on.wgmma_used(0, L, (3,))
    assert not fed.findings
    fed.on.wgmma_used(0, L, (5,))
    fed.on.wgmma_changed(0, L, (7,))
    assert [fault.message.split(" is ")[0] for fault in fed.findings] == [
        "A result of wgmma", "A register of wgmma's matrix A",
    ]  # fmt: skip
    fed.on.wgmma_awaited(0, L, 0)
    fed.on.wgmma_used(0, L, (1, 5))
    fed.on.wgmma_changed(0, L, (7,))
    assert len(fed.findings) == 2


def test_products_need_a_fence_behind_other_writes():
    fed = Fed([WgmmaRegisters], "wgmma.fence.sync.aligned;", threads=128)
    fed.on.wgmma_fenced(0, fed.lanes())
    fed.on.wgmma_unfenced(fed.lanes())
    fed.on.wgmma_issued(0, fed.lanes(), (1,), ())
    assert "since the last wgmma.fence" in fed.findings[0].message
