"""The happens-before service: what is ordered before what, from events alone."""

import numpy as np
import pytest

from tests.emu.checks.batch import Fed
from tilewright.targets.emu.checks import Access, HappensBefore, Observer
from tilewright.targets.emu.checks.order.strength import WEAK

IDS = np.arange(128)


class Asks(Observer):
    """Asks for the service, so that the batch has it."""

    def __init__(self, batch):
        super().__init__(batch)
        self.order = batch.service(HappensBefore)


class Order:
    """A batch with the service; `knows(a, b)`: whether what `a` did at the last `mark` is ordered before lane `b`."""

    def __init__(self, text, **shape):
        self.fed = Fed([Asks], text, **shape)
        self.on = self.fed.on
        self.service = self.fed.batch.service(HappensBefore)
        self.mark()

    def mark(self):
        everyone = self.fed.lanes()
        self.epochs = dict(zip(everyone.ids.tolist(), self.service.epochs(everyone, 0).tolist(), strict=True))

    def lanes(self, ids):
        return self.fed.lanes(ids)

    def knows(self, a, b, shared=True):
        word = np.array([self.epochs[a]], np.uint64)
        return not self.service.unordered(np.array([b]), word, WEAK, shared)[0]


def cohort(order, ids):
    return type("Cohort", (), {"L": order.lanes(ids)})()


def test_nothing_orders_threads_of_two_warps_at_first():
    order = Order("bar.sync 0;", threads=128)
    assert order.knows(3, 3) and order.knows(3, 4)  # itself, and its warp in lockstep
    assert not order.knows(3, 40)


def test_a_barrier_for_some_threads():
    order = Order("bar.sync 1, 64;", threads=128)
    both = [cohort(order, IDS[:64])]
    order.on.barrier_done(1, np.array([True]), both, np.array([True]))
    assert order.knows(3, 40) and order.knows(40, 3)
    assert not order.knows(3, 100) and not order.knows(100, 3)


def test_who_arrives_without_waiting_knows_nothing_of_the_others():
    order = Order("bar.sync 1, 64; bar.arrive 1, 64;", threads=128)
    order.on.barrier_arrived(order.lanes(IDS[:32]), 1)
    order.on.barrier_done(1, np.array([True]), [cohort(order, IDS[32:64])], np.array([True]))
    assert order.knows(3, 40) and not order.knows(40, 3)


def test_a_barrier_of_a_warp_where_lockstep_is_not_promised():
    order = Order("bar.warp.sync -1;", threads=64, lockstep=True)
    assert not order.knows(3, 4)
    order.on.warp_synced(order.lanes(IDS[:32]), np.uint32(0xFFFFFFFF), None)
    assert order.knows(3, 4) and not order.knows(3, 40)
    order.mark()
    order.on.warp_synced(order.lanes(IDS[:32]), np.uint32(0x0000FFFF), None)
    assert order.knows(3, 4)


@pytest.mark.parametrize(("relaxed", "fenced", "ordered"), [
    (False, False, True), (True, False, False), (True, True, True),
])  # fmt: skip
def test_an_mbarrier(relaxed, fenced, ordered):
    """An arrival releases, a relaxed one only what a fence has; so a wait acquires, a relaxed one with a fence."""
    order = Order("mbarrier.arrive.shared.b64 %d1, [%r1]; fence.acq_rel.cluster;", threads=64)
    word = np.zeros(1, np.int64)
    if fenced:
        order.on.fence(order.lanes([3]), "cluster", "release")
    order.on.mbarrier_arriving(0, order.lanes([3]), word, np.ones(1, np.int64), relaxed)
    order.on.mbarrier_completed(word)
    order.on.mbarrier_waited(0, order.lanes([40]), word, np.ones(1, bool), relaxed)
    assert order.knows(3, 40) == (ordered and not relaxed)
    if fenced:
        order.on.fence(order.lanes([40]), "cluster", "acquire")
    assert order.knows(3, 40) == ordered and not order.knows(40, 3)


def test_a_barrier_of_a_cluster():
    order = Order("barrier.cluster.arrive; barrier.cluster.wait;", blocks=2, threads=32, cluster=2)
    assert not order.knows(0, 40) and not order.knows(40, 0)
    everyone = order.lanes(IDS[:64])
    order.on.cluster_arriving(everyone, False)
    order.on.cluster_completed(np.array([0]))
    order.on.cluster_waited(everyone)
    assert order.knows(0, 40) and order.knows(40, 0)
    order.mark()
    assert not order.knows(0, 40)  # what comes behind it


@pytest.mark.parametrize(("store", "load", "ordered"), [
    ("release.gpu", "acquire.gpu", True), ("release.gpu", "relaxed.gpu", False), ("relaxed.gpu", "acquire.gpu", False),
    ("release.cta", "acquire.gpu", False),
])  # fmt: skip
def test_a_value_carries_what_was_released(store, load, ordered):
    order = Order(f"st.{store}.global.u32 [%d1], 1; ld.{load}.global.u32 %r1, [%d1];", blocks=2, threads=32)
    order.fed.everywhere(0, 4, True, ids=[0], value=np.uint32(1))
    order.fed.everywhere(1, 4, False, ids=[40])
    assert order.knows(0, 40) == ordered and not order.knows(40, 0)


def test_groups_of_copies_are_ordered_by_the_wait():
    order = Order("cp.async.wait_group 0;", threads=32)
    L = order.lanes([5])
    index = np.array([5])
    access = Access("shared", 0, L, index, index, 2, True, np.zeros((1, 4), np.uint8), np.dtype("u1"), 4)
    first = order.service.copies.copy_epochs(0, L)
    order.on.copy_written(access)
    order.on.copies_committed(L, False)
    second = order.service.copies.copy_epochs(0, L)
    order.on.copies_committed(L, False)

    def known(epochs):
        return not order.service.unordered(np.array([5]), epochs, WEAK, True)[0]

    assert not known(first)
    order.on.copies_awaited(L, 1, False, False, False)
    assert known(first) and not known(second)
    order.on.copies_awaited(L, 0, False, False, False)
    assert known(second)
