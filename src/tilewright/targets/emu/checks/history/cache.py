"""The short way for accesses that come again: a loop whose barriers order all that it does in shared memory.

An array of addresses never changes, so an instruction that gets the same array for the same threads touches the same
places: `Access.index` is the same object. Where only barriers of whole blocks order threads, and one lies between this
access and all earlier ones that it could race with, it races with nothing, and is noted without a look at what was
noted before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.shadow import Shadow
from tilewright.targets.emu.checks.observer import Access
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import CLOCK_SHIFT, ONE_TICK
from tilewright.targets.emu.memory import REMEMBERED


@dataclass(slots=True)
class Known:
    """What an instruction last did in shared memory.

    From the second time on: `cells`, the granules (of size `granule`); `who`, their epochs without clocks; `distinct`:
    both are there, as no two threads share a granule; `noted`: the level of the last note.
    """

    index: Any
    cells: Any = None
    who: Any = None
    distinct: bool = False
    granule: int = -1
    noted: int = 0


class AccessCache:
    """Remembers accesses by instruction, and notes those that come again."""

    def __init__(self, shadow: Shadow, order: HappensBefore) -> None:
        self._shadow, self._order, self._clocks = shadow, order, order.clocks
        self._known: dict[int, Known] = {}

    def repeated(self, access: Access) -> bool:
        """Note an access, if it may go the short way."""
        known = self._known.get(access.site)
        if known is None or known.index is not access.index or not known.distinct:
            return False
        # Nothing but plain writes and reads, and a barrier behind the last write.
        shadow, level = self._shadow, self._clocks.level
        if level is None or shadow.newest >= level or shadow.asynchronous or known.granule != shadow.granule:
            return False
        readers, strong_readers, strong_writers, silent = shadow.sets
        if strong_readers.marks is not None or strong_writers.marks is not None or silent.marks is not None:
            return False
        if access.writes:
            if readers.newest >= level:
                return False
            shadow.writes[known.cells] = known.who | np.uint64(level << CLOCK_SHIFT)
            shadow.written = True
            shadow.newest = level
        elif known.noted != level:
            if readers.marks is None or readers.newest >= level:
                return False
            readers.marks[known.cells] = known.who | np.uint64(level << CLOCK_SHIFT)
            readers.newest = known.noted = level
        return True

    def remember(self, access: Access) -> None:
        """Keep what an instruction does, in full the second time in a row that it does the same."""
        site, index = access.site, access.index
        known = self._known.get(site)
        if known is None or known.index is not index:
            if index.__class__ is np.ndarray and access.address.__class__ is np.ndarray and access.L.n <= REMEMBERED:
                self._known[site] = Known(index)
            return
        if known.granule == self._shadow.granule or self._order.strength(site).strong:
            return
        known.granule = self._shadow.granule
        cells, each = self._shadow.touched(access)
        if len(np.unique(cells)) == len(cells):
            who = self._order.epochs(access.L, site) & (ONE_TICK - np.uint64(1))
            known.cells, known.who, known.distinct = cells, np.repeat(who, each) if each > 1 else who, True
