"""Writes to memory that several devices see: with an odd seed, the others see each as late as they may.

A device sees its own writes at once. Another one sees them in any order, element by element, until a thread of the
device releases in scope sys (a fence, a release), or its launch ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array

WORD = 2
"""The binary logarithm of the bytes of a word: late elements are found by the words of four bytes that they touch."""


class LateWrites:
    """The writes of one device that the others do not see yet. `late`: whether there shall be any."""

    def __init__(self, random: np.random.Generator, late: bool) -> None:
        self.late = late
        self._random = random
        self._waiting: list[tuple[Array, Array, Array]] = []
        self._words: set[int] = set()

    def write(self, table: Array, places: Array, values: Array) -> None:
        """`table[places] = values`, of which about half are late."""
        some = self._random.random(len(places)) < 0.5
        table[places[~some]] = values[~some]
        if some.any():
            self._waiting.append((table, places[some], values[some]))
            size = table.itemsize
            first = table.__array_interface__["data"][0] + places[some] * size
            for byte in range(0, max(size, 1), 1 << WORD):
                self._words.update(((first + byte) >> WORD).tolist())

    def touched(self, addresses: Any, size: int) -> bool:
        """Whether an access of `size` bytes at addresses meets writes that are on their way."""
        if not self._words:
            return False
        first = np.atleast_1d(addresses)
        ends = [first + first.dtype.type(byte) for byte in range(0, size, 1 << WORD)]
        words = np.unique(np.concatenate(ends) >> first.dtype.type(WORD)).tolist()
        return not self._words.isdisjoint(words)

    def deliver(self) -> bool:
        """Let the others see all late writes. Whether there were any."""
        if not self._waiting:
            return False
        waiting, self._waiting, self._words = self._waiting, [], set()
        for table, places, values in waiting:
            table[places] = values
        return True
