"""Asynchronous operations: what they touch between their issue and the wait for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.targets.emu.boxes import box_addresses
from tilewright.targets.emu.checks.granules import pieces
from tilewright.targets.emu.checks.history import Conflict, History
from tilewright.targets.emu.checks.history.conflict import ended_in_use
from tilewright.targets.emu.checks.observer import Access, Batch, GroupRead, Observer
from tilewright.targets.emu.checks.order.strength import WEAK
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.tensors import runs
from tilewright.targets.emu.tensormap import TensorMap

STORES = "wait in the thread that copies before the block ends: cp.async.bulk.wait_group.read 0"
LOADS = "wait for the phase of the copy's mbarrier before the block ends"


class AsyncCopies(Observer):
    """Notes what asynchronous operations read and write as their agents' accesses, and reports conflicts with them.

    An agent's epoch is ordered before a thread that has waited for its group or mbarrier. What a thread copies is
    checked as an access of its own too: the copy is issued in its order.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._history = batch.service(History)
        self._order = self._history.order
        self._detector = self._history.detector
        self._detector.judges.append(self._judge)
        self._last_store: dict[int, Array] = {}
        """The epoch of the latest store in a bulk group of each lane, as it reads shared memory."""
        self._last_delivery: dict[int, Array] = {}
        """That of the latest copy that each mbarrier, by word, counts."""

    def _judge(self, conflict: Conflict) -> None:
        if conflict.asynchronous:
            self.batch.report(conflict.finding(self.batch, self._order))

    # cp.async.

    def copy_written(self, access: Access) -> None:
        now = self._history.shared_of(access, asynchronous=True)
        self._detector.write(now)
        # The writer is the thread's agent: only a wait makes the thread itself know.
        epochs = self._order.copies.copy_epochs(access.site, access.L)
        self._history.shared.writes[now.cells] = np.repeat(epochs, now.each) if now.each > 1 else epochs
        self._history.shared.asynchronous = True

    # Copies that mbarriers count.

    def remote_stored(self, access: Access, index: Array) -> None:
        for lane in range(access.L.n):
            one = access.L.subset(np.array([lane]))
            offset, word = int(access.offsets[lane]), int(index[lane])
            self._delivered(access.site, one, offset, access.size, word, of_thread=False)

    def remote_reduced(self, access: Access, index: Array) -> None:
        for lane in range(access.L.n):
            one = access.L.subset(np.array([lane]))
            self._delivered(access.site, one, int(access.offsets[lane]), access.size, int(index[lane]))

    def _delivered(self, site: int, one: Lanes, offset: int, count: int, word: int, of_thread: bool = True) -> None:
        """A copy counted by an mbarrier writes shared memory; `of_thread`: its thread could as well."""
        history, shadow = self._history, self._history.shared
        offsets, step = pieces(offset, count)
        strong = self._order.strength(site).strong
        if of_thread and not strong:
            self._detector.write(history.shared_by(site, one, offsets, step))
        epoch = self._last_delivery[word] = self._order.mbarriers.copy_epoch(site, word)
        shadow.asynchronous = True
        # It tells the mbarrier some time before the phase ends, which is as if it read it.
        told = history.shared_by(site, one, np.array([word << 3]), 8)
        self._detector.check_read(told)
        self._detector.note_read(told, np.full(len(told.cells), epoch))
        shadow.readers.asynchronous = True
        now = history.shared_by(site, one, offsets, step)
        if strong:
            self._detector.join(now, shadow.strong_writers, np.full(len(now.cells), epoch))
            self._detector.check_write(now)
            return
        shadow.writes[now.cells] = epoch
        shadow.written = True

    # Bulk and tensor copies.

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:
        history = self._history
        if from_space == "shared" and signal is None:
            self._read_by_store(site, one, self.batch.shared_offset(site, one, start), count)
        elif from_space == "shared":
            offsets, step = pieces(self.batch.shared_offset(site, one, start), count)
            self._detector.read(history.shared_by(site, one, offsets, step))
        else:
            addresses, step = pieces(start, count)
            self._global_read(site, one, addresses.astype(np.uint64), step, [] if signal is None else [signal])
        if to_space == "global":
            addresses, step = pieces(to, count)
            self._global_written(site, one, addresses.astype(np.uint64), step)
        elif signal is not None:
            self._delivered(site, one, self.batch.shared_offset(site, one, to), count, signal)
        else:
            offsets, step = pieces(self.batch.shared_offset(site, one, to), count)
            self._detector.write(history.shared_by(site, one, offsets, step))

    def tensor_loaded(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], to: int, order: Array, signal: int
    ) -> None:
        offset = self.batch.shared_offset(site, one, to)
        for first, count in runs(order):
            self._delivered(site, one, offset + first, count, signal)

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:
        offset = self.batch.shared_offset(site, one, source)
        for first, count in runs(order):
            self._read_by_store(site, one, offset + first, count)

    def tensor_read(self, site: int, one: Lanes, made: TensorMap, start: list[int], signals: list[int]) -> None:
        self._global_read(site, one, *elements_of(made, start), signals)

    def tensor_written(self, site: int, one: Lanes, made: TensorMap, start: list[int]) -> None:
        strength = self._order.strength(site)
        if strength.strong and strength.size != made.width:
            self._order.set_strength(site, replace(strength, size=made.width))  # the instruction does not name the type
        self._global_written(site, one, *elements_of(made, start))

    def _read_by_store(self, site: int, one: Lanes, offset: int, count: int) -> None:
        """A store in a bulk group reads shared memory, some time before its thread has waited."""
        now = self._history.shared_by(site, one, *pieces(offset, count))
        self._detector.check_read(now)
        epoch = self._last_store[int(one.ids[0])] = self._order.copies.bulk_epoch("bulk", site, one)
        self._detector.note_read(now, np.full(len(now.cells), epoch))
        now.shadow.asynchronous = now.shadow.readers.asynchronous = True

    def _global_read(self, site: int, one: Lanes, addresses: Array, size: int, signals: list[int]) -> None:
        """A thread's copy reads global memory, some time before the mbarrier that it tells completes its phase.

        A copy to several blocks reads once, and whichever mbarrier completes says so: that is more than marks can hold,
        so that later writes are not checked against it.
        """
        for now in self._history.global_by(site, one, addresses, size):
            self._detector.check_read(now)
            if len(signals) == 1:
                epoch = self._order.mbarriers.next_copy_epoch(site, signals[0])
                self._detector.note_read(now, np.full(len(now.cells), epoch))
                now.shadow.asynchronous = now.shadow.readers.asynchronous = True

    def _global_written(self, site: int, one: Lanes, addresses: Array, size: int) -> None:
        """A thread's store in a bulk group writes global memory, some time before it has waited for the group."""
        history = self._history
        for now in history.global_by(site, one, addresses, size):
            epochs = np.full(len(now.cells), self._order.copies.bulk_epoch("stored", site, one))
            now.shadow.asynchronous = True
            if now.strength.strong:
                self._detector.join(now, now.shadow.strong_writers, epochs)
            self._detector.check_write(now)
            if not now.strength.strong:
                now.shadow.writes[now.cells] = epochs
                now.shadow.written = True
                now.shadow.replaced(now.cells, not self._order.only_barriers)

    # Matrix products.

    def wgmma_read(self, reads: list[GroupRead]) -> None:
        for read in reads:
            now = self._history.shared_by(read.site, read.one, read.offsets, read.step)
            self._detector.check_read(now)
            epoch = self._order.copies.product_epoch(read.site, read.group)
            self._detector.note_read(now, np.full(len(now.cells), epoch))
            now.shadow.asynchronous = now.shadow.readers.asynchronous = True

    # The end of a block.

    def threads_ended(self, L: Lanes, cohort: Cohort) -> None:
        """No copy may still read or write the shared memory of a block that ends."""
        stride = self.batch.shape.stride
        for slot in self.batch.ended(L) if self._last_store or self._last_delivery else ():
            lanes = np.flatnonzero(np.arange(stride) < self.batch.shape.threads) + slot * stride
            for lane in [lane for lane in self._last_store if lane // stride == slot]:
                self._check_done(np.array([lane]), self._last_store.pop(lane), STORES)
            for word in [word for word in self._last_delivery if self._order.mbarriers.slot_of(word) == slot]:
                self._check_done(lanes, self._last_delivery.pop(word), LOADS)

    def _check_done(self, lanes: Array, epoch: Array, hint: str) -> None:
        """One of some threads has waited for an asynchronous operation."""
        if self._order.unordered(lanes, np.full(len(lanes), epoch), WEAK, True).all():
            self.batch.report(ended_in_use(self.batch, int(lanes[0]), epoch, hint))


def elements_of(made: TensorMap, start: list[int]) -> tuple[Array, int]:
    """Addresses of a box's elements in the tensor, and the bytes of each: as words, where they make up whole words."""
    addresses = box_addresses(made, start)
    if made.interleave:
        return (addresses[:, None] + np.arange(0, made.unit, 4, dtype=np.uint64)).reshape(-1), 4
    if made.width >= 4:
        return addresses, made.width
    words = np.unique(addresses & ~np.uint64(3))
    return (words, 4) if len(words) * 4 == len(addresses) * made.width else (addresses, made.width)
