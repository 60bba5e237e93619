"""Pages of a large memory: shadow memory has room for those that a kernel touches, in the order in which it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewright.targets.emu.lanes import Array

PAGE_SHIFT = 12
"""Pages have 4096 bytes of the memory that they shadow."""
FIRST_PAGES = 1 << 8
SPARE = 1 << 26
"""Bytes of memory that are left to others."""
UNLIMITED = 1 << 60


class Pages:
    """Where the pages of a memory of `nbytes` bytes lie: `capacity` of them have room, `used` have been touched."""

    def __init__(self, nbytes: int) -> None:
        self._place = np.full((nbytes >> PAGE_SHIFT) + 2, -1, np.int32)
        self._page = np.zeros(FIRST_PAGES, np.int32)
        self.capacity = FIRST_PAGES
        self.used = 0

    def cells(self, numbers: Array, granule: int) -> Array:
        """Where granules lie, given by their numbers in the memory; pages that are new get the next places."""
        if not len(numbers):
            return numbers
        shift = PAGE_SHIFT - granule
        first, last = int(numbers.min()) >> shift, int(numbers.max()) >> shift
        run = self._place[first : last + 1]
        if len(run) <= len(numbers) and run[0] >= 0 and not np.count_nonzero(run[1:] - run[:-1] != 1):
            return numbers + ((int(run[0]) - first) << shift)  # pages side by side lie side by side
        page = numbers >> shift
        place = self._place.take(page)
        if np.count_nonzero(place < 0):
            self._add(np.unique(page[place < 0]))
            place = self._place.take(page)
        return np.asarray(place.astype(np.int64) << shift | numbers & (1 << shift) - 1)

    def number(self, cell: int, granule: int) -> int:
        """The number in the memory of the granule that lies at a place."""
        shift = PAGE_SHIFT - granule
        return int(self._page[cell >> shift]) << shift | cell & (1 << shift) - 1

    def _add(self, new: Array) -> None:
        count = self.used + len(new)
        while self.capacity < count:
            self.capacity *= 2
        self._page = resized(self._page, self.capacity)
        self._page[self.used : count] = new
        self._place[new] = np.arange(self.used, count)
        self.used = count


def resized(table: Array, count: int) -> Array:
    """A table with more entries, the new ones zero.

    Raises:
        MemoryError: there is no room, as far as the system says; to use more would end the process.
    """
    if len(table) >= count:
        return table
    need = (count - len(table)) * table.itemsize
    if need > SPARE and need > left():
        raise MemoryError(f"no room for {need} bytes")
    new = np.zeros((count, *table.shape[1:]), table.dtype)
    new[: len(table)] = table
    return new


def left(root: Path = Path("/")) -> int:
    """Bytes of memory that may still be used: by the system and by the limits of its control group, where it tells."""
    found = [UNLIMITED]
    info = _numbers(root / "proc/meminfo")
    if "MemAvailable:" in info:
        found.append(1024 * info["MemAvailable:"])
    for folder, most, now in (
        ("sys/fs/cgroup", "memory.max", "memory.current"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, taken = _numbers(root / folder / most), _numbers(root / folder / now)
        if "" in limit and "" in taken:
            found.append(limit[""] - taken[""] + _numbers(root / folder / "memory.stat").get("inactive_file", 0))
    return max(min(found) - SPARE, 0)


def _numbers(path: Path) -> dict[str, int]:
    """The numbers in a file of lines such as `name 12 kB`, or of one number alone, by name."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    named = {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
    return {"": int(rows[0][0])} if rows and len(rows[0]) == 1 and rows[0][0].isdigit() else named
