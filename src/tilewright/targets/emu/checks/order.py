"""What orders threads: barriers of blocks, warps and clusters, fences, releases and acquires."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.clocks import Knowledge, joined_rows, merge
from tilewright.targets.emu.checks.races import Races
from tilewright.targets.emu.checks.shadow import (
    EVERY,
    MAX_CLOCK,
    block_of,
    is_async,
    site_of,
    thread_of,
)
from tilewright.targets.emu.checks.sites import Access
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes


class Order(Races):
    """Turns synchronisation into knowledge (`clocks`)."""

    def barrier_passed(self, cohort: Cohort) -> None:
        self.launch.idle = 0
        self.whole_barrier(np.arange(self.slots))

    def whole_barrier(self, slots: Array) -> None:
        if self.clocks.highest() >= MAX_CLOCK:
            raise Fault("limit", "The race check has run out of clock", hint="run with checks=False")
        self.clocks.block_barrier(slots)
        if len(slots) == self.slots:
            self.shared_shadow.log.clear()

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort]) -> None:
        self.launch.idle = 0
        present = np.zeros(len(self.alive), bool)
        for cohort in cohorts:
            present[cohort.L.ids] = True
        stride = self.shape.stride
        whole: list[int] = []
        for slot in np.flatnonzero(done):
            here = present[slot * stride : (slot + 1) * stride]
            extra = self.waiting.pop((number, int(slot)), None)
            if extra is None and np.array_equal(here, self.alive[slot * stride : (slot + 1) * stride]):
                whole.append(int(slot))
            else:
                self.clocks.group_barrier(int(slot), np.flatnonzero(here), extra)
        if whole:
            self.whole_barrier(np.array(whole))

    def barrier_arrived(self, L: Lanes, number: int) -> None:
        for slot in np.unique(L.slot):
            threads = L.thread[L.slot == slot]
            row = self.clocks.rows(int(slot), threads).max(axis=0)
            old = self.waiting.get((number, int(slot)))
            self.waiting[number, int(slot)] = row if old is None else joined_rows(old, row)
        self.clocks.tick(L.ids)

    def warp_synced(self, L: Lanes, mask: Any) -> None:
        members = mask & L.present
        alive = self.alive_masks()[L.warp]
        everyone = members == alive
        if everyone.all():
            self.clocks.warp_barrier(np.unique(L.warp))
            return
        masks = np.broadcast_to(members, (L.n,))
        for warp in np.unique(L.warp):
            here = L.warp == warp
            for group in np.unique(masks[here]):
                threads = L.thread[here & (masks == group)]
                self.clocks.group_barrier(int(L.slot[here][0]), threads, None)

    def threads_ended(self, L: Lanes) -> None:
        """Threads have exited: other blocks must be done with the shared memory of a block that ends."""
        if self.shape.cluster_blocks == 1:
            return
        shadow = self.shared_shadow
        for slot in np.unique(L.slot):
            if self.block_alive[slot]:
                continue
            lane = int(L.ids[L.slot == slot][-1])
            at = slice(slot * self.sh.stride >> shadow.granule, (slot + 1) * self.sh.stride >> shadow.granule)
            for words, before in ((shadow.writes[at], "written"), (shadow.reads[at], "read")):
                found = np.flatnonzero((words != 0) & (block_of(words) != self.blocks[slot]) & ~is_async(words))
                bad = found[self.unordered(np.full(len(found), lane), words[found], -1, before)]
                if len(bad) and before == "read" and self.ordered:
                    bad = bad[self.read_from_outside(lane, words[bad], bad + at.start)]
                if len(bad):
                    self._ended_early(words[bad[0]], lane, before)

    def read_from_outside(self, lane: int, words: Array, cells: Array) -> Array:
        """Of reads not ordered before a block's end, the true ones: where several read, the log has them one by one."""
        several = thread_of(words) == EVERY
        logged, stamps = self.shared_shadow.readers(np.unique(cells[several]))
        outside = block_of(stamps) != self.blocks[lane // self.shape.stride]
        bad = outside & self.unordered(np.full(len(stamps), lane), stamps, -1, "log")
        return np.asarray(~several | np.isin(cells, logged[bad]))

    def _ended_early(self, word: Any, lane: int, before: str) -> None:
        values = {"other thread": self.name_of(word, False, before)}
        site = site_of(word)
        if site < len(self.sites):
            values["other access"] = f"line {self.sites[site].line}: {self.sites[site].text}"
        self.report(Fault("race", "Error: Race condition in shared memory access: the block ends while in use",
                          -1, None, values, "keep the block alive by a cluster barrier before its end"))  # fmt: skip

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        self.arrived[L.ids] = self.clocks.clock[L.ids]
        self.clocks.tick(L.ids)

    def cluster_completed(self, clusters: Array) -> None:
        size = self.shape.cluster_blocks
        for cluster in clusters:
            slots = np.arange(cluster * size, cluster * size + size)
            self.met_in_cluster[int(cluster)] = self.clocks.cluster_meeting(slots, self.arrived)

    def cluster_waited(self, cohort: Cohort) -> None:
        L = cohort.L
        for slot in np.unique(L.slot):
            threads = L.thread[L.slot == slot]
            known = self.met_in_cluster[int(slot) // self.shape.cluster_blocks]
            self.clocks.cluster_wait(int(slot), threads, len(threads) == self.block_alive[slot], known)

    # Fences, and order through memory.

    def fenced(self, L: Lanes, scope: str, kind: str) -> None:
        if kind == "proxy":
            self.proxied[L.ids] = self.clocks.clock[L.ids]
            np.maximum.at(self.proxied_block, L.slot, self.clocks.known[L.slot])
            self.clocks.tick(L.ids)
        if kind != "memory":
            return
        for lane in L.ids:
            for known in self.pending.pop(int(lane), []):
                self.clocks.acquire(int(lane), known)
        self.fenced_at[L.ids] = self.clocks.clock[L.ids]
        self.clocks.tick(L.ids)

    def through_memory(self, site: int, L: Lanes, space: str, addr: Any, reads: bool, writes: bool) -> None:
        """Strong accesses carry what their threads have released to those that acquire."""
        access = self.access(site)
        addresses = np.broadcast_to(addr, (L.n,))
        places = self.launch.published
        releasing = writes & (access.releases | (self.fenced_at[L.ids] > 0))
        if not releasing.any() and not places:
            return
        for lane in range(L.n):
            key: Any = int(addresses[lane])
            if space == "shared":
                key = (id(self), int(L.slot[lane]), key)
            known = places.get(key)
            if reads and known:
                self.saw(int(L.ids[lane]), known, access)
            if releasing[lane]:
                self.release(int(L.ids[lane]), key, access, known if access.atomic else None)
            elif writes and known and not access.atomic and self.launch.publishers[key] != (id(self), int(L.ids[lane])):
                del places[key]  # another thread's store ends the release pattern

    def saw(self, lane: int, known: Knowledge, access: Access) -> None:
        if access.acquires:
            self.clocks.acquire(lane, known)
            return
        waiting = self.pending.setdefault(lane, [])
        if not any(k is known for k in waiting):
            waiting.append(known)

    def release(self, lane: int, key: Any, access: Access, before: Knowledge | None) -> None:
        clock = int(self.clocks.clock[lane]) if access.releases else int(self.fenced_at[lane])
        published = self.clocks.publish(lane, clock)
        if before is not None:
            # A read-modify-write continues the release sequence of those before it.
            merge(before, published)
        else:
            self.launch.published[key] = published
            self.launch.publishers[key] = (id(self), lane)
        if access.releases:
            self.clocks.tick(np.array([lane]))
