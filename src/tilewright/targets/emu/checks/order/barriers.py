"""Order by threads that meet: barriers of blocks and warps, lockstep, barriers of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.lazy import cached_property
from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order.knowledge import Knowledge, joined_rows, together
from tilewright.targets.emu.checks.order.memory import MemoryOrder
from tilewright.targets.emu.checks.order.state import OrderState
from tilewright.targets.emu.checks.order.strength import CLUSTER
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.lanes import Array, Lanes


class BarrierOrder(Observer):
    """Turns meetings into knowledge."""

    def __init__(self, batch: Batch, state: OrderState, memory: MemoryOrder) -> None:
        super().__init__(batch)
        self.clocks, self._state, self._memory = state.clocks, state, memory
        self._waiting: dict[tuple[int, int], Array] = {}
        self._waiting_others: dict[tuple[int, int], Knowledge] = {}
        self._arrived_others: dict[int, Knowledge] = {}
        self._met_in_cluster: dict[int, Knowledge] = {}
        self._met: tuple[Lanes | None, int] = None, 0
        """The threads that last met at a warp-wide instruction, and the epochs handed out before."""
        if batch.lockstep or state.only_barriers:
            self.ignored = frozenset(("warp_met",))

    @cached_property
    def _arrived(self) -> Array:
        """The clock at which each lane has arrived at its cluster's barrier."""
        return np.zeros(len(self.batch.alive), np.int64)

    # Blocks.

    def barrier_passed(self, cohort: Cohort) -> None:
        if not self.clocks.everyone_met():
            self.clocks.block_barrier(np.arange(self.batch.slots))
        self._state.rounds += 1

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort], counted: Array) -> None:
        alive, stride = self.batch.alive, self.batch.shape.stride
        present = present_in(cohorts, len(alive))
        whole: list[int] = []
        for slot in np.flatnonzero(done).tolist():
            here = present[slot * stride : (slot + 1) * stride]
            extra = self._waiting.pop((number, slot), None)
            lanes = (np.flatnonzero(here) + slot * stride).tolist()
            self.clocks.others.tell(lanes, self._waiting_others.pop((number, slot), {}))
            if extra is None and np.array_equal(here, alive[slot * stride : (slot + 1) * stride]):
                whole.append(slot)
            else:
                self.clocks.group_barrier(slot, np.flatnonzero(here), extra)
        if whole:
            self.clocks.block_barrier(np.array(whole))
            self._state.rounds += len(whole) == self.batch.slots

    def barrier_arrived(self, L: Lanes, number: int) -> None:
        for slot in np.unique(L.slot):
            row = self.clocks.rows(int(slot), L.thread[L.slot == slot]).max(axis=0)
            place = (number, int(slot))
            old = self._waiting.get(place)
            self._waiting[place] = row if old is None else joined_rows(old, row)
            known = self.clocks.others.of_any(L.ids[L.slot == slot])
            if known:
                self._waiting_others[place] = together(self._waiting_others.get(place, {}), known)
        self.clocks.tick(L.ids)

    # Warps.

    def warp_synced(self, L: Lanes, mask: Any, cohort: Cohort) -> None:
        self._warp_ordered(L, mask)

    def _warp_ordered(self, L: Lanes, mask: Any) -> None:
        """Threads of a mask have met: each knows what the others did before."""
        members = mask & L.present
        everyone = members == self.batch.alive_masks()[L.warp]
        if everyone.all():
            self.clocks.warp_barrier(np.unique(L.warp))
            return
        masks = np.broadcast_to(members, (L.n,))
        for warp in np.unique(L.warp):
            here = L.warp == warp
            for group in np.unique(masks[here]):
                threads = L.thread[here & (masks == group)]
                self.clocks.group_barrier(int(L.slot[here][0]), threads, None)

    def warp_met(self, L: Lanes, mask: Any) -> None:
        """By the PTX ISA a vote or shuffle orders no memory, which is what `lockstep` checks.

        Without a memory access since the last meeting of the same threads there is nothing to order.
        """
        met = L, self._state.handed_out
        if met[0] is not self._met[0] or met[1] != self._met[1]:
            self._met = met
            self._warp_ordered(L, mask)

    # Clusters.

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        clocks, fenced = self.clocks, self._memory.fenced_at[CLUSTER]
        for lane in L.ids.tolist() if clocks.others.of_lane else ():
            if not relaxed or fenced[lane]:
                cluster = lane // self.batch.shape.stride // self.batch.shape.cluster_blocks
                known = together(self._arrived_others.get(cluster, {}), clocks.others.of_lane.get(lane, {}))
                self._arrived_others[cluster] = known
        if relaxed:
            self._arrived[L.ids] = fenced[L.ids]
        else:
            top = np.zeros(self.batch.slots, np.int64)
            np.maximum.at(top, L.slot, clocks.clock[L.ids])
            clocks.set_clock(L.ids, top[L.slot], clocks.clock)
            self._arrived[L.ids] = top[L.slot]
        clocks.tick(L.ids)

    def cluster_completed(self, clusters: Array) -> None:
        size, alive = self.batch.shape.cluster_blocks, self.batch.alive
        top = np.where(alive, self._arrived, 0).reshape(self.batch.slots, -1).max(axis=1)
        # Threads that have ended did all that they did before the others meet.
        ended = np.maximum(self.clocks.clock, np.repeat(top, self.batch.shape.stride))
        arrived = np.where(alive, self._arrived, ended)
        for cluster in clusters:
            slots = np.arange(cluster * size, cluster * size + size)
            known = self.clocks.cluster_meeting(slots, arrived)
            self._met_in_cluster[int(cluster)] = together(known, self._arrived_others.pop(int(cluster), {}))

    def cluster_waited(self, L: Lanes) -> None:
        living = self.batch.alive.reshape(self.batch.slots, -1).sum(axis=1)
        for slot in np.unique(L.slot):
            threads = L.thread[L.slot == slot]
            known = self._met_in_cluster[int(slot) // self.batch.shape.cluster_blocks]
            self.clocks.cluster_wait(int(slot), threads, len(threads) == living[slot], known)


def present_in(cohorts: list[Cohort], lanes: int) -> Array:
    """Which of a batch's lanes are in cohorts."""
    present = np.zeros(lanes, bool)
    for cohort in cohorts:
        present[cohort.L.ids] = True
    return present
