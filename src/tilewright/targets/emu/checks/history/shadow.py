"""Shadow memory: the accesses to each granule of a memory that later ones must be ordered after.

A granule starts as 4 bytes and is refined to 1 when a smaller or odd access comes. A large memory is shadowed page by
page, where it is touched.
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.granules import WORD, split
from tilewright.targets.emu.checks.history.concurrent import ConcurrentAccesses
from tilewright.targets.emu.checks.history.pages import PAGE_SHIFT, Pages, resized
from tilewright.targets.emu.checks.history.rows import padded
from tilewright.targets.emu.checks.observer import Access, Batch
from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.memory import GlobalMemory

LARGE = 1 << 25
"""Bytes of a memory from which on it is shadowed page by page."""


class Shadow:
    """Epochs of one memory of `nbytes` bytes. Granules go by the numbers that `granules` gives them.

    `writes` has the last weak write, which all before it precede. `readers` are the weak reads since, `strong_readers`
    and `strong_writers` the strong accesses since; `silent` the weak writes that a write of the same bytes followed
    without order. `asynchronous`: there is an epoch of an asynchronous operation. `newest`: the level (`Clocks.level`)
    of the last weak write, whatever it is worth where there are no levels any more. `rounds`: the barriers of all up to
    which logs have been cleared.
    """

    def __init__(self, nbytes: int, granule: int = WORD) -> None:
        self.granule = granule
        self.nbytes = nbytes
        self._pages = Pages(nbytes) if nbytes >= LARGE else None
        count = padded((nbytes >> granule) + 2) if self._pages is None else self._pages.capacity << PAGE_SHIFT - granule
        self.writes = np.zeros(count, np.uint64)
        self.written = False
        self.newest = 0
        self.asynchronous = False
        self.rounds = 0
        self.readers = ConcurrentAccesses(count, granule)
        self.strong_readers = ConcurrentAccesses(count, granule)
        self.strong_writers = ConcurrentAccesses(count, granule)
        self.silent = ConcurrentAccesses(count, granule)
        self.sets = (self.readers, self.strong_readers, self.strong_writers, self.silent)

    def refine(self) -> None:
        """Go down to bytes."""
        each = 1 << self.granule
        # What no one has written takes no memory as long as no one touches it.
        some = self.written or self.asynchronous
        self.writes = np.repeat(self.writes, each) if some else np.zeros(each * len(self.writes), np.uint64)
        self.granule = 0
        for one in self.sets:
            one.refine()

    def replaced(self, cells: Array, readers: bool) -> None:
        """A weak write that all others precede: whoever is ordered after it is ordered after them (`readers` too)."""
        for one in self.sets if readers else self.sets[1:]:
            if one.marks is not None:
                one.forget(cells)

    def granules(self, offset: Array, size: int) -> tuple[Array, int]:
        """Granule numbers of accesses at byte offsets (multiples of their size), and how many each access has."""
        if size < 1 << self.granule:
            self.refine()
        cells, each = split(offset, size, self.granule)
        return (cells if self._pages is None else self._paged(self._pages, cells)), each

    def touched(self, access: Access) -> tuple[Array, int]:
        """The same of an access to shared memory."""
        if access.size < 1 << self.granule:
            self.refine()
        return access.granules(self.granule)

    def _paged(self, pages: Pages, numbers: Array) -> Array:
        cells = pages.cells(numbers, self.granule)
        count = pages.capacity << PAGE_SHIFT - self.granule
        if count > len(self.writes):
            self.writes = resized(self.writes, count)
            for one in self.sets:
                one.grow(count)
        return cells

    def offset(self, cell: int) -> int:
        """The first byte of a granule in the memory."""
        number = cell if self._pages is None else self._pages.number(cell, self.granule)
        return number << self.granule


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
