"""Shadow memory: the accesses to each granule of a memory that later ones must be ordered after.

A granule starts as 4 bytes and is refined to 1 when a smaller or odd access comes. A large memory is shadowed page by
page, where it is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.crowd import Crowd
from tilewright.targets.emu.checks.pages import PAGE_SHIFT, Pages, resized
from tilewright.targets.emu.checks.rows import padded
from tilewright.targets.emu.lanes import Array

LARGE = 1 << 25
"""Bytes of a memory from which on it is shadowed page by page."""


class Shadow:
    """Stamps of one memory of `nbytes` bytes. Granules go by the numbers that `granules` gives them.

    `writes` has the last weak write, which all before it precede. `readers` are the weak reads since, `strong_readers`
    and `strong_writers` the strong accesses since; `silent` the weak writes that a write of the same bytes followed
    without order. `hurried`: there is a stamp of an asynchronous operation. `newest`: the level (`Clocks.level`) of the
    last weak write, whatever it is worth where there are no levels any more. `spoilt` marks the granules whose value
    depends on memory never written, None before the first: they count as not written.
    """

    def __init__(self, nbytes: int, granule: int = 2) -> None:
        self.granule = granule
        self.nbytes = nbytes
        self._pages = Pages(nbytes) if nbytes >= LARGE else None
        count = padded((nbytes >> granule) + 2) if self._pages is None else self._pages.capacity << PAGE_SHIFT - granule
        self.writes = np.zeros(count, np.uint64)
        self.written = False
        self.newest = 0
        self.hurried = False
        self.spoilt: Array | None = None
        self.readers = Crowd(count, granule)
        self.strong_readers = Crowd(count, granule)
        self.strong_writers = Crowd(count, granule)
        self.silent = Crowd(count, granule)
        self.crowds = (self.readers, self.strong_readers, self.strong_writers, self.silent)

    def refine(self) -> None:
        """Go down to bytes."""
        each = 1 << self.granule
        # What no one has written takes no memory as long as no one touches it.
        some = self.written or self.hurried
        self.writes = np.repeat(self.writes, each) if some else np.zeros(each * len(self.writes), np.uint64)
        if self.spoilt is not None:
            self.spoilt = np.repeat(self.spoilt, 1 << self.granule)
        self.granule = 0
        for crowd in self.crowds:
            crowd.refine()

    def replaced(self, cells: Array, readers: bool) -> None:
        """A weak write that all others precede: whoever is ordered after it is ordered after them (`readers` too)."""
        for crowd in self.crowds if readers else self.crowds[1:]:
            if crowd.marks is not None:
                crowd.forget(cells)

    def missing(self, cells: Array, words: Array | None) -> Array:
        """Granules that no one has written; `words` are their stamps of writes, None for none."""
        nothing = words == 0 if words is not None else np.ones(len(cells), bool)
        marks = self.strong_writers.marks
        if marks is not None and np.count_nonzero(nothing):
            nothing &= marks.take(cells) == 0
        if self.spoilt is not None:
            nothing |= self.spoilt.take(cells)
        return np.asarray(nothing)

    def spoil(self, cells: Array, spoilt: Any = True) -> None:
        """Whether what was just written there depends on memory never written."""
        if self.spoilt is None:
            self.spoilt = np.zeros(len(self.writes), bool)
        self.spoilt[cells] = spoilt

    def mend(self, cells: Array) -> None:
        """Something is written there."""
        if self.spoilt is not None:
            self.spoilt[cells] = False

    def granules(self, offset: Array, size: int) -> tuple[Array, int]:
        """Granule numbers of accesses at byte offsets (multiples of their size), and how many each access has."""
        if size < 1 << self.granule:
            self.refine()
        each = max(size >> self.granule, 1)
        first = offset >> self.granule if self.granule else offset
        if each > 1:
            first = (first[:, None] + np.arange(each)).reshape(-1)
        return (first if self._pages is None else self._paged(self._pages, first)), each

    def _paged(self, pages: Pages, numbers: Array) -> Array:
        cells = pages.cells(numbers, self.granule)
        count = pages.capacity << PAGE_SHIFT - self.granule
        if count > len(self.writes):
            self.writes = resized(self.writes, count)
            self.spoilt = None if self.spoilt is None else resized(self.spoilt, count)
            for crowd in self.crowds:
                crowd.grow(count)
        return cells

    def offset(self, cell: int) -> int:
        """The first byte of a granule in the memory."""
        number = cell if self._pages is None else self._pages.number(cell, self.granule)
        return number << self.granule
