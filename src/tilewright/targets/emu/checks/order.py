"""What orders threads: barriers of blocks, warps and clusters, fences, releases and acquires."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.clocks import Knowledge, Publication, joined_rows, narrowed, together
from tilewright.targets.emu.checks.gathering import Gathering
from tilewright.targets.emu.checks.sites import CLUSTER, CTA, GPU, WEAK, Access
from tilewright.targets.emu.checks.stamps import ONE_TICK, block_of, is_async, site_of
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes


class Order(Gathering):
    """Turns synchronisation into knowledge (`clocks`)."""

    def barrier_passed(self, cohort: Cohort) -> None:
        self.launch.idle = 0
        if self.living < self.slots * self.shape.threads:
            self.check_passed(cohort)
        if not self.clocks.everyone_met():
            self.clocks.block_barrier(np.arange(self.slots))
        self.all_met()

    def whole_barrier(self, slots: Array) -> None:
        self.clocks.block_barrier(slots)
        if len(slots) == self.slots:
            self.all_met()

    def all_met(self) -> None:
        """All blocks of the batch have had a barrier of all their threads."""
        if self.shape.cluster_blocks == 1:
            for crowd in self.shared_shadow.crowds:
                if crowd.log:
                    crowd.clear_log()

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort]) -> None:
        self.launch.idle = 0
        present = np.zeros(len(self.alive), bool)
        for cohort in cohorts:
            present[cohort.L.ids] = True
        self.check_alignment(done, cohorts)
        self.check_done(number, done, present, cohorts)
        stride = self.shape.stride
        whole: list[int] = []
        for slot in np.flatnonzero(done):
            here = present[slot * stride : (slot + 1) * stride]
            extra = self.waiting.pop((number, int(slot)), None)
            self.clocks.tell_foreign(
                np.flatnonzero(here) + slot * stride, self.waiting_foreign.pop((number, int(slot)), {})
            )
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
            place = (number, int(slot))
            self.arriving.setdefault(place, []).append(L.ids[L.slot == slot])
            old = self.waiting.get(place)
            self.waiting[place] = row if old is None else joined_rows(old, row)
            known = self.clocks.foreign_of(L.ids[L.slot == slot])
            if known:
                self.waiting_foreign[place] = together(self.waiting_foreign.get(place, {}), known)
        self.clocks.tick(L.ids)

    def warp_synced(self, L: Lanes, mask: Any) -> None:
        self.check_warp(L, mask)
        self.warp_ordered(L, mask)

    def warp_ordered(self, L: Lanes, mask: Any) -> None:
        """Threads of a mask have met: each knows what the others did before."""
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

    def warp_met(self, L: Lanes, mask: Any) -> None:
        """A vote, shuffle, match, reduction or election: threads that run in lockstep have met there.

        By the PTX ISA these order no memory, which is what `lockstep` checks. Without a memory access since the last
        meeting of the same threads there is nothing to order.
        """
        met = L, self.accesses
        if not self.ordered or self.launch.options.lockstep or (met[0] is self.met[0] and met[1] == self.met[1]):
            return
        self.met = met
        self.warp_ordered(L, mask)

    def threads_ended(self, L: Lanes) -> None:
        """Threads have exited: other blocks must be done with the shared memory of a block that ends."""
        self.note_end(L)
        if self.shape.cluster_blocks == 1:
            return
        shadow = self.shared_shadow
        for slot in np.unique(L.slot):
            if self.block_alive[slot]:
                continue
            lane = int(L.ids[L.slot == slot][-1])
            at = slice(slot * self.sh.stride >> shadow.granule, (slot + 1) * self.sh.stride >> shadow.granule)
            words = shadow.writes[at]
            self._still_used(lane, np.flatnonzero(words) + at.start, words[words != 0], None, "written")
            for crowd in (shadow.readers, shadow.strong_readers, shadow.strong_writers):
                if crowd.marks is not None:
                    marks = crowd.marks[at]
                    used = np.flatnonzero((block_of(marks) != self.blocks[slot]) & (marks != 0))
                    before = "written" if crowd is shadow.strong_writers else "read"
                    cells, words, times = used + at.start, marks[used], None
                    if crowd.log and len(used):
                        cells, words, times = crowd.of(cells)
                    self._still_used(lane, cells, words, times if before == "written" else None, before)

    def _still_used(self, lane: int, cells: Array, words: Array, times: Array | None, before: str) -> None:
        """Report an access by another block that is not ordered before the end of the lane's block.

        `times` are those of strong writes, None for other accesses.
        """
        own = self.blocks[lane // self.shape.stride]
        at = np.flatnonzero((block_of(words) != own) & ~is_async(words))
        at = at[self.unordered(np.full(len(at), lane), words[at], WEAK, True)]
        if len(at) and times is not None:
            at = at[~self.observed(self.shared_shadow, np.full(len(at), lane), cells[at], times[at])]
        if len(at):
            self._ended_early(words[at[0]], lane, before)

    def _ended_early(self, word: Any, lane: int, before: str) -> None:
        values = {"other thread": self.name_of(word, False, before)}
        site = site_of(word)
        if site < len(self.sites):
            values["other access"] = f"line {self.sites[site].line}: {self.sites[site].text}"
        self.report(Fault("race", "Error: Race condition in shared memory access: the block ends while in use",
                          -1, None, values, "keep the block alive by a cluster barrier before its end",
                          Lanes(self.shape, np.array([lane]), self.blocks)))  # fmt: skip

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        for lane in L.ids.tolist() if self.clocks.foreign else ():
            if not relaxed or self.fenced_at[CLUSTER][lane]:
                cluster = lane // self.shape.stride // self.shape.cluster_blocks
                known = together(self.arrived_foreign.get(cluster, {}), self.clocks.foreign.get(lane, {}))
                self.arrived_foreign[cluster] = known
        if relaxed:
            self.arrived[L.ids] = self.fenced_at[CLUSTER][L.ids]
            for lane in L.ids if self.made_known else ():
                self.show_mbarriers(self.made_known.pop(int(lane), []))
        else:
            top = np.zeros(self.slots, np.int64)
            np.maximum.at(top, L.slot, self.clocks.clock[L.ids])
            self.clocks.set_clock(L.ids, top[L.slot], self.clocks.clock)
            self.arrived[L.ids] = top[L.slot]
        self.clocks.tick(L.ids)

    def show_mbarriers(self, offsets: list[int]) -> None:
        """mbarriers that a fence has shown to the cluster: their initialisation precedes all that is done from now."""
        for offset in offsets:
            cells, _ = self.shared_shadow.granules(np.array([offset]), 8)
            self.shared_shadow.writes[cells] &= ONE_TICK - np.uint64(1)

    def cluster_completed(self, clusters: Array) -> None:
        size = self.shape.cluster_blocks
        top = np.where(self.alive, self.arrived, 0).reshape(self.slots, -1).max(axis=1)
        ended = np.maximum(self.clocks.clock, np.repeat(top, self.shape.stride))
        arrived = np.where(self.alive, self.arrived, ended)
        for cluster in clusters:
            slots = np.arange(cluster * size, cluster * size + size)
            known = self.clocks.cluster_meeting(slots, arrived)
            self.met_in_cluster[int(cluster)] = together(known, self.arrived_foreign.pop(int(cluster), {}))

    def cluster_waited(self, cohort: Cohort) -> None:
        L = cohort.L
        for slot in np.unique(L.slot):
            threads = L.thread[L.slot == slot]
            known = self.met_in_cluster[int(slot) // self.shape.cluster_blocks]
            self.clocks.cluster_wait(int(slot), threads, len(threads) == self.block_alive[slot], known)

    # Fences, and order through memory.

    def fenced(self, L: Lanes, scope: str, kind: str) -> None:
        level = {"cta": CTA, "cluster": CLUSTER}.get(scope, GPU)
        if kind == "async":
            self.proxies.passed(L)
            self.clocks.tick(L.ids)
        if kind == "mbarrier_init":
            for lane in L.ids:
                self.made_known.setdefault(int(lane), []).extend(self.made.pop(int(lane), ()))
        if kind == "shared acquire":
            self.acquire_pending(L, level, True)
        if kind == "shared release":
            self.fenced_shared[L.ids] = self.clocks.clock[L.ids]
            self.clocks.tick(L.ids)
        if kind == "sc" and level == GPU:
            self.sequential.passed(L)
        if kind in ("memory", "sc", "acquire"):
            self.acquire_pending(L, level)
            for lane in L.ids.tolist() if level == GPU and self.pending else ():
                self.pending.pop(lane, None)
        if kind in ("memory", "sc", "release"):
            self.fenced_at[: level + 1, L.ids] = self.clocks.clock[L.ids]
            self.clocks.tick(L.ids)

    def acquire_pending(self, L: Lanes, level: int, shared: bool = False) -> None:
        """Threads come to know, by a fence, what the values that they have read carry."""
        readers: dict[int, tuple[Publication, list[int]]] = {}
        for lane in L.ids.tolist() if self.pending else ():
            for seen in self.pending.get(lane, {}).values():
                readers.setdefault(id(seen), (seen, []))[1].append(lane)
        for seen, lanes in readers.values():
            self.acquire(lanes, seen, level, shared)

    def through_memory(self, site: int, L: Lanes, space: str, addr: Any, reads: bool, writes: Any) -> None:
        """Strong accesses carry what their threads have released to those that acquire; `writes`: whether, or whose."""
        access = self.access(site)
        places = self.launch.published
        fenced = (self.fenced_at[self.levels[0]][L.ids] > 0) | (self.fenced_shared[L.ids] > 0)
        releasing = (fenced | access.releases | self.sequential.slots[L.slot]) & writes
        if not releasing.any() and not places:
            return
        shared = space == "shared"
        addresses = np.broadcast_to(self.sh.index(site, L, addr, 0) if shared else addr, (L.n,))
        writing = np.broadcast_to(writes, (L.n,))
        seen: Publication | None = None
        readers: list[int] = []
        for address, thread, gives, wrote in zip(
            addresses.tolist(), L.ids.tolist(), releasing.tolist(), writing.tolist(), strict=True
        ):
            key: Any = (id(self), address) if shared else address
            known = places.get(key)
            if reads and known:
                if known is not seen:
                    self.saw(readers, seen, access)
                    seen, readers = known, []
                readers.append(thread)
            if gives:
                self.saw(readers, seen, access)  # before it writes, since a thread passes on what it has acquired
                readers = []
                places[key] = self.published(thread, access, known if access.atomic else None)
            elif wrote and known and not access.atomic and known.publisher != (id(self), thread):
                del places[key]  # another thread's store ends the release pattern
        self.saw(readers, seen, access)
        if access.releases and np.count_nonzero(writing):
            self.clocks.tick(L.ids[writing])

    def group(self, lane: int, level: int) -> tuple[int, int]:
        """The threads that a scope includes for a lane."""
        block = self.blocks[lane // self.shape.stride]
        return level, 0 if level == GPU else int(block if level == CTA else self.cluster_of(block))

    def saw(self, lanes: list[int], known: Publication | None, access: Access) -> None:
        """Threads have read a value: they acquire now, or with a later fence."""
        if known is None or not lanes:
            return
        if access.acquires:
            self.acquire(lanes, known, access.scope)
        if access.scope == GPU:
            self.sequential.saw(lanes, known)
        if not access.acquires or access.scope < GPU:
            root = id(known.root)
            for lane in lanes:
                self.pending.setdefault(lane, {})[root] = known

    def acquire(self, lanes: list[int], seen: Publication, scope: int, shared: bool = False) -> None:
        """Threads come to know what was released to groups that their own scope includes, or of that what counts for
        shared memory."""
        stride = self.shape.stride
        for _, members in groupby(lanes, lambda lane: lane // stride):
            some = list(members)
            for level in self.levels:
                known = seen.groups.get(self.group(some[0], level)) if level <= scope else None
                if known:
                    self.clocks.acquire(some, narrowed(known) if shared else known)

    def published(self, lane: int, access: Access, before: Publication | None) -> Publication:
        """What a value just written carries; a read-modify-write adds to what the value before it did."""
        now = int(self.clocks.clock[lane])
        groups: dict[tuple[int, int], Knowledge] = dict(before.groups) if before is not None else {}
        made: dict[int, Knowledge] = {}
        for level in self.levels:
            clock = now if access.releases and access.scope >= level else int(self.fenced_at[level][lane])
            if not clock:
                continue
            if clock not in made:
                made[clock] = self.clocks.publish(lane, clock)
            group = self.group(lane, level)
            groups[group] = together(groups[group], made[clock]) if group in groups else made[clock]
        if self.fenced_shared[lane]:
            known = narrowed(self.clocks.publish(lane, int(self.fenced_shared[lane])))
            group = self.group(lane, CLUSTER)
            groups[group] = together(groups.get(group, {}), known)
        fenced = self.sequential.before(lane) if access.scope == GPU else {}
        if before is not None:
            return Publication(before.root, before.publisher, groups, together(before.fenced, fenced))
        return Publication(object(), (id(self), lane), groups, fenced)
