"""Asynchronous writes that land late: with an odd seed, not before someone has waited for them.

What a kernel may see between issue and wait is either state; an odd seed shows it the old one. `cp.async` writes land
when their thread waits, copies that an mbarrier counts when it is first tested, stores in bulk groups when their
thread waits or ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array, Lanes

U8 = np.dtype(np.uint8)


@dataclass
class _Copy:
    """`cp.async` of some threads: the group of each, and what to write where."""

    site: int
    L: Lanes
    to: Array
    rows: Array
    size: int
    group: Array


class InFlight:
    """The writes in flight of a batch."""

    def __init__(self, machine: Any, late: bool) -> None:
        self.machine = machine
        self.late = late
        self.groups = np.zeros(len(machine.alive), np.int64)
        self.bulk_groups = np.zeros(len(machine.alive), np.int64)
        self.copies: list[_Copy] = []
        self.counted: dict[int, list[Callable[[], None]]] = {}
        self.stores: list[tuple[int, int, Callable[[], None]]] = []

    # cp.async.

    def copy(self, site: int, L: Lanes, to: Any, rows: Array, size: int) -> None:
        """Write, or remember to."""
        if not self.late:
            self.machine.sh.store(site, L, to, rows, U8, size.bit_length() - 1, size)
            return
        self.machine.sh.index(site, L, to, size.bit_length() - 1)  # out of bounds is an error of the instruction
        places = to if to.__class__ is np.ndarray else np.full(L.n, to)
        self.copies.append(_Copy(site, L, places, np.array(rows), size, self.groups[L.ids]))

    def commit(self, L: Lanes, bulk: bool) -> None:
        """A group ends."""
        (self.bulk_groups if bulk else self.groups)[L.ids] += 1

    def wait(self, L: Lanes, count: int, bulk: bool, everything: bool) -> None:
        """Threads have waited until at most `count` groups are in flight."""
        if bulk:
            self._finish(L.ids, self.bulk_groups[L.ids] - count)
        else:
            self._land(L, self.groups[L.ids] + 1 if everything else self.groups[L.ids] - count)

    def land_all(self, L: Lanes) -> None:
        """All copies of these threads are there."""
        self._land(L, self.groups[L.ids] + 1)

    def _land(self, L: Lanes, reached: Array) -> None:
        if not self.copies:
            return
        limit = np.zeros(len(self.groups), np.int64)
        limit[L.ids] = reached
        kept = []
        for c in self.copies:
            done = c.group < limit[c.L.ids]
            if done.any():
                at = np.flatnonzero(done)
                self.machine.sh.store(c.site, c.L.subset(at), c.to[at], c.rows[at], U8, c.size.bit_length() - 1, c.size)
            if not done.all():
                at = np.flatnonzero(~done)
                kept.append(_Copy(c.site, c.L.subset(at), c.to[at], c.rows[at], c.size, c.group[at]))
        self.copies = kept

    # Copies that an mbarrier counts.

    def deliver(self, word: int, write: Callable[[], None]) -> None:
        """Do what a copy does, now or when the mbarrier (by word index) is tested."""
        if self.late:
            self.counted.setdefault(word, []).append(write)
        else:
            write()

    def tested(self, words: Array) -> None:
        """Someone looks at mbarriers."""
        if self.counted:
            for word in np.unique(words):
                for write in self.counted.pop(int(word), ()):
                    write()

    # Stores in bulk groups.

    def store(self, lane: int, write: Callable[[], None]) -> None:
        """Do what a store does, now or when its thread waits."""
        if self.late:
            self.stores.append((lane, int(self.bulk_groups[lane]), write))
        else:
            write()

    def ended(self, ids: Array) -> None:
        """Threads have ended: their stores are complete."""
        self._finish(ids, self.bulk_groups[ids] + 1)

    def _finish(self, ids: Array, reached: Array) -> None:
        if not self.stores:
            return
        limit = dict(zip(ids.tolist(), reached.tolist(), strict=True))
        kept = []
        for lane, group, write in self.stores:
            if group < limit.get(lane, 0):
                write()
            else:
                kept.append((lane, group, write))
        self.stores = kept
