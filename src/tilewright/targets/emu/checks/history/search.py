"""Searching the history for accesses that are not ordered before one that comes now."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.concurrent import ConcurrentAccesses
from tilewright.targets.emu.checks.history.footprint import Footprint
from tilewright.targets.emu.checks.history.shadow import Shadow
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import SEVERAL, SITE_MASK, WHO, is_async, thread_of
from tilewright.targets.emu.checks.order.strength import CLUSTER, CTA, WEAK
from tilewright.targets.emu.lanes import Array

NONE = np.empty(0, np.int64)
PAIRS = 1 << 20
"""Pairs of accesses judged at once."""


class Search:
    """Asks the happens-before service, from the cheap question to the dear one."""

    def __init__(self, order: HappensBefore) -> None:
        self.order = order

    def last(self, now: Footprint, words: Array) -> Array:
        """Positions where the last access, with its epoch in `words`, is not ordered before this one."""
        at = self.suspects(now, words)
        return at[self._unordered(now, at, words[at])] if len(at) else at

    def beside(self, now: Footprint, accesses: ConcurrentAccesses, writers: bool) -> tuple[Array, Array]:
        """Positions where one of the concurrent accesses is not ordered before this one, and the epoch of one.

        `writers`: they are strong writes, which what has seen them need not be ordered after otherwise.
        """
        if accesses.marks is None or self._all_in_scope(now, accesses):
            return NONE, NONE
        marks = accesses.marks.take(now.cells)
        at = self.suspects(now, marks)
        if not len(at):
            return NONE, NONE
        if accesses.log:
            return self._in_log(now, self._doubtful(now, at, marks), accesses, writers)
        at = at[self._unordered(now, at, marks[at])]
        return at, marks[at]

    def suspects(self, now: Footprint, words: Array) -> Array:
        """Positions of epochs that no barrier of the whole block has settled, and that are not the lane's own."""
        if now.alone:
            suspect = words >= now.floor
            if now.shadow.asynchronous:
                suspect |= is_async(words)
            if not np.count_nonzero(suspect):
                return NONE
            suspect &= ((words ^ now.mine) & WHO) != 0
        else:
            if not np.count_nonzero(words):
                return NONE
            suspect = (((words ^ now.mine) & WHO) != 0) & (words != 0)
        return np.flatnonzero(suspect) if np.count_nonzero(suspect) else NONE

    def _unordered(self, now: Footprint, at: Array, words: Array) -> Array:
        return self.order.unordered(now.L.ids[at // now.each], words, now.strength, now.space == "shared")

    def _all_in_scope(self, now: Footprint, accesses: ConcurrentAccesses) -> bool:
        """Whether this access and concurrent strong ones are harmless beside each other, whoever did them."""
        if not now.strength.strong or accesses.sizes != {now.strength.size}:
            return False
        reach = CTA if now.alone else CLUSTER if now.space == "shared" else self.order.widest
        return min(now.strength.scope, accesses.least) >= reach

    def _doubtful(self, now: Footprint, at: Array, marks: Array) -> Array:
        """Marks of one thread answer by themselves, unless it depends on its instructions; the others are doubtful."""
        if now.strength.strong:
            return at
        single = thread_of(marks[at]) < SEVERAL
        known = np.zeros(len(at), bool)
        known[single] = ~self._unordered(now, at[single], marks[at[single]])
        return np.asarray(at[~known])

    def _in_log(self, now: Footprint, at: Array, accesses: ConcurrentAccesses, writers: bool) -> tuple[Array, Array]:
        """Of granules whose marks leave a doubt, those with an unordered access in the log, and its epoch."""
        cells = now.cells[at]
        numbers, epochs, times = accesses.of(np.unique(cells))
        first, end = np.searchsorted(numbers, cells, "left"), np.searchsorted(numbers, cells, "right")
        total = np.cumsum(end - first)
        start = 0
        while start < len(at):
            # Pairs are judged a few granules at a time: a log may have very many.
            base = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, base + PAIRS, "right")))
            sizes = (end - first)[start:stop]
            which = np.repeat(np.arange(start, stop), sizes)
            index = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[which]
            other = np.flatnonzero(((epochs[index] ^ now.mine[at[which]]) & WHO) != 0)
            place, index = at[which[other]], index[other]
            bad = self._unordered(now, place, epochs[index])
            place, index = place[bad], index[bad]
            if len(place) and writers and not now.strength.strong:
                lanes = now.L.ids[place // now.each]
                seen = self.observed(now.shadow, lanes, numbers[index], times[index], now.space == "shared")
                place, index = place[~seen], index[~seen]
            if len(place):
                return place, epochs[index]
            start = stop
        return NONE, epochs[:0]

    # Strong writes that were seen.

    def observed(self, shadow: Shadow, lanes: Array, cells: Array, times: Array, shared: bool) -> Array:
        """Which strong writes a strong read saw that happens before what the lanes do now.

        A read sees a write and those that led to it by read-modify-writes: they are before what follows the read
        (PTX ISA 8.9.2 and 8.9.5, observation order and causality order), released or not.
        """
        seen = np.zeros(len(lanes), bool)
        for cell in np.unique(cells):
            written, stores, counts = self._strong_writes(shadow, int(cell))
            readers = (
                shadow.strong_readers.of(np.array([cell]))[1:] if shadow.strong_readers.log else (written[:0],) * 2
            )
            epochs = np.concatenate((written[~stores], readers[0]))
            looked = np.concatenate((counts[~stores], readers[1].astype(np.int64)))
            for lane in np.unique(lanes[cells == cell]):
                here = (cells == cell) & (lanes == lane)
                own = ((epochs ^ self.order.clocks.epoch[lane]) & WHO) == 0
                known = own | ~self.order.unordered(np.full(len(epochs), lane), epochs, WEAK, shared)
                last = int(looked[known].max(initial=-1))
                chain = int(counts[stores & (counts < last)].max(initial=-1))
                seen[here] = (times[here] < last) & (times[here] >= chain)
        return seen

    def _strong_writes(self, shadow: Shadow, cell: int) -> tuple[Array, Array, Array]:
        """(epochs, which are plain stores, times) of the strong writes to a granule."""
        _, epochs, times = shadow.strong_writers.of(np.array([cell]))
        sites, which = np.unique(epochs & np.uint64(SITE_MASK), return_inverse=True)
        plain: Any = np.array([not self.order.strength_at(int(site)).atomic for site in sites], bool)
        return epochs, plain[which], times
