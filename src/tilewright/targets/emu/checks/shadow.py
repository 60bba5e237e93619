"""Shadow memory: who wrote and who read each granule of memory last.

A stamp is 64 bits: clock (20) | thread (27) | asynchronous (1) | site (16). Clocks are on top, so that "not yet
ordered by a block barrier" is one comparison. The thread is the block's number times the block's lanes plus the
lane; all ones in the shadow of reads stands for several threads. A granule starts as 4 bytes and is refined to 1
when a smaller or odd access comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array

CLOCK_SHIFT = 44
GID_SHIFT = 17
GID_MASK = np.uint64(((1 << 27) - 1) << GID_SHIFT)
ASYNC_BIT = np.uint64(1 << 16)
WHO = GID_MASK | ASYNC_BIT
MANY = GID_MASK
SITE_MASK = 0xFFFF
MAX_CLOCK = (1 << 20) - 2


class Shadow:
    """Stamps of one memory of `nbytes` bytes. `written` and `touched` tell whether there is any stamp at all."""

    def __init__(self, nbytes: int, granule: int = 2) -> None:
        self.granule = granule
        self.nbytes = nbytes
        count = (nbytes >> granule) + 2
        self.writes = np.zeros(count, np.uint64)
        self.reads = np.zeros(count, np.uint64)
        self.written = False
        self.touched = False
        self.log: list[tuple[Array, Array, int]] = []
        """Reads one by one, for kernels whose order is not that of barriers of all threads: granules, stamps, granule size."""
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
        kept_cells: list[Array] = []
        kept_stamps: list[Array] = []
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
        merged = (np.concatenate(kept_cells), np.concatenate(kept_stamps)) if kept_cells else (
            np.empty(0, np.int64), np.empty(0, np.uint64))  # fmt: skip
        self.log, self.gone = [(*merged, self.granule)], []
        wanted = np.zeros(len(self.reads), bool)
        wanted[cells] = True
        here = wanted[merged[0]]
        return merged[0][here], merged[1][here]

    def granules(self, offset: Array, size: int) -> tuple[Array, int]:
        """Granule numbers of accesses at byte offsets, and how many there are for each access."""
        if self.granule and (size < 1 << self.granule or (offset & ((1 << self.granule) - 1)).any()):
            self.refine()
        each = max(size >> self.granule, 1)
        first = offset >> self.granule if self.granule else offset
        if each == 1:
            return first, 1
        return (first[:, None] + np.arange(each)).reshape(-1), each


def stamp(clock: Array, gid: Array, site: int, asynchronous: bool = False) -> Array:
    word = (clock.astype(np.uint64) << np.uint64(CLOCK_SHIFT)) | (gid.astype(np.uint64) << np.uint64(GID_SHIFT))
    if asynchronous:
        word = word | ASYNC_BIT
    marked: Array = word | np.uint64(site & SITE_MASK)
    return marked


def gid_of(word: Any) -> int:
    return int(word) >> GID_SHIFT & (1 << 27) - 1


def is_async(word: Any) -> bool:
    return bool(int(word) & int(ASYNC_BIT))


def site_of(word: Any) -> int:
    return int(word) & SITE_MASK
