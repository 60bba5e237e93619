"""Order by mbarriers: who has waited for a phase knows what those knew that arrived in it, and what its copies did."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order.epochs import agent_epoch
from tilewright.targets.emu.checks.order.knowledge import Knowledge, Publication, joined_rows, narrowed, together
from tilewright.targets.emu.checks.order.memory import MemoryOrder
from tilewright.targets.emu.checks.order.state import OrderState
from tilewright.targets.emu.checks.order.strength import CLUSTER, CTA
from tilewright.targets.emu.lanes import Array, Lanes


class MbarrierOrder(Observer):
    """What each mbarrier, given by its word, carries from those that arrive to those that wait.

    The copies that an mbarrier counts are one agent, whose clock counts copies.
    """

    def __init__(self, batch: Batch, state: OrderState, memory: MemoryOrder) -> None:
        super().__init__(batch)
        self.clocks, self._levels, self._memory = state.clocks, state.levels, memory
        self._phases: dict[int, Array] = {}
        self._ended: dict[int, Array] = {}
        self._arrived_remote: dict[int, Knowledge] = {}
        self._remote: dict[int, Knowledge] = {}
        self._copies: dict[int, int] = {}

    # Copies.

    def copy_epoch(self, site: int, word: int) -> Array:
        """The epoch of one more copy that an mbarrier counts: who waits for the phase is ordered behind it."""
        slot = self.slot_of(word)
        column = self.clocks.agent(slot, word)
        clock = self._copies[word] = self._copies.get(word, 0) + 1
        row = np.zeros(self.clocks.detail(slot).shape[1], np.int64)
        row[column] = clock
        self._bring(word, row)
        return agent_epoch(
            clock, self.batch.identities[slot], column - self.batch.shape.stride, self.batch.first_site + site
        )

    def next_copy_epoch(self, site: int, word: int) -> Array:
        """The epoch that `copy_epoch` will hand out next."""
        slot = self.slot_of(word)
        column = self.clocks.agent(slot, word)
        return agent_epoch(self._copies.get(word, 0) + 1, self.batch.identities[slot], column - self.batch.shape.stride,
                           self.batch.first_site + site)  # fmt: skip

    # Events.

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        releasing = counts > 0
        if relaxed:
            self._arrive_relaxed(L.ids[releasing], index[releasing])
        if relaxed or not releasing.any():
            return
        for word in np.unique(index[releasing]):
            here = releasing & (index == word)
            for slot in np.unique(L.slot[here]):
                self._arrive_from(int(word), int(slot), L.thread[here & (L.slot == slot)])
        self.clocks.tick(L.ids[releasing])

    def mbarrier_completed(self, index: Array) -> None:
        for word in index.tolist():
            row = self._phases.get(word)
            if row is not None:
                self._ended[word] = row.copy()
            if word in self._arrived_remote:
                self._remote[word] = self._arrived_remote[word]

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        if relaxed:
            self._wait_relaxed(L.ids[done], index[done])
            return
        for word in np.unique(index[done]).tolist():
            row, remote = self._ended.get(word), self._remote.get(word)
            here = done & (index == word)
            for slot in np.unique(L.slot[here]).tolist():
                threads = L.thread[here & (L.slot == slot)]
                if row is not None and slot == self.slot_of(word):
                    self.clocks.learn(slot, threads, row)
                for thread in threads.tolist() if remote else ():
                    self.clocks.acquire([slot * self.batch.shape.stride + thread], remote or {})

    def slot_of(self, word: int) -> int:
        """The slot of the block whose shared memory holds a word."""
        return word * 8 // self.batch.shared.stride

    # Arrivals and waits.

    def _arrive_from(self, word: int, slot: int, threads: Array) -> None:
        """What arriving threads know goes to those that will wait: as a row within a block, published beyond it."""
        stride = self.batch.shape.stride
        if slot == self.slot_of(word):
            self._bring(word, self.clocks.rows(slot, threads).max(axis=0))
            known = self.clocks.others.of_any(slot * stride + threads)
            if known:
                self._bring_remote(word, known)
            return
        for lane in (slot * stride + threads).tolist():
            self._bring_remote(word, self.clocks.publish(lane, int(self.clocks.clock[lane])))

    def _arrive_relaxed(self, lanes: Array, words: Array) -> None:
        """A relaxed arrival carries what a fence before it has released, to a cluster at least."""
        fenced_at, fenced_shared = self._memory.fenced_at[CLUSTER], self._memory.fenced_shared
        fenced = (fenced_at[lanes] > 0) | (fenced_shared[lanes] > 0)
        for lane, word in zip(lanes[fenced].tolist(), words[fenced].tolist(), strict=True):
            known = self.clocks.publish(lane, int(fenced_at[lane])) if fenced_at[lane] else {}
            if fenced_shared[lane]:
                known = together(known, narrowed(self.clocks.publish(lane, int(fenced_shared[lane]))))
            self._bring_remote(word, known)

    def _wait_relaxed(self, lanes: Array, words: Array) -> None:
        """Who has seen a phase end by a relaxed wait acquires what it carries with a later fence."""
        for lane, word in zip(lanes.tolist(), words.tolist(), strict=True):
            known = dict(self._remote.get(word, {}))
            slot = lane // self.batch.shape.stride
            if word in self._ended and slot == self.slot_of(word):
                known = together(known, {int(self.batch.identities[slot]): self._ended[word]})
            groups = {self._memory.group(lane, level): known for level in self._levels if level != CTA}
            self._memory.saw_relaxed(lane, ("mbarrier", word), Publication(object(), (id(self.batch), lane), groups))

    def _bring(self, word: int, row: Array) -> None:
        old = self._phases.get(word)
        self._phases[word] = row.copy() if old is None else joined_rows(old, row)

    def _bring_remote(self, word: int, known: Knowledge) -> None:
        self._arrived_remote[word] = together(self._arrived_remote.get(word, {}), known)
