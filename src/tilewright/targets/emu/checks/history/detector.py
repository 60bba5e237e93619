"""Noting accesses in shadow memory, and checking them against what was noted before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.concurrent import ConcurrentAccesses
from tilewright.targets.emu.checks.history.conflict import Conflict
from tilewright.targets.emu.checks.history.footprint import Footprint
from tilewright.targets.emu.checks.history.rows import gather, scatter
from tilewright.targets.emu.checks.history.search import NONE, Search
from tilewright.targets.emu.checks.history.shadow import GlobalShadows
from tilewright.targets.emu.checks.observer import Batch
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import is_async
from tilewright.targets.emu.lanes import Array


class Detector:
    """Checks and notes one access after another; unordered pairs go to `judges`."""

    def __init__(self, batch: Batch, order: HappensBefore, everywhere: GlobalShadows) -> None:
        self.order, self.everywhere = order, everywhere
        self.search = Search(order)
        self.judges: list[Callable[[Conflict], None]] = []
        self._shared = batch.shared

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
        self._settle(now)
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
        self._settle(now)
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
        memory = self._shared.bytes if now.space == "shared" else self.everywhere.bytes_at(now.base)
        old = memory[now.offsets[:, None] + np.arange(size)]
        new = np.broadcast_to(value, (n, count) if count > 1 else (n,))
        new = np.ascontiguousarray(new).view(np.uint8).reshape(n, size)
        equal: Array = (old == new).all(axis=1)
        return equal

    # Conflicts.

    def _settle(self, now: Footprint) -> None:
        """Forget the accesses that a barrier of all has ordered, where only threads of the block reach the memory."""
        shadow = now.shadow
        if now.alone and shadow.rounds != self.order.rounds:
            shadow.rounds = self.order.rounds
            for accesses in shadow.sets:
                if accesses.log:
                    accesses.clear_log()

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
        self._settle(now)
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
