"""Accesses that stand beside each other: all threads that touched a granule since an access that all preceded.

Reads, and strong accesses (atomics, volatile, relaxed), do not exclude one another, so the last one does not speak for
those before it. A `ConcurrentAccesses` has one mark for each granule, which is exact for one thread and says otherwise
that there were several, and a log of each access, which is asked only where the marks leave a doubt.
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.history.pages import resized
from tilewright.targets.emu.checks.history.rows import gather, scatter
from tilewright.targets.emu.checks.order.epochs import (
    ASYNC_BIT,
    BLOCK_FIELD,
    CLOCK_SHIFT,
    EVERY_BITS,
    MANY,
    SITE_MASK,
    WARP_BIT,
    WARP_FIELD,
    WHO,
)
from tilewright.targets.emu.checks.order.strength import SYS
from tilewright.targets.emu.lanes import Array

SHORT = 1 << 10
"""Accesses that are marked one by one, even if neighbours touch the same granule."""
COMPACT = 1 << 20
"""Entries of a log that are kept before it is put in order: the last one of each thread, instruction and granule."""
MOST = 1 << 20
"""Entries that stay when a log is put in order: of more, the latest of each granule, an equal number for each."""
HALF = np.uint64(32)
MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
NOTHING = np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)


class ConcurrentAccesses:
    """`marks` is None until there is an access; `asynchronous`: one by an asynchronous operation; `newest`: the level
    (`Clocks.level`) of the last one; `least`, `sizes`: the least scope and the sizes of the strong ones. Granule
    numbers are those of the shadow that owns this.
    """

    def __init__(self, count: int, granule: int) -> None:
        self.count = count
        self.granule = granule
        self.marks: Array | None = None
        self.log: list[tuple[Array, Array, Array, int]] = []
        self.gone: list[Array] = []
        self.entries = 0
        self.limit = COMPACT
        self.asynchronous = False
        self.newest = 0
        self.least = SYS
        self.sizes: set[int] = set()

    def refine(self) -> None:
        """Go down to bytes."""
        repeat = 1 << self.granule
        self.count *= repeat
        self.granule = 0
        if self.marks is not None:
            self.marks = np.repeat(self.marks, repeat)

    def grow(self, count: int) -> None:
        """Have room for more granules."""
        self.count = count
        if self.marks is not None:
            self.marks = resized(self.marks, count)

    def clear_log(self) -> None:
        """Forget each access that a barrier of all has ordered, but asynchronous ones; the marks go by their clocks."""
        kept = []
        if self.asynchronous and self.log:
            numbers, epochs, times = self._merged()
            late = (epochs & ASYNC_BIT) != 0
            kept = [(numbers[late], epochs[late], times[late], self.granule)]
        self.log, self.gone, self.entries = kept, [], len(kept[0][0]) if kept else 0

    # Noting.

    def mark(
        self,
        cells: Array,
        mine: Array,
        floor: Array | np.uint64 | None,
        rows: Array | None = None,
        distinct: bool = False,
    ) -> None:
        """Mark granules as accessed by epochs of ascending lanes; marks below `floor` (None: no mark) make way.

        `rows` is what `rows_of` says of the granules; `distinct`: none comes twice.
        """
        marks = self.marks
        if marks is None:
            marks = self.marks = np.zeros(self.count, np.uint64)
        if rows is None and len(cells) >= SHORT:
            cells, mine, floor = shortened(cells, mine, floor, self.asynchronous)
        old = gather(marks, cells, rows)
        before = np.count_nonzero(old)
        if before and floor is None and settled(old, mine):
            return
        # Where lanes share a granule the last one written stays: what else there was is found by looking again.
        scatter(marks, cells, rows, mine)
        noted = last = mine if distinct else gather(marks, cells, rows)
        if not distinct and np.count_nonzero(last != mine):
            # All lanes between the first and the last one at a granule belong to whatever unites these two.
            marks[cells[::-1]] = mine[::-1]
            first = marks.take(cells)
            noted = np.where(first == last, last, several(first, last, self.asynchronous))
            marks[cells] = noted
        if not before:
            return
        others = old != 0 if floor is None else old >= floor
        if self.asynchronous and floor is not None:
            others |= (old & ASYNC_BIT) != 0
        if np.count_nonzero(others):
            others &= ((old ^ noted) & WHO) != 0
            if np.count_nonzero(others):
                marks[cells] = np.where(others, several(old, noted, self.asynchronous), noted)

    def well_known(self, cells: Array, rows: Array | None) -> bool:
        """Whether threads of several blocks have accessed all of some granules: the marks can say no more."""
        if self.marks is None:
            return False
        return np.count_nonzero(gather(self.marks, cells, rows) & MANY == MANY) == len(cells)

    def note(self, cells: Array, epochs: Array, time: int | None = None) -> None:
        """Log accesses one by one; `time` is the number of the first, where it matters which came before which."""
        times = np.broadcast_to(np.int64(0), len(cells)) if time is None else np.arange(time, time + len(cells))
        self.log.append((cells, epochs, times, self.granule))
        self.entries += len(cells)
        if self.entries > self.limit:
            self._compact()

    def forget(self, cells: Array) -> None:
        """Drop the accesses to granules: whoever is ordered after the one that comes now is ordered after them."""
        assert self.marks is not None
        self.marks[cells] = 0
        if self.log:
            # The log keeps its order: an entry of a granule size below 0 says which of `gone` goes for all before it.
            self.gone.append(cells)
            self.log.append((*NOTHING, -len(self.gone)))
            self.entries += len(cells)
            if self.entries > self.limit:
                self._compact()

    # Asking.

    def of(self, cells: Array) -> tuple[Array, Array, Array]:
        """(granules, epochs, times) of the accesses to some granules, in order of the granules."""
        numbers, epochs, times = self._merged()
        wanted = np.zeros(self.count, bool)
        wanted[cells] = True
        here = np.flatnonzero(wanted[numbers])
        here = here[np.argsort(numbers[here], kind="stable")]
        return numbers[here], epochs[here], times[here]

    def _merged(self) -> tuple[Array, Array, Array]:
        """The log as one entry, in the order of time, without what was dropped."""
        if len(self.log) == 1 and self.log[0][3] == self.granule:
            return self.log[0][:3]
        kept_cells, kept_epochs, kept_times = ([part] for part in NOTHING)
        # From the last entry back, so that what was dropped later is known when an earlier entry comes.
        erased = np.zeros(self.count, bool)
        for numbers, epochs, times, granule in reversed(self.log):
            if granule < 0:
                erased[self.gone[-granule - 1]] = True
                continue
            if granule != self.granule:
                each = 1 << granule
                numbers = (numbers[:, None] * each + np.arange(each)).reshape(-1)
                epochs, times = np.repeat(epochs, each), np.repeat(times, each)
            alive = ~erased[numbers]
            kept_cells.append(numbers[alive])
            kept_epochs.append(epochs[alive])
            kept_times.append(times[alive])
        cells, epochs, times = (np.concatenate(kept[::-1]) for kept in (kept_cells, kept_epochs, kept_times))
        merged = cells, epochs, times
        self.log, self.gone, self.entries = [(*merged, self.granule)], [], len(merged[0])
        return merged

    def _compact(self) -> None:
        """Keep the last access of each thread and instruction to each granule, or the latest of them.

        What is dropped is a race that may go unseen, where a granule has had more accesses than are kept; an access
        that is ordered after all of them is ordered after those that are kept.
        """
        numbers, epochs, times = self._merged()
        kept = last_of_each(numbers, epochs)
        if len(kept) > MOST:
            kept = kept[latest(numbers[kept], MOST)]
        self.log = [(numbers[kept], epochs[kept], times[kept], self.granule)]
        self.entries = len(kept)
        self.limit = self.entries + COMPACT


def last_of_each(numbers: Array, epochs: Array) -> Array:
    """Which entries of a log are the last of their granule, thread and instruction, in order.

    They are sorted by a hash, which is faster than by all of it; where two have the same hash, a few more may stay.
    """
    who = epochs & np.uint64((1 << CLOCK_SHIFT) - 1)
    mixed = (numbers.view(np.uint64) * MIX[0] ^ who) * MIX[1]
    order = sorted_by(mixed >> HALF)
    numbers, who = numbers[order], who[order]
    last = np.ones(len(numbers), bool)
    last[:-1] = (numbers[1:] != numbers[:-1]) | (who[1:] != who[:-1])
    return np.sort(order[last])


def latest(numbers: Array, most: int) -> Array:
    """Of entries the latest few of each granule, so that there are at most `most`; one for each granule at least."""
    order = sorted_by(numbers.view(np.uint64))
    numbers = numbers[order]
    ends = np.flatnonzero(np.append(numbers[1:] != numbers[:-1], True)) + 1
    sizes = np.diff(ends, prepend=0)
    behind = np.repeat(ends, sizes) - np.arange(len(numbers))
    return np.sort(order[behind <= most_of_each(sizes, most)])


def sorted_by(keys: Array) -> Array:
    """The stable order of keys below 2**32: sorting numbers that hold key and place is much faster than `argsort`."""
    packed = keys << HALF | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << 32) - 1)).view(np.int64)


def most_of_each(sizes: Array, most: int) -> int:
    """The greatest number, at least 1, of which each group may keep so many without `most` being exceeded."""
    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(sizes, middle).sum()) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def shortened(
    cells: Array, mine: Array, floor: Array | np.uint64 | None, asynchronous: bool
) -> tuple[Array, Array, Array | np.uint64 | None]:
    """Neighbouring lanes at the same granule as one entry, with the mark that unites them, where many are."""
    other = cells[1:] != cells[:-1]
    if np.count_nonzero(other) * 4 > len(cells):
        return cells, mine, floor
    ends = np.flatnonzero(other)
    starts = np.concatenate(([0], ends + 1))
    ends = np.append(ends, len(cells) - 1)
    first, last = mine[starts], mine[ends]
    low = floor[starts] if floor.__class__ is np.ndarray else floor
    return cells[starts], np.where(first == last, last, several(first, last, asynchronous)), low


def settled(old: Array, mine: Array) -> bool:
    """Whether nothing is to be noted: granules are known to be touched by several threads already."""
    many = old & MANY == MANY
    if np.count_nonzero(many) == len(old):
        return True
    site = np.uint64(SITE_MASK)
    return bool((((old | site) == (mine | EVERY_BITS | site)) | many).all())


def several(a: Array, b: Array, asynchronous: bool) -> Array:
    """The mark of several threads: of one warp, of one block, or of several blocks. `asynchronous`: if some may be
    asynchronous, which shows through."""
    apart = a ^ b
    mixed: Array = b | EVERY_BITS
    blocks = (apart & BLOCK_FIELD) != 0
    if np.count_nonzero(blocks):
        mixed |= blocks * MANY
    if asynchronous:
        mixed |= a & ASYNC_BIT
    warp = (apart & WARP_FIELD) == 0
    if not np.count_nonzero(warp):
        return mixed
    for word in (a, b):
        warp &= (word & EVERY_BITS) != EVERY_BITS
        if asynchronous:
            warp &= (word & ASYNC_BIT) == 0
    return np.where(warp, (b & ~EVERY_BITS) | (b & WARP_FIELD) | WARP_BIT, mixed)
