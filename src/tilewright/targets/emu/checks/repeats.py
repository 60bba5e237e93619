"""The short way for accesses that come again: a loop whose barriers order all that it does in shared memory.

An array of addresses never changes, so an instruction that gets the same array for the same threads touches the same
places. Where only barriers of whole blocks order threads, and one lies between this access and all earlier ones that it
could race with, it races with nothing, and is noted without a look at what was noted before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.products import Products
from tilewright.targets.emu.checks.stamps import CLOCK_SHIFT, ONE_TICK
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import REMEMBERED


@dataclass(slots=True)
class Repeat:
    """What an instruction last did in shared memory, and to which threads and addresses (the same objects).

    `index` is that of the elements. From the second time on: `cells`, the granules (of size `granule`); `who`, their
    stamps without clocks; `whole`: both are there, as no two threads share a granule; `written`: all were; `noted`: the
    level of the last note.
    """

    addr: Any
    lanes: Lanes
    index: Array
    cells: Any = None
    who: Any = None
    whole: bool = False
    granule: int = -1
    written: bool = False
    noted: int = 0


class Repeats(Products):
    """Remembers accesses, and notes those that come again."""

    def __init__(self, launch: Any, blocks: Array) -> None:
        super().__init__(launch, blocks)
        self.repeats: dict[int, Repeat] = {}
        self.plain = not self.ordered and self.shape.cluster_blocks == 1
        """Whether only barriers of whole blocks order threads, and no block reaches another's shared memory."""

    def remember(self, site: int, L: Lanes, addr: Any, index: Any, shift: int) -> None:
        """Note what an instruction does, in full the second time in a row that it does the same."""
        last = self.repeats.get(site)
        if last is None or last.addr is not addr or last.lanes is not L:
            if addr.__class__ is np.ndarray and L.n <= REMEMBERED:
                self.repeats[site] = Repeat(addr, L, index)
            return
        shadow = self.shared_shadow
        if last.granule == shadow.granule or self.access(site).strong:
            return
        last.granule = shadow.granule
        cells, each = shadow.granules(index << shift, 1 << shift)
        if len(np.unique(cells)) == len(cells):
            who = self.stamps(L, site) & (ONE_TICK - np.uint64(1))
            last.cells, last.who, last.whole = cells, np.repeat(who, each) if each > 1 else who, True

    def settled(self, again: Repeat) -> bool:
        """Whether an access may go the short way, as far as earlier writes are concerned."""
        shadow, level = self.shared_shadow, self.clocks.level
        if not again.whole or level is None or shadow.newest >= level or shadow.hurried or shadow.spoilt is not None:
            return False
        _, strong_readers, strong_writers, silent = shadow.crowds
        alone = strong_readers.marks is None and strong_writers.marks is None and silent.marks is None
        return alone and again.granule == shadow.granule

    def read_again(self, again: Repeat) -> bool:
        """Note a read, if it goes the short way."""
        shadow, level = self.shared_shadow, self.clocks.level or 0
        readers = shadow.readers
        if not self.settled(again) or readers.marks is None or (readers.newest >= level and again.noted != level):
            return False
        if not again.written:
            again.written = bool(np.count_nonzero(shadow.writes.take(again.cells)) == len(again.cells))
            if not again.written:
                return False
        if again.noted != level:
            readers.marks[again.cells] = again.who | np.uint64(level << CLOCK_SHIFT)
            readers.newest = again.noted = level
        return True

    def write_again(self, again: Repeat) -> bool:
        """Note a write, if it goes the short way."""
        shadow, level = self.shared_shadow, self.clocks.level or 0
        if not self.settled(again) or shadow.readers.newest >= level:
            return False
        shadow.writes[again.cells] = again.who | np.uint64(level << CLOCK_SHIFT)
        shadow.written = True
        shadow.newest = level
        return True
