"""Fences that order more than what their own thread did before: `fence.sc` and `membar`.

`fence.sc` and `membar` stand in one order (PTX ISA 8.10.3, 8.9), which has consequences across a barrier. A release
pattern covers what its own thread did, or knew, before its fence. Where every thread of a block has a `fence.sc` before
the block's barrier and one thread then signals by a relaxed atomic, that is not enough: the others' writes are ordered
because of two `fence.sc` one synchronises with the other. Which comes first is not known, but where the second's thread
knows, by a barrier too, of a read that saw the signal, it is the fence before the signal: the other way round causality
would run against what was observed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.order.clocks import Clocks
from tilewright.targets.emu.checks.order.knowledge import Knowledge, Publication
from tilewright.targets.emu.lanes import Array, Lanes

KEPT = 8
"""Fences of each thread that are remembered."""


class Sight:
    """A signal that a thread has seen, and when; `told` says which threads of its block know what the signal tells."""

    __slots__ = ("clock", "signal", "told")

    def __init__(self, clock: int, signal: Publication, threads: int) -> None:
        self.clock = clock
        self.signal = signal
        self.told = np.zeros(threads, bool)


class SequentialFences:
    """The fences of a batch that stand in the one order of the device, and the signals that threads have seen."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.own = FenceClocks(clocks)
        self.slots = np.zeros(clocks.slots, bool)
        """The blocks in which there has been one."""
        self._fences = FenceLog(clocks)
        self._seen: dict[int, dict[tuple[int, int], Sight]] = {}

    def passed(self, L: Lanes) -> None:
        """Threads pass a fence: each comes to know what was fenced before a signal that it knows was seen."""
        for slot in np.unique(L.slot).tolist() if self._seen else ():
            if slot in self._seen:
                self._learn(slot, L.thread[L.slot == slot], self._seen[slot])
        self.own.add(L)
        self._fences.add(L)
        self.slots[L.slot] = True

    def _learn(self, slot: int, threads: Array, seen: dict[tuple[int, int], Sight]) -> None:
        sights = list(seen.values())
        readers = np.array([thread for thread, _ in seen])
        news = self.clocks.between(slot, threads, readers) >= np.array([sight.clock for sight in sights])
        news |= threads[:, None] == readers
        news &= ~np.stack([sight.told for sight in sights])[:, threads].T
        signals: dict[int, list[int]] = {}
        for column in np.flatnonzero(news.any(axis=0)).tolist():
            sights[column].told[threads] |= news[:, column]
            signals.setdefault(id(sights[column].signal), []).append(column)
        for columns in signals.values():
            who = threads[news[:, columns].any(axis=1)] + slot * self.clocks.stride
            self.clocks.acquire(who.tolist(), sights[columns[0]].signal.fenced)

    def saw(self, lanes: list[int], signal: Publication) -> None:
        """Threads have seen a signal."""
        stride, root = self.clocks.stride, id(signal.root)
        for lane in lanes if signal.fenced else ():
            slot, thread = divmod(lane, stride)
            self._seen.setdefault(slot, {})[thread, root] = Sight(int(self.clocks.clock[lane]), signal, stride)

    def before(self, lane: int) -> Knowledge:
        """What is ordered before fences of its block that a thread knows have been passed, its own among them."""
        slot, thread = divmod(lane, self.clocks.stride)
        if not self.slots[slot]:
            return {}
        own = self.own.of(slice(slot * self.clocks.stride, (slot + 1) * self.clocks.stride))
        known = self.clocks.of_block(lane)[: self.clocks.stride]
        known[thread] = self.clocks.clock[lane]
        row: Array = np.where(own < known, own, 0).max(axis=0)
        for members, passed, before in self._fences.of(slot):
            if (passed < known[members]).any():
                row = np.maximum(row, before)
        return {int(self.clocks.blocks[slot]): row} if row.any() else {}


class FenceLog:
    """The last fences of each block: the threads, the clocks that they ended, and what all of these threads knew."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._of: dict[int, deque[tuple[Array, Array, Array]]] = {}

    def add(self, L: Lanes) -> None:
        """Threads pass a fence."""
        for slot in np.unique(L.slot).tolist():
            here = L.slot == slot
            threads = L.thread[here]
            event = threads, self.clocks.clock[L.ids[here]], self.clocks.common(slot, threads)
            self._of.setdefault(slot, deque(maxlen=2 * KEPT)).append(event)

    def of(self, slot: int) -> Iterable[tuple[Array, Array, Array]]:
        """Those of a block."""
        return self._of.get(slot, ())


class FenceClocks:
    """The clocks that the last fences of each thread of a batch ended, the latest first."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.ends: Array | None = None

    def add(self, L: Lanes) -> None:
        """Threads pass a fence."""
        if self.ends is None:
            self.ends = np.zeros((KEPT, len(self.clocks.clock)), np.int64)
        self.ends[1:, L.ids] = self.ends[:-1, L.ids]
        self.ends[0, L.ids] = self.clocks.clock[L.ids]

    def of(self, lanes: Any) -> Array:
        """Those of some lanes: a column a lane."""
        return np.zeros((1, 1), np.int64) if self.ends is None else np.asarray(self.ends[:, lanes])
