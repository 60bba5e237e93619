"""Memory that no one has written: what stores and atomics leave there, and where its values may not go.

The machine carries the marks of values from register to register; this keeps those of memory. A store leaves its
value's mark; an atomic that combines leaves unwritten what was, `exch` and a `cas` that succeeds write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.boxes import box_inside
from tilewright.targets.emu.checks.granules import WORD, split
from tilewright.targets.emu.checks.observer import Access, Batch, GroupRead, Observer
from tilewright.targets.emu.checks.order.strength import strength_of
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.memory import parts_of
from tilewright.targets.emu.rules.tensors import room, runs
from tilewright.targets.emu.tensormap import TensorMap

STORED = "value stored to global memory"
COMBINED = "operand of an atomic on global memory"
HINT = (
    "it comes from shared or local memory or a register tensor that nothing was written to (an accumulator without"
    " fill, for instance), or by shfl from a lane that takes no part in it"
)


class WrittenMarks:
    """Which granules of a memory have been written, of which `usable` bytes can be; words at first, bytes once smaller
    accesses come.

    `complete`: all have been. `unwritings` counts how often something written became unwritten again, by a store of
    such a value.
    """

    def __init__(self, nbytes: int, usable: int) -> None:
        self.granule = WORD
        self.marks = np.zeros((nbytes >> WORD) + 2, bool)
        self.unwritings = 0
        self.complete = False
        self._usable = usable
        self._stored = 0

    def refine(self, size: int) -> None:
        """Go down to bytes if an access is smaller than a granule."""
        if size < 1 << self.granule:
            self.marks = np.repeat(self.marks, 1 << self.granule)
            self.granule = 0
            self.complete = False

    def cells(self, offsets: Array, size: int) -> tuple[Array, int]:
        """The granules at offsets, `size` bytes at each, and how many each offset has."""
        self.refine(size)
        return split(offsets, size, self.granule)

    def run(self, offset: int, count: int) -> Array:
        """The marks of a run of bytes, to be read or changed."""
        self.refine(4 if offset % 4 == 0 and count % 4 == 0 else 1)
        return self.marks[offset >> self.granule : (offset + count) >> self.granule]

    def write(self, cells: Array) -> None:
        """Something is written to granules. Once as many were as there are, it is worth counting."""
        self.marks[cells] = True
        self._stored += len(cells)
        if self._stored >= self._usable >> self.granule:
            self._stored = 0
            self.complete = int(np.count_nonzero(self.marks)) >= self._usable >> self.granule

    def set(self, cells: Array, written: Any) -> None:
        """Say of granules whether what is there is written."""
        self.marks[cells] = written
        self.unwrite()

    def unwrite(self) -> None:
        """Something that was written may be no more."""
        self.unwritings += 1
        self.complete = False


class Unwritten(Observer):
    """Knows which shared memory has been written, and reports where a value that was not is used.

    The marks of local memory are kept by `LocalMemory`, as they move with the frames.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._shared = WrittenMarks(len(batch.shared.bytes), batch.slots * batch.shared.size)
        self._known: dict[int, tuple[Any, int]] = {}
        """By instruction: the index of an access that found all written, or wrote, and the unwritings before it."""

    # Uses.

    def value_used(self, site: int, L: Lanes, mark: Any, what: str) -> None:
        bad = np.flatnonzero(mark) if mark.__class__ is np.ndarray else np.arange(L.n if mark else 0)
        if len(bad):
            self._report(what, site, bad, L)

    def _report(self, what: str, site: int, lanes: Array | None, among: Lanes) -> None:
        article = "an" if what[0] in "aeiou" else "a"
        message = f"A value that was never written is used as {article} {what}"
        self.batch.report(Fault("uninitialised", message, site, lanes, hint=HINT, among=among))

    # Loads and stores.

    def shared_access(self, access: Access) -> Array | None:
        shared = self._shared
        if shared.complete:
            return None
        known = self._known.get(access.site)
        if known is not None and known[0] is access.index and known[1] == shared.unwritings:
            return None
        shared.refine(access.size)
        cells, each = access.granules(shared.granule)
        if access.writes:
            shared.write(cells)
        else:
            written = shared.marks.take(cells)
            if np.count_nonzero(written) != len(cells):
                return np.asarray(~written.reshape(-1, each))
        self._known[access.site] = access.index, shared.unwritings
        return None

    def local_access(self, access: Access) -> Array | None:
        if access.writes:
            return None
        missing = self.batch.local.unwritten(access.L, access.address, access.shift)
        return missing if missing.any() else None

    def unwritten_stored(self, site: int, L: Lanes, space: str, addr: Any, place: int, shift: int, mark: Any) -> None:
        if mark.__class__ is not np.ndarray and not mark:
            return
        bad = np.flatnonzero(np.broadcast_to(mark, (L.n,)))
        if not len(bad):
            return
        where = np.broadcast_to(addr, (L.n,))[bad] + addr.dtype.type(place)
        for part in parts_of(L.subset(bad), space, where):
            if part.space == "global":
                self._report(STORED, site, None, part.L)
            else:
                self._unwrite(site, part.L, part.space, part.addr, shift)

    def _unwrite(self, site: int, L: Lanes, space: str, addr: Any, shift: int) -> None:
        try:
            cells, _ = self._cells(site, L, space, addr, 1 << shift)
        except Fault as fault:  # the store was refused for these threads, and is reported
            good = np.setdiff1d(np.arange(L.n), np.arange(L.n) if fault.lanes is None else fault.lanes)
            if len(good):
                self._unwrite(site, L.subset(good), space, addr[good] if addr.__class__ is np.ndarray else addr, shift)
            return
        self._set(space, cells, False)

    def _cells(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> tuple[Array, int]:
        """The granules of shared memory, or bytes of local memory, that threads name, and how many each does."""
        shift = size.bit_length() - 1
        if space == "local":
            first = self.batch.local.index(site, L, addr, shift) << shift
            return (first[:, None] + np.arange(size)).reshape(-1), size
        index = np.broadcast_to(self.batch.shared.index(site, L, addr, shift), (L.n,))
        return self._shared.cells(index << shift, size)

    def _set(self, space: str, cells: Array, written: Any) -> None:
        if space == "local":
            self.batch.local.mark(cells, written)
        else:
            self._shared.set(cells, written)

    # Atomics.

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> Array | None:
        found: Array | None = None
        for part in parts_of(L, space, addr):
            if part.space == "global":
                continue
            cells, each = self._cells(site, part.L, part.space, part.addr, size)
            written = self.batch.local.written[cells] != 0 if part.space == "local" else self._shared.marks[cells]
            if part.space == "shared":
                self._shared.marks[cells] = True
            if np.count_nonzero(written) == len(cells):
                continue
            missing = ~written.reshape(-1, each)
            if part.L is L:
                found = missing
            else:
                found = np.zeros((L.n, size), bool) if found is None else found
                found[part.at] = np.repeat(missing, size // each, axis=1)
        return found

    def atomic_ends(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        replaced: Any, wrote: Any,
    ) -> Array | None:  # fmt: skip
        if missing is None and not np.count_nonzero(mark):
            return None
        rows = np.zeros((L.n, size), bool)
        mark, replaced = np.broadcast_to(mark, (L.n,)), np.broadcast_to(replaced, (L.n,))
        for part in parts_of(L, space, addr):
            at = part.at
            if part.space == "global":
                self.value_used(site, part.L, mark[at], COMBINED)
                continue
            cells, each = self._cells(site, part.L, part.space, part.addr, size)
            before = widened((rows if missing is None else missing)[at], each, unit * each // size)
            marks, writes = np.repeat(mark[at], each), np.repeat(replaced[at], each)
            found, last, after = in_turn(cells, before.reshape(-1), marks, writes, unit > 0)
            rows[at] = np.repeat(found.reshape(-1, each), size // each, axis=1)
            self._set(part.space, last, np.logical_not(after))
        return rows if np.count_nonzero(rows) else None

    # Writes and reads of other kinds.

    def mbarrier_made(self, site: int, L: Lanes, index: Array) -> None:
        self._shared.marks[self._shared.cells(index << 3, 8)[0]] = True

    def copy_written(self, access: Access) -> None:
        self._shared.marks[self._shared.cells(access.offsets, access.size)[0]] = True

    def remote_stored(self, access: Access, index: Array) -> None:
        self._shared.marks[self._shared.cells(access.offsets, access.size)[0]] = True

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:
        if to_space == "global":
            if not self._shared.run(self.batch.shared_offset(site, one, start), count).all():
                self._report(STORED, site, None, one)
            return
        target = self.batch.shared_offset(site, one, to)
        combines = strength_of(self.batch.sites[site]).strong
        if from_space == "shared":
            source = self.batch.shared_offset(site, one, start)
            self._shared.run(target, count), self._shared.run(source, count)  # both in one unit
            written = self._shared.run(source, count).copy()
            self._shared.run(target, count)[:] = written & self._shared.run(target, count) if combines else written
            self._shared.unwrite()
        elif not combines:
            self._shared.run(target, count)[:] = True

    def tensor_loaded(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], to: int, order: Array, signal: int
    ) -> None:
        offset = self.batch.shared_offset(site, one, to)
        for first, count in runs(order):
            self._shared.run(offset + first, count)[:] = True

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:
        """Only what lies inside the tensor is written there."""
        inside = np.repeat(box_inside(made, start), made.unit)
        needed = np.zeros(room(order), bool)
        needed.reshape(-1, 16)[order] = inside.reshape(-1, 16)
        offset = self.batch.shared_offset(site, one, source)
        for first, count in runs(order):
            written = self._shared.run(offset + first, count)
            wanted = needed[first : first + count].reshape(len(written), -1).any(axis=1)
            if np.count_nonzero(wanted & ~written):
                self._report(STORED, site, None, one)

    def wgmma_read(self, reads: list[GroupRead]) -> Array | None:
        found = None
        for number, read in enumerate(reads):
            cells, each = self._shared.cells(read.offsets, read.step)
            written = self._shared.marks.take(cells)
            if np.count_nonzero(written) != len(cells):
                found = np.zeros((len(reads), len(read.elements)), bool) if found is None else found
                gone = read.offsets[~np.logical_and.reduce(written.reshape(-1, each), 1)]
                found[number] = np.isin(read.elements, gone)
        return found


def widened(missing: Array, each: int, together: int) -> Array:
    """Rows of marks as rows of `each`; of those that are combined `together`, one that is missing speaks for all."""
    n, have = missing.shape
    rows = np.logical_or.reduce(missing.reshape(n, each, have // each), 2)
    if together > 1:
        rows = np.repeat(np.logical_or.reduce(rows.reshape(n, each // together, together), 2), together, axis=1)
    return np.asarray(rows)


def in_turn(cells: Array, missing: Array, mark: Array, wrote: Array, combines: bool) -> tuple[Array, Array, Array]:
    """Accesses to granules one after another: which found a granule unwritten, the granules, and which are left so.

    `missing`: whether a granule was unwritten before the first; `mark`: whether an operand is; `wrote`: whether it took
    the place of what was there; otherwise the two are combined (`combines`), or nothing changes.
    """
    order = np.argsort(cells, kind="stable")
    numbers, missing, mark, wrote = cells[order], missing[order], mark[order], wrote[order]
    place = np.arange(len(order))
    first = np.append(True, numbers[1:] != numbers[:-1])
    start = np.maximum.accumulate(np.where(first, place, 0))
    last = np.maximum.accumulate(np.where(wrote, place, -1))
    after = np.where(last >= start, mark[last], missing)
    if combines:
        marks = np.cumsum(mark)
        after |= marks - marks[start] + mark[start] > 0
    before = np.empty(len(order), bool)
    before[order] = np.where(first, missing, np.append(False, after[:-1]))
    ends = np.flatnonzero(np.append(first[1:], True))
    return before, numbers[ends], after[ends]
