"""What threads know of blocks other than their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.targets.emu.checks.members import Members
from tilewright.targets.emu.checks.order.knowledge import Knowledge, shared_only, together
from tilewright.targets.emu.lanes import Array


class OtherBlocks:
    """Knowledge of other blocks: `of_lane` of single lanes, `of_block` what all threads of a slot's block know."""

    def __init__(self, stride: int, members: Members | None = None) -> None:
        self._stride, self._members = stride, members
        self.of_lane: dict[int, Knowledge] = {}
        self.of_block: dict[int, Knowledge] = {}

    def of_thread(self, lane: int) -> Knowledge:
        """All that a lane knows."""
        return together(self.of_lane.get(lane, {}), self.of_block.get(lane // self._stride, {}))

    def of_all(self) -> Knowledge:
        """What any lane knows."""
        known: Knowledge = {}
        for some in (*self.of_block.values(), *self.of_lane.values()):
            known = together(known, some)
        return known

    def of_any(self, lanes: Array) -> Knowledge:
        """What any of these lanes knows beyond what its whole block does."""
        known: Knowledge = {}
        for lane in lanes if self.of_lane else ():
            known = together(known, self.of_lane.get(int(lane), {}))
        return known

    def tell(self, lanes: Sequence[int], known: Knowledge) -> None:
        """Lanes come to know something."""
        for lane in lanes if known else ():
            self.of_lane[lane] = together(self.of_lane[lane], known) if lane in self.of_lane else known

    def tell_block(self, slot: int, known: Knowledge) -> None:
        """All threads of a block come to know something."""
        self.of_block[slot] = together(self.of_block.get(slot, {}), known)

    def pool(self, lanes: Array) -> None:
        """Lanes have met: what any of them knows, all know."""
        known = self.of_any(lanes)
        if known:
            self.of_lane.update(dict.fromkeys(lanes.tolist(), known))

    def share(self, slot: int) -> None:
        """All threads of a block have met: what any of them knows is kept once, or each lane would have a copy."""
        for lane in range(slot * self._stride, (slot + 1) * self._stride):
            known = self.of_lane.pop(lane, None)
            if known:
                self.tell_block(slot, known)

    def knows(
        self, lanes: Array, block: Array, thread: Array, clock: Array, asynchronous: Array, shared: bool
    ) -> Array:  # fmt: skip
        """Whether accesses of other blocks happen before what the lanes do now; of shared memory (`shared`) also by
        what counts only there."""
        known = np.zeros(len(lanes), bool)
        column = np.where(asynchronous, thread + self._stride, thread)
        slots = lanes // self._stride
        sources: list[tuple[Array, int, dict[int, Knowledge]]] = []
        sources += [(slots, int(slot), self.of_block) for slot in np.unique(slots)] if self.of_block else []
        sources += [(lanes, int(lane), self.of_lane) for lane in np.unique(lanes)] if self.of_lane else []
        for owner, number, table in sources:
            source = table.get(number)
            at = np.flatnonzero(~known & (owner == number)) if source else ()
            for other in np.unique(block[at]).tolist() if len(at) else ():
                assert source is not None
                if self._members is not None:
                    if self._members.covered(other, source):
                        known[at[block[at] == other]] = True
                        continue
                for key in (other, shared_only(other)) if shared else (other,):
                    row = source.get(key)
                    if row is None:
                        continue
                    here = at[(block[at] == other) & (column[at] < len(row))]
                    known[here] |= row[column[here]] >= clock[here]
        return known
