"""The service that keeps the last accesses to memory, and finds those that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.cache import AccessCache
from tilewright.targets.emu.checks.history.concurrent import ConcurrentAccesses
from tilewright.targets.emu.checks.history.conflict import Conflict
from tilewright.targets.emu.checks.history.footprint import Footprint
from tilewright.targets.emu.checks.history.rows import gather, scatter
from tilewright.targets.emu.checks.history.search import NONE, Search
from tilewright.targets.emu.checks.history.shadow import Shadow
from tilewright.targets.emu.checks.observer import Access, Batch, Observer
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import ONE_TICK, is_async
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import GlobalMemory
from tilewright.targets.emu.rules.memory import parts_of


class GlobalShadows:
    """The shadows of the buffers of a launch; `time` counts the accesses of its logs."""

    def __init__(self, batch: Batch) -> None:
        self.memory: GlobalMemory = batch.memory
        self.time = 0
        self._shadows: dict[int, Shadow] = {}

    def of(self, addr: Array) -> list[tuple[Shadow, int, Array | None]]:
        """(shadow, address where it begins, positions among `addr`; None for all) of the buffers that addresses lie
        in."""
        memory = self.memory
        inside = np.searchsorted(memory.start_array, addr[:1], "right")[0] - 1
        low, high = int(addr.min()), int(addr.max())
        if inside >= 0 and memory.starts[inside] <= low and high < int(memory.end_array[inside]):
            return [(*self._shadow(int(inside)), None)]
        every = np.searchsorted(memory.start_array, addr, "right") - 1
        return [(*self._shadow(int(n)), np.flatnonzero(every == n)) for n in np.unique(every) if n >= 0]

    def forget(self, addresses: Array) -> None:
        """Buffers that began there are no more."""
        for address in addresses.tolist():
            self._shadows.pop(address, None)

    def bytes_at(self, address: int) -> Array:
        """The bytes of the buffer that begins at an address."""
        return self.memory.regions[self.memory.starts.index(address)].bytes

    def _shadow(self, number: int) -> tuple[Shadow, int]:
        buffer = self.memory.regions[number].buffer
        found = self._shadows.get(buffer.address)
        if found is None:
            found = self._shadows[buffer.address] = Shadow(buffer.nbytes, 0 if buffer.address % 4 else 2)
        return found, buffer.address


class History(Observer):
    """Shadow memory of a batch's shared memory and of the launch's global memory.

    Observes plain accesses, atomics and mbarriers; asynchronous operations are noted by the checker that knows whose
    they are. Unordered pairs go to `judges`.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self.order = batch.service(HappensBefore)
        self.shared = Shadow(len(batch.shared.bytes))
        self.everywhere = batch.of_launch(GlobalShadows)
        self.search = Search(self.order)
        self.judges: list[Callable[[Conflict], None]] = []
        self.before: tuple[Observer, ...] = (self,)
        self._cache: AccessCache | None = None
        if self.order.only_barriers and batch.shape.cluster_blocks == 1:
            self._cache = AccessCache(self.shared, self.order)
        self._made: dict[int, list[int]] = {}
        self._made_known: dict[int, list[int]] = {}
        if batch.shape.cluster_blocks == 1:
            self.order.barriers.when_all_met.append(self._all_met)

    # Events.

    def shared_access(self, access: Access) -> None:
        cache = self._cache
        if cache is not None:
            if cache.repeated(access):
                return
            cache.remember(access)
        self._shared(access)

    def global_access(self, access: Access) -> None:
        self._global(access)

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> None:
        shift = size.bit_length() - 1
        for part in parts_of(L, space, addr):
            if part.space == "global":
                self._global(Access("global", site, part.L, part.addr, None, shift, True))
            elif part.space == "shared":
                index = self.batch.shared.index(site, part.L, part.addr, shift)
                self._shared(Access("shared", site, part.L, part.addr, index, shift, True))

    def allocated(self, addresses: Array) -> None:
        self.everywhere.forget(addresses)

    def mbarrier_made(self, site: int, L: Lanes, index: Array) -> None:
        self._shared(Access("shared", site, L, index, index, 3, True))
        for lane, word in zip(L.ids.tolist(), index.tolist(), strict=True):
            self._made.setdefault(lane, []).append(word << 3)

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        self._shared(Access("shared", site, L, index, index, 3, False))

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        self._shared(Access("shared", site, L, index, index, 3, False))

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        if kind == "mbarrier_init":
            for lane in L.ids.tolist():
                self._made_known.setdefault(lane, []).extend(self._made.pop(lane, ()))

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        """mbarriers that a fence has shown to the cluster: their initialisation precedes all that is done from now."""
        for lane in L.ids.tolist() if relaxed and self._made_known else ():
            for offset in self._made_known.pop(lane, ()):
                cells, _ = self.shared.granules(np.array([offset]), 8)
                self.shared.writes[cells] &= ONE_TICK - np.uint64(1)

    def _all_met(self) -> None:
        for accesses in self.shared.sets:
            if accesses.log:
                accesses.clear_log()

    # Accesses.

    def _shared(self, access: Access) -> None:
        now = self.shared_of(access)
        if access.writes:
            self.write(now)
        else:
            self.read(now)

    def _global(self, access: Access) -> None:
        addr, data = access.addresses, _data(access)
        for shadow, base, at in self.everywhere.of(addr):
            L = access.L if at is None else access.L.subset(at)
            offsets = ((addr if at is None else addr[at]) - np.uint64(base)).view(np.int64)
            mine = data if at is None or data is None else (_pick(data[0], at), *data[1:])
            touched = shadow.granules(offsets, access.size)
            now = Footprint(self.order, shadow, access.site, L, touched, offsets, "global", base, mine)
            if access.writes:
                self.write(now)
            else:
                self.read(now)

    def shared_of(self, access: Access, asynchronous: bool = False) -> Footprint:
        """What an access touches of shared memory."""
        touched = self.shared.touched(access)
        return Footprint(self.order, self.shared, access.site, access.L, touched, access.offsets, data=_data(access),
                         asynchronous=asynchronous)  # fmt: skip

    def shared_by(self, site: int, one: Lanes, offsets: Array, size: int) -> Footprint:
        """An asynchronous operation of one thread touches shared memory at many offsets, `size` bytes at each."""
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        touched = self.shared.granules(offsets, size)
        return Footprint(self.order, self.shared, site, many, touched, offsets, asynchronous=True)

    def global_by(self, site: int, one: Lanes, addresses: Array, size: int) -> Iterator[Footprint]:
        """The same of global memory, buffer by buffer."""
        for shadow, base, at in self.everywhere.of(addresses) if len(addresses) else ():
            offsets = ((addresses if at is None else addresses[at]) - np.uint64(base)).view(np.int64)
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            touched = shadow.granules(offsets, size)
            yield Footprint(self.order, shadow, site, many, touched, offsets, "global", base, asynchronous=True)

    # Reads.

    def read(self, now: Footprint) -> None:
        """Check a read against the writes, and note it."""
        shadow = now.shadow
        words = None
        if shadow.written:
            words = gather(shadow.writes, now.cells, now.rows)
            if not self._past(now, shadow.newest):
                self._after(now, words, "read")
        if shadow.strong_writers.marks is not None:
            self._beside(now, shadow.strong_writers, "read", "written")
        if now.strength.constant:
            self._stale(now, words)
        if now.strength.strong:
            self.join(now, shadow.strong_readers, now.mine)
        elif not self.order.only_barriers or now.alone or not shadow.readers.well_known(now.cells, now.rows):
            self.note_read(now, now.mine)

    def check_read(self, now: Footprint) -> None:
        """Check a read by an asynchronous operation."""
        self._after(now, now.shadow.writes.take(now.cells), "read")
        self._beside(now, now.shadow.strong_writers, "read", "written")

    def note_read(self, now: Footprint, epochs: Array) -> None:
        """Remember the reader of each granule; for several readers, that there were several."""
        readers = now.shadow.readers
        if not self.order.only_barriers:
            readers.note(now.cells, epochs)
        readers.newest = self.order.clocks.level or 0
        readers.mark(now.cells, epochs, now.floor if now.alone else None, now.rows, now.distinct)

    def _stale(self, now: Footprint, words: Array | None) -> None:
        """What the kernel has written before may not be seen through the read-only cache."""
        marks = now.shadow.strong_writers.marks
        tables = [words] if words is not None else []
        tables += [marks.take(now.cells)] if marks is not None else []
        for found in tables:
            bad = np.flatnonzero(found)
            if len(bad):
                self._conflict(now, bad, found[bad], "read by .nc", "written")
                return

    # Writes.

    def write(self, now: Footprint) -> None:
        """Check a write against the reads and writes before it, and note it."""
        shadow, cells, mine = now.shadow, now.cells, now.mine
        if now.strength.strong:
            self.join(now, shadow.strong_writers, mine)  # first, so that it is checked against itself
        same = self.check_write(now)
        if now.strength.strong:
            return
        scatter(shadow.writes, cells, now.rows, mine)
        shadow.written = True
        shadow.newest = self.order.clocks.level or 0
        # Without other order than barriers of all, marks of reads go by their clocks.
        shadow.replaced(np.delete(cells, np.unique(same)) if len(same) else cells, not self.order.only_barriers)
        if now.strength.atomic or now.distinct:
            return
        after = gather(shadow.writes, cells, now.rows)
        lost = after != mine
        if np.count_nonzero(lost):
            self._collision(now, after, np.flatnonzero(lost))

    def check_write(self, now: Footprint) -> Array:
        """Check a write. Returns the granules (positions) where it wrote what an unordered write had written."""
        shadow = now.shadow
        same = NONE
        if shadow.written and not self._past(now, shadow.newest):
            words = gather(shadow.writes, now.cells, now.rows)
            same = self._after(now, words, "written")
            if len(same):
                self.join(now, shadow.silent, words[same], same)
        for accesses in (shadow.strong_writers, shadow.silent):
            if accesses.marks is not None:
                same = np.concatenate((same, self._beside(now, accesses, "written", "written")))
        if shadow.readers.marks is not None and not self._past(now, shadow.readers.newest):
            self._beside(now, shadow.readers, "written", "read")
        if shadow.strong_readers.marks is not None:
            self._beside(now, shadow.strong_readers, "written", "read")
        return same

    def join(self, now: Footprint, accesses: ConcurrentAccesses, epochs: Array, picked: Any = slice(None)) -> None:
        """Add an access to concurrent ones of which each one counts."""
        if now.strength.strong:
            accesses.asynchronous |= bool(is_async(epochs).any())
            accesses.least = min(accesses.least, now.strength.scope)
            accesses.sizes.add(now.strength.size)
        floor = now.floor if now.alone else None
        if floor.__class__ is np.ndarray:
            floor = floor[picked]
        accesses.note(now.cells[picked], epochs, self.everywhere.time)
        self.everywhere.time += len(epochs)
        accesses.mark(now.cells[picked], epochs, floor)

    def _collision(self, now: Footprint, after: Array, lost: Array) -> None:
        """Threads of one instruction wrote the same granule: a race unless all wrote the same."""
        where = lost
        if now.data is not None:
            many = now.data[0].__class__ is np.ndarray and now.data[0].ndim
            where = lost[self._differs(now, now.data, lost)] if many else NONE
        if len(where):
            self._conflict(now, where, after[where], "written", "written")
            return
        self.join(now, now.shadow.silent, now.mine[lost], lost)

    @staticmethod
    def _differs(now: Footprint, data: tuple[Any, Any, int], where: Array) -> Array:
        """Whether overwritten granules were given other bytes than what stayed."""
        size = np.dtype(data[1]).itemsize * data[2]
        pieces = np.ascontiguousarray(data[0]).view(np.uint8).reshape(now.L.n * now.each, size // now.each)
        last = np.zeros(int(now.cells.max()) + 1, np.int64)
        last[now.cells] = np.arange(len(now.cells))
        other: Array = (pieces[where] != pieces[last[now.cells[where]]]).any(axis=1)
        return other

    def _unchanged(self, now: Footprint, data: tuple[Any, Any, int]) -> Array:
        """Which threads write what is there already: no one can tell the order."""
        value, dtype, count = data
        n, size = now.L.n, np.dtype(dtype).itemsize * count
        memory = self.batch.shared.bytes if now.space == "shared" else self.everywhere.bytes_at(now.base)
        old = memory[now.offsets[:, None] + np.arange(size)]
        new = np.broadcast_to(value, (n, count) if count > 1 else (n,))
        new = np.ascontiguousarray(new).view(np.uint8).reshape(n, size)
        equal: Array = (old == new).all(axis=1)
        return equal

    # Conflicts.

    def _past(self, now: Footprint, newest: int) -> bool:
        """Whether a barrier of all lies behind all accesses of a kind, the newest of which was at this level."""
        level = self.order.clocks.level
        return level is not None and newest < level and now.alone and not now.shadow.asynchronous

    def _after(self, now: Footprint, words: Array, what: str) -> Array:
        """Check an access (`what` it did) against the last weak writes; see `_found`."""
        at = self.search.last(now, words)
        return self._found(now, at, words[at], what, "written") if len(at) else NONE

    def _beside(self, now: Footprint, accesses: ConcurrentAccesses, what: str, before: str) -> Array:
        """Check an access against concurrent ones; see `_found`."""
        at, epochs = self.search.beside(now, accesses, accesses is now.shadow.strong_writers)
        return self._found(now, at, epochs, what, before) if len(at) else NONE

    def _found(self, now: Footprint, at: Array, epochs: Array, what: str, before: str) -> Array:
        """Hand over unordered accesses at some positions. Returns those (positions) that are tolerated all the same,
        because both wrote the same bytes."""
        tolerated = NONE
        if now.data is not None and what == before == "written":
            same = self._unchanged(now, now.data)[at // now.each]
            tolerated, at, epochs = at[same], at[~same], epochs[~same]
        if len(at):
            self._conflict(now, at, epochs, what, before)
        return tolerated

    def _conflict(self, now: Footprint, at: Array, epochs: Array, what: str, before: str) -> None:
        found = Conflict(now, int(at[0]), epochs[0], what, before, np.unique(at // now.each))
        for judge in self.judges:
            judge(found)


def _data(access: Access) -> tuple[Any, Any, int] | None:
    """What a store writes, None where it is not known or there is no store."""
    return (access.value, access.dtype, access.count) if access.writes and access.dtype is not None else None


def _pick(value: Any, at: Array) -> Any:
    return value[at] if value.__class__ is np.ndarray else value
