"""Races and asynchronous copies, from events alone."""

import numpy as np
import pytest

from tests.emu.checks.batch import Fed
from tilewright.targets.emu.checks import Access, AsyncCopies, Races
from tilewright.targets.emu.checks.history import History
from tilewright.targets.emu.checks.order.epochs import clock_of, thread_of

PLAIN = "st.shared.u32 [%r1], %r2; ld.shared.u32 %r3, [%r4]; bar.sync 0;"
IDS = np.arange(64)


def met(fed):
    """All threads of the batch meet at barrier 0."""
    fed.on.barrier_passed(None)


def test_a_store_and_a_load_that_nothing_orders():
    fed = Fed([Races], PLAIN)
    fed.shared(0, IDS, True, value=IDS)
    fed.shared(1, IDS[::-1], False)
    (fault,) = fed.findings
    assert (fault.kind, fault.site) == ("race", 1)
    assert fault.values["address"] == "0xfc (read now, written before)"
    assert fault.values["other thread"] == "block (0, 0, 0), thread (63, 0, 0)"
    assert sorted(fault.lanes) == list(range(64)) and fault.lanes[0] == 0
    assert fault.hint == "put a barrier between the two accesses"


def test_a_barrier_orders_them():
    fed = Fed([Races], PLAIN)
    for _ in range(3):
        fed.shared(0, IDS, True, value=IDS)
        met(fed)
        fed.shared(1, IDS[::-1], False)
        met(fed)
    assert not fed.findings


@pytest.mark.parametrize(("lockstep", "count"), [(False, 0), (True, 1)])
def test_threads_of_one_warp(lockstep, count):
    fed = Fed([Races], PLAIN, threads=32, lockstep=lockstep)
    fed.shared(0, IDS[:32], True, value=IDS[:32])
    fed.shared(1, IDS[:32][::-1], False)
    assert len(fed.findings) == count


@pytest.mark.parametrize(("second", "count"), [([7], 0), ([8], 1)])
def test_two_writes_of_the_same_bytes_are_no_race(second, count):
    fed = Fed([Races], PLAIN)
    fed.shared(0, [3], True, ids=[0], value=np.array([7], np.uint32))
    fed.batch.shared.bytes[12:16] = np.array([7], np.uint32).view(np.uint8)  # as the machine does behind the event
    fed.shared(0, [3], True, ids=[40], value=np.array(second, np.uint32))
    assert len(fed.findings) == count


@pytest.mark.parametrize(("order", "count"), [("release", 0), ("relaxed", 1)])
def test_a_flag_in_global_memory_orders_if_it_is_released(order, count):
    text = f"st.global.u32 [%d1], 1; st.{order}.gpu.global.u32 [%d1], 1; ld.acquire.gpu.global.u32 %r1, [%d1];"
    fed = Fed([Races], f"{text} ld.global.u32 %r1, [%d1];", blocks=2)
    fed.everywhere(0, 5, True, ids=[0], value=np.uint32(1))
    fed.everywhere(1, 0, True, ids=[0], value=np.uint32(1))
    fed.everywhere(2, 0, False, ids=[64])
    fed.everywhere(3, 5, False, ids=[64])
    assert len(fed.findings) == count
    assert not count or "no barrier of a block orders two blocks" in fed.findings[0].hint


def test_races_of_batches_of_one_launch():
    first = Fed([Races], "st.global.u32 [%d1], 1;", blocks=2)
    first.everywhere(0, 9, True, ids=[0], value=np.uint32(1))
    second = Fed([Races], "st.global.u32 [%d1], 1;", blocks=2, launch_state=first.batch.launch_state)
    second.everywhere(0, 9, True, ids=[64], value=np.uint32(2))
    assert [fault.kind for fault in second.findings] == ["race"]


# Asynchronous copies.

COPY = "cp.async.ca.shared.global [%r1], [%d1], 4; ld.shared.u32 %r2, [%r1]; cp.async.wait_group 0;"


@pytest.mark.parametrize(("waits", "count"), [(False, 1), (True, 0)])
def test_a_copy_is_ordered_by_the_wait_for_its_group(waits, count):
    fed = Fed([AsyncCopies], COPY, threads=32)
    L = fed.lanes()
    index = fed.batch.shared.index(0, L, L.ids.astype(np.uint64) * np.uint64(4), 2)
    fed.on.copy_written(Access("shared", 0, L, index, index, 2, True, np.zeros((32, 4), np.uint8), np.dtype("u1"), 4))
    fed.on.copies_committed(L, False)
    if waits:
        fed.on.copies_awaited(L, 0, False, False, False)
    fed.shared(1, L.ids, False)
    assert len(fed.findings) == count
    for fault in fed.findings:
        assert fault.values["other thread"] == "an asynchronous operation that was not waited for"


@pytest.mark.parametrize("kinds", [[Races], [AsyncCopies], [Races, AsyncCopies]])
def test_each_reports_its_own(kinds):
    """A copy that was not waited for is `AsyncCopies`' finding, two threads' accesses are `Races`'."""
    fed = Fed(kinds, f"st.shared.u32 [%r1], %r2; {COPY}")
    L = fed.lanes()
    index = fed.batch.shared.index(1, L, L.ids.astype(np.uint64) * np.uint64(4), 2)
    fed.on.copy_written(Access("shared", 1, L, index, index, 2, True, np.zeros((64, 4), np.uint8), np.dtype("u1"), 4))
    fed.shared(2, [5], False, ids=[5])
    fed.shared(0, [70], True, ids=[0], value=np.uint32(1))
    fed.shared(2, [70], False, ids=[50])
    who = [fault.values["other thread"].split()[0] for fault in fed.findings]
    assert who == ["an"] * (AsyncCopies in kinds) + ["block"] * (Races in kinds)


# What services keep.


def test_the_history_has_epochs_of_the_last_write():
    fed = Fed([Races], PLAIN)
    met(fed)
    fed.shared(0, IDS, True, value=IDS)
    last = fed.batch.service(History).shared.writes[:64]
    np.testing.assert_array_equal(thread_of(last), IDS)
    np.testing.assert_array_equal(clock_of(last), 2)  # clocks start at 1, a barrier moves them
