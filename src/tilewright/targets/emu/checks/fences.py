"""The one order of `fence.sc` and `membar` (PTX ISA 8.10.3, 8.9): what such a fence orders across a barrier.

A release pattern covers what its own thread did, or knew, before its fence. Where every thread of a block has a
`fence.sc` before the block's barrier and one thread then signals by a relaxed atomic, that is not enough: the others'
writes are ordered because of two `fence.sc` one synchronises with the other. Which comes first is not known, but where
the second's thread knows, by a barrier too, of a read that saw the signal, it is the fence before the signal: the other
way round causality would run against what was observed.
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.clocks import Clocks, Knowledge, Publication
from tilewright.targets.emu.lanes import Array, Lanes

KEPT = 8
"""Fences of each thread that are remembered."""


class SequentialFences:
    """The fences of a batch that stand in the one order of the device, and the signals that threads have seen."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.ends: Array | None = None
        """The clocks that the last fences of each thread ended, the latest first; None before the first fence."""
        self.slots = np.zeros(clocks.slots, bool)
        """The blocks in which there has been one."""
        self._seen: dict[int, dict[tuple[int, int], tuple[int, Publication]]] = {}

    def passed(self, L: Lanes) -> None:
        """Threads pass a fence: each comes to know what was fenced before a signal that it knows was seen."""
        for slot in np.unique(L.slot).tolist() if self._seen else ():
            self._learn(L.ids[L.slot == slot], self._seen.get(slot, {}))
        if self.ends is None:
            self.ends = np.zeros((KEPT, len(self.clocks.clock)), np.int64)
        self.ends[1:, L.ids] = self.ends[:-1, L.ids]
        self.ends[0, L.ids] = self.clocks.clock[L.ids]
        self.slots[L.slot] = True

    def _learn(self, lanes: Array, seen: dict[tuple[int, int], tuple[int, Publication]]) -> None:
        for (reader, _), (clock, known) in seen.items():
            for lane in lanes.tolist():
                if lane == reader or self.clocks.of_block(lane)[reader % self.clocks.stride] >= clock:
                    self.clocks.acquire(lane, known.fenced)

    def saw(self, lane: int, known: Publication) -> None:
        """A thread has seen a signal."""
        if known.fenced:
            here = self._seen.setdefault(lane // self.clocks.stride, {})
            here[lane, id(known.root)] = int(self.clocks.clock[lane]), known

    def before(self, lane: int) -> Knowledge:
        """What other threads of the block did before fences that a thread knows they have passed."""
        slot = lane // self.clocks.stride
        if self.ends is None or not self.slots[slot]:
            return {}
        own = self.ends[:, slot * self.clocks.stride : (slot + 1) * self.clocks.stride]
        known = self.clocks.of_block(lane)[: self.clocks.stride]
        row: Array = np.where(own < known, own, 0).max(axis=0)
        row[lane % self.clocks.stride] = 0
        return {int(self.clocks.blocks[slot]): row} if row.any() else {}
