"""Races: accesses of two threads to the same bytes, at least one a write, that nothing orders."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.history import Conflict, History
from tilewright.targets.emu.checks.history.conflict import ended_in_use
from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order.epochs import block_of, is_async
from tilewright.targets.emu.checks.order.strength import WEAK
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.lanes import Array, Lanes


class Races(Observer):
    """Reports conflicts of threads, and blocks that end while others use their shared memory."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._history = batch.service(History)
        self._history.detector.judges.append(self._judge)
        if batch.shape.cluster_blocks == 1:
            self.ignored = frozenset(("threads_ended",))

    def _judge(self, conflict: Conflict) -> None:
        if not conflict.asynchronous:
            self.batch.report(conflict.finding(self.batch, self._history.order))

    def threads_ended(self, L: Lanes, cohort: Cohort) -> None:
        """Other blocks must be done with the shared memory of a block that ends."""
        shadow, batch = self._history.shared, self.batch
        for slot in batch.ended(L):
            lane = int(L.ids[L.slot == slot][-1])
            at = slice(slot * batch.shared.stride >> shadow.granule, (slot + 1) * batch.shared.stride >> shadow.granule)
            words = shadow.writes[at]
            self._still_used(lane, np.flatnonzero(words) + at.start, words[words != 0])
            for accesses in (shadow.readers, shadow.strong_readers, shadow.strong_writers):
                if accesses.marks is None:
                    continue
                marks = accesses.marks[at]
                used = np.flatnonzero((block_of(marks) != batch.identities[slot]) & (marks != 0))
                cells, epochs, times = used + at.start, marks[used], None
                if accesses.log and len(used):
                    cells, epochs, times = accesses.of(cells)
                self._still_used(lane, cells, epochs, times if accesses is shadow.strong_writers else None)

    def _still_used(self, lane: int, cells: Array, epochs: Array, times: Array | None = None) -> None:
        """Report an access by another block that is not ordered before the end of the lane's block.

        `times` are those of strong writes, None for other accesses.
        """
        history, own = self._history, self.batch.identities[lane // self.batch.shape.stride]
        at = np.flatnonzero((block_of(epochs) != own) & ~is_async(epochs))
        at = at[history.order.unordered(np.full(len(at), lane), epochs[at], WEAK, True)]
        if len(at) and times is not None:
            lanes = np.full(len(at), lane)
            at = at[~history.detector.search.observed(history.shared, lanes, cells[at], times[at], True)]
        if len(at):
            hint = "keep the block alive by a cluster barrier before its end"
            self.batch.report(ended_in_use(self.batch, lane, epochs[at[0]], hint))
