"""Shadow memory: who wrote and who read each granule of memory last.

A stamp is 64 bits: clock (18) | block (20) | thread (11) | asynchronous (1) | site (14). Clocks are on top, so that
"not yet ordered by a block barrier" is one comparison. In the shadow of reads, thread `EVERY` stands for several
threads of a block, and block and thread all ones (`MANY`) for threads of several blocks. A granule starts as 4 bytes
and is refined to 1 when a smaller or odd access comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array

SITE_BITS, THREAD_BITS, BLOCK_BITS, CLOCK_BITS = 14, 11, 20, 18
SITE_MASK = (1 << SITE_BITS) - 1
ASYNC_BIT = np.uint64(1 << SITE_BITS)
THREAD_SHIFT = SITE_BITS + 1
BLOCK_SHIFT = THREAD_SHIFT + THREAD_BITS
CLOCK_SHIFT = BLOCK_SHIFT + BLOCK_BITS
EVERY = (1 << THREAD_BITS) - 1
BLOCK_MASK = (1 << BLOCK_BITS) - 1
EVERY_BITS = np.uint64(EVERY << THREAD_SHIFT)
MANY = np.uint64((1 << CLOCK_SHIFT) - (1 << THREAD_SHIFT))
WHO = MANY | ASYNC_BIT
BLOCK_FIELD = np.uint64(BLOCK_MASK << BLOCK_SHIFT)
MAX_CLOCK = (1 << CLOCK_BITS) - 2
ONE_TICK = np.uint64(1 << CLOCK_SHIFT)


class Shadow:
    """Stamps of one memory of `nbytes` bytes. `written`, `touched`, `hurried`: there is a stamp of a write, of a
    read, of an asynchronous write."""

    def __init__(self, nbytes: int, granule: int = 2) -> None:
        self.granule = granule
        self.nbytes = nbytes
        count = (nbytes >> granule) + 2
        self.writes = np.zeros(count, np.uint64)
        self.reads = np.zeros(count, np.uint64)
        self.written = False
        self.touched = False
        self.hurried = False
        # Reads one by one, where barriers of all threads are not the only order: (granules, stamps, granule size).
        self.log: list[tuple[Array, Array, int]] = []
        self.gone: list[Array] = []

    def refine(self) -> None:
        """Go down to bytes."""
        repeat = 1 << self.granule
        self.writes = np.repeat(self.writes, repeat)
        self.reads = np.repeat(self.reads, repeat)
        self.granule = 0

    def forget(self, cells: Array) -> None:
        """Drop the reads of granules."""
        self.reads[cells] = 0
        if self.log:
            self.gone.append(cells)
            self.log.append((np.empty(0, np.int64), np.empty(0, np.uint64), -len(self.gone)))

    def readers(self, cells: Array) -> tuple[Array, Array]:
        """(granules, stamps) of the reads of some granules; the log is put in order on the way."""
        kept_cells = [np.empty(0, np.int64)]
        kept_stamps = [np.empty(0, np.uint64)]
        erased = np.zeros(len(self.reads), bool)
        for numbers, stamps, granule in reversed(self.log):
            if granule < 0:
                erased[self.gone[-granule - 1]] = True
                continue
            if granule != self.granule:
                each = 1 << granule
                numbers, stamps = (numbers[:, None] * each + np.arange(each)).reshape(-1), np.repeat(stamps, each)
            alive = ~erased[numbers]
            kept_cells.append(numbers[alive])
            kept_stamps.append(stamps[alive])
        merged = np.concatenate(kept_cells), np.concatenate(kept_stamps)
        self.log, self.gone = [(*merged, self.granule)], []
        wanted = np.zeros(len(self.reads), bool)
        wanted[cells] = True
        here = wanted[merged[0]]
        return merged[0][here], merged[1][here]

    def granules(self, offset: Array, size: int) -> tuple[Array, int]:
        """Granule numbers of accesses at byte offsets, and how many there are for each access."""
        grain = self.granule
        if grain and (size < 1 << grain or np.count_nonzero(offset & ((1 << grain) - 1))):
            self.refine()
        each = max(size >> self.granule, 1)
        first = offset >> self.granule if self.granule else offset
        if each == 1:
            return first, 1
        return (first[:, None] + np.arange(each)).reshape(-1), each


def identity(block: Any, thread: Any) -> Any:
    """The bits that name a thread of a block."""
    return (block.astype(np.uint64) << np.uint64(BLOCK_SHIFT)) | (thread.astype(np.uint64) << np.uint64(THREAD_SHIFT))


def agent_stamp(clock: Any, block: Any, thread: Any, site: int) -> Array:
    """The stamp of an asynchronous agent."""
    clocks = np.asarray(clock).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
    word: Array = clocks | identity(np.asarray(block), np.asarray(thread)) | ASYNC_BIT | np.uint64(site & SITE_MASK)
    return word


def clock_of(word: Any) -> Any:
    """The clock in a stamp or an array of stamps."""
    return (word >> np.uint64(CLOCK_SHIFT)).astype(np.int64)


def block_of(word: Any) -> Any:
    """The block in a stamp or an array of stamps."""
    return ((word >> np.uint64(BLOCK_SHIFT)) & np.uint64(BLOCK_MASK)).astype(np.int64)


def thread_of(word: Any) -> Any:
    """The thread (or agent) in a stamp or an array of stamps."""
    return ((word >> np.uint64(THREAD_SHIFT)) & np.uint64(EVERY)).astype(np.int64)


def is_async(word: Any) -> Any:
    """Whether a stamp is an asynchronous agent's."""
    return (word & ASYNC_BIT) != 0


def site_of(word: Any) -> int:
    """The number of the instruction in a stamp."""
    return int(word) & SITE_MASK
