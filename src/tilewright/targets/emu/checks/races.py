"""Races: accesses to the same bytes, at least one a write, that nothing orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.base import FALSE, Event
from tilewright.targets.emu.checks.crowd import Crowd
from tilewright.targets.emu.checks.rows import gather, scatter
from tilewright.targets.emu.checks.stamps import MOST_SITES, SEVERAL, WHO, check_limit, is_async, thread_of
from tilewright.targets.emu.checks.verdicts import Verdicts
from tilewright.targets.emu.lanes import Array, Lanes

NONE = np.empty(0, np.int64)
PAIRS = 1 << 20
"""Pairs of accesses judged at once."""


class Races(Verdicts):
    """Notes accesses and reports those that are unordered."""

    def stamps(self, L: Lanes, site: int) -> Array:
        """The stamps of what lanes do now."""
        check_limit("memory instructions", site + 1, MOST_SITES, site)
        stamps = self.clocks.stamp
        everyone = L.n == len(stamps) and L.ids[0] == 0 and L.ids[-1] == L.n - 1  # one may come many times
        now = stamps if everyone else stamps.take(L.ids)
        marked: Array = now | np.uint64(site)
        return marked

    def note_shared(self, site: int, L: Lanes, offset: Any, size: int, write: bool, data: Any) -> Any:
        """Note an access to shared memory; for reads, which granules (a row a thread) no one has written."""
        self.accesses += 1
        if offset.__class__ is not np.ndarray:
            offset = np.full(L.n, offset)
        cells, each = self.shared_shadow.granules(offset, size)
        event = Event(self, self.shared_shadow, site, L, cells, each, "shared", 0)
        if write:
            self.wrote(event, data, offset)
            return FALSE
        missing = event.shadow.missing(cells, self.read(event))
        return missing.reshape(-1, each) if np.count_nonzero(missing) else FALSE

    def note_global(self, site: int, L: Lanes, addr: Any, size: int, write: bool, data: Any) -> None:
        """Note an access to global memory, buffer by buffer."""
        self.accesses += 1
        if addr.__class__ is not np.ndarray:
            addr = np.full(L.n, addr)
        for shadow, base, at in self.launch.shadows_of(addr):
            part = L if at is None else L.subset(at)
            offset = ((addr if at is None else addr[at]) - np.uint64(base)).view(np.int64)
            cells, each = shadow.granules(offset, size)
            event = Event(self, shadow, site, part, cells, each, "global", base)
            if write:
                self.wrote(event, data if at is None or data is None else (_pick(data[0], at), *data[1:]), offset)
            else:
                self.read(event)

    def read(self, event: Event) -> Array | None:
        """Check a read against the writes, and note it. Returns the stamps of the last weak writes, None for none."""
        shadow, cells = event.shadow, event.cells
        words = None
        if shadow.written:
            words = gather(shadow.writes, cells, event.rows)
            if not self.past(event, shadow.newest):
                self.conflicts(event, words, "read", "written", None, None)
        if shadow.strong_writers.marks is not None:
            self.against(event, shadow.strong_writers, "read", "written", None)
        if event.access.constant:
            self.stale(event, words)
        if event.access.strong:
            self.join(event, shadow.strong_readers, event.mine)
        elif self.ordered or event.alone or not shadow.readers.well_known(cells, event.rows):
            self.note_read(event, event.mine)
        return words

    def stale(self, event: Event, words: Array | None) -> None:
        """What the kernel has written before may not be seen through the read-only cache."""
        marks = event.shadow.strong_writers.marks
        tables = [words] if words is not None else []
        tables += [marks.take(event.cells)] if marks is not None else []
        for found in tables:
            bad = np.flatnonzero(found)
            if len(bad):
                self.race(event, int(bad[0]), found[bad[0]], "read by .nc", "written", np.unique(bad // event.each))
                return

    def past(self, event: Event, newest: int) -> bool:
        """Whether a barrier of all lies behind all accesses of a kind, the newest of which was at this level."""
        level = self.clocks.level
        return level is not None and newest < level and event.alone and not event.shadow.hurried

    def note_read(self, event: Event, mine: Array) -> None:
        """Remember the reader of each granule; for several readers, that there were several."""
        if self.ordered:
            event.shadow.readers.note(event.cells, mine)
        event.shadow.readers.newest = self.clocks.level or 0
        floor = event.floor if event.alone else None
        event.shadow.readers.mark(event.cells, mine, floor, event.rows, event.distinct)

    def check_read(self, event: Event) -> Array:
        """Check a read by an asynchronous instruction. Returns the stamps of the last weak writes."""
        words: Array = event.shadow.writes.take(event.cells)
        self.conflicts(event, words, "read", "written", None, None)
        self.against(event, event.shadow.strong_writers, "read", "written", None)
        return words

    def join(self, event: Event, crowd: Crowd, stamps: Array, picked: Any = slice(None)) -> None:
        """Add accesses to a crowd that needs each one."""
        if event.access.strong:
            crowd.hurried |= bool(is_async(stamps).any())
            crowd.least = min(crowd.least, event.access.scope)
            crowd.sizes.add(event.access.size)
        floor = event.floor if event.alone else None
        if floor.__class__ is np.ndarray:
            floor = floor[picked]
        crowd.note(event.cells[picked], stamps, self.launch.time)
        self.launch.time += len(stamps)
        crowd.mark(event.cells[picked], stamps, floor)

    def against(self, event: Event, crowd: Crowd, now: str, before: str, data: Any) -> Array:
        """Check an access against all of a crowd; see `conflicts`."""
        if crowd.marks is None or self.all_in_scope(event, crowd):
            return NONE
        return self.conflicts(event, crowd.marks.take(event.cells), now, before, data, crowd)

    def wrote(self, event: Event, data: Any, offset: Array) -> None:
        """Check a write against the reads and writes before it, and note it."""
        shadow, cells, mine = event.shadow, event.cells, event.mine
        if event.access.strong:
            self.join(event, shadow.strong_writers, mine)  # first, so that it is checked against itself
        same = self.check_write(event, data, offset)
        shadow.mend(cells)
        if event.access.strong:
            return
        scatter(shadow.writes, cells, event.rows, mine)
        shadow.written = True
        shadow.newest = self.clocks.level or 0
        # Without other order than barriers of all, marks of reads go by their clocks.
        shadow.replaced(np.delete(cells, np.unique(same)) if len(same) else cells, self.ordered)
        if event.access.atomic or event.distinct:
            return
        after = gather(shadow.writes, cells, event.rows)
        lost = after != mine
        if np.count_nonzero(lost):
            self.collision(event, after, lost, data)

    def check_write(self, event: Event, data: Any, offset: Array) -> Array:
        """Check a write. Returns the granules (positions) where it wrote what an unordered write had written."""
        shadow = event.shadow
        written = (data, offset) if data is not None else None
        same = NONE
        if shadow.written and not self.past(event, shadow.newest):
            words = gather(shadow.writes, event.cells, event.rows)
            same = self.conflicts(event, words, "written", "written", written, None)
            if len(same):
                self.join(event, shadow.silent, words[same], same)
        for crowd in (shadow.strong_writers, shadow.silent):
            if crowd.marks is not None:
                same = np.concatenate((same, self.against(event, crowd, "written", "written", written)))
        if shadow.readers.marks is not None and not self.past(event, shadow.readers.newest):
            self.against(event, shadow.readers, "written", "read", None)
        if shadow.strong_readers.marks is not None:
            self.against(event, shadow.strong_readers, "written", "read", None)
        return same

    def unchanged(self, event: Event, data: Any, offset: Array) -> Array:
        """Which threads write what is there already: no one can tell the order."""
        value, dtype, lanes = data
        n = event.L.n
        size = np.dtype(dtype).itemsize * lanes
        memory = self.sh.bytes if event.space == "shared" else self.launch.bytes_at(event.base)
        old = memory[offset[:, None] + np.arange(size)]
        new = np.broadcast_to(value, (n, lanes) if lanes > 1 else (n,))
        new = np.ascontiguousarray(new).view(np.uint8).reshape(n, size)
        equal: Array = (old == new).all(axis=1)
        return equal

    def collision(self, event: Event, after: Array, lost: Array, data: Any) -> None:
        """Threads of one instruction wrote the same granule: a race unless all wrote the same."""
        where = np.flatnonzero(lost)
        if data is not None and not (data[0].__class__ is np.ndarray and data[0].ndim):
            where = NONE
        elif data is not None:
            where = where[self.differs(event, data, where)]
        if len(where):
            self.race(event, int(where[0]), after[where[0]], "written", "written", np.unique(where // event.each))
            return
        equal = np.flatnonzero(lost)
        self.join(event, event.shadow.silent, event.mine[equal], equal)

    @staticmethod
    def differs(event: Event, data: Any, where: Array) -> Array:
        """Whether overwritten granules were given other bytes than what stayed."""
        size = np.dtype(data[1]).itemsize * data[2]
        pieces = np.ascontiguousarray(data[0]).view(np.uint8).reshape(event.L.n * event.each, size // event.each)
        last = np.zeros(int(event.cells.max()) + 1, np.int64)
        last[event.cells] = np.arange(len(event.cells))
        other: Array = (pieces[where] != pieces[last[event.cells[where]]]).any(axis=1)
        return other

    def conflicts(self, event: Event, words: Array, now: str, before: str, data: Any, crowd: Crowd | None) -> Array:
        """Report accesses that no barrier of the block has put after the stamped ones, and nothing else either.

        `words` are the stamps of the last access, or the marks of a crowd. Returns the granules (positions) with an
        access that is not ordered and tolerated all the same, because both wrote the same bytes.
        """
        at = self.suspects(event, words)
        if not len(at):
            return NONE
        if crowd is not None and crowd.log:
            at, found = self.beside(event, self.doubtful(event, at, words), crowd)
        else:
            at = at[self.unordered(event.L.ids[at // event.each], words[at], event.access, event.space == "shared")]
            found = words[at]
        tolerated = NONE
        if len(at) and data is not None and before == "written":
            same = self.unchanged(event, *data)[at // event.each]
            tolerated, at, found = at[same], at[~same], found[~same]
        if len(at):
            self.race(event, int(at[0]), found[0], now, before, np.unique(at // event.each))
        return tolerated

    def suspects(self, event: Event, words: Array) -> Array:
        """Positions of stamps that no barrier of the whole block has settled, and that are not the lane's own."""
        if event.alone:
            suspect = words >= event.floor
            if event.shadow.hurried:
                suspect |= is_async(words)
            if not np.count_nonzero(suspect):
                return NONE
            suspect &= ((words ^ event.mine) & WHO) != 0
        else:
            if not np.count_nonzero(words):
                return NONE
            suspect = (((words ^ event.mine) & WHO) != 0) & (words != 0)
        return np.flatnonzero(suspect) if np.count_nonzero(suspect) else NONE

    def doubtful(self, event: Event, at: Array, marks: Array) -> Array:
        """Marks of one thread answer by themselves, unless it depends on its instructions; the others are doubtful."""
        if event.access.strong:
            return at
        single = thread_of(marks[at]) < SEVERAL
        known = np.zeros(len(at), bool)
        one = at[single]
        known[single] = ~self.unordered(
            event.L.ids[one // event.each], marks[one], event.access, event.space == "shared"
        )
        return np.asarray(at[~known])

    def beside(self, event: Event, at: Array, crowd: Crowd) -> tuple[Array, Array]:
        """Of granules whose marks leave a doubt, those with an unordered access in the log, and its stamp."""
        cells = event.cells[at]
        numbers, stamps, times = crowd.of(np.unique(cells))
        first, end = np.searchsorted(numbers, cells, "left"), np.searchsorted(numbers, cells, "right")
        total = np.cumsum(end - first)
        start = 0
        while start < len(at):
            base = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, base + PAIRS, "right")))
            sizes = (end - first)[start:stop]
            which = np.repeat(np.arange(start, stop), sizes)
            index = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[which]
            other = np.flatnonzero(((stamps[index] ^ event.mine[at[which]]) & WHO) != 0)
            place, index = at[which[other]], index[other]
            bad = self.unordered(event.L.ids[place // event.each], stamps[index], event.access, event.space == "shared")
            place, index = place[bad], index[bad]
            if len(place) and crowd is event.shadow.strong_writers and not event.access.strong:
                lanes = event.L.ids[place // event.each]
                unseen = ~self.observed(event.shadow, lanes, numbers[index], times[index])
                place, index = place[unseen], index[unseen]
            if len(place):
                return place, stamps[index]
            start = stop
        return NONE, stamps[:0]


def _pick(value: Any, at: Array) -> Any:
    return value[at] if value.__class__ is np.ndarray else value
