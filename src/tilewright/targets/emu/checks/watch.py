"""A machine that watches: the events of `access.Memories`, turned into clocks, stamps and findings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.clocks import Clocks, Knowledge, merge
from tilewright.targets.emu.checks.shadow import (
    BLOCK_FIELD,
    CLOCK_SHIFT,
    EVERY,
    EVERY_BITS,
    MANY,
    MAX_CLOCK,
    SITE_MASK,
    WHO,
    Shadow,
    agent_stamp,
    block_of,
    clock_of,
    is_async,
    site_of,
    thread_of,
)
from tilewright.targets.emu.checks.sites import CLUSTER, CTA, WEAK, Access, access_of
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault, source_location
from tilewright.targets.emu.lanes import Array, Lanes, unflatten
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.tensormap import TensorMap

FALSE = np.bool_(False)


class Event:
    """One instruction's access to one memory: granules (`each` of them for every lane), stamps, floor."""

    def __init__(
        self, machine: Any, shadow: Shadow, site: int, L: Lanes, cells: Array, each: int, space: str, base: int
    ) -> None:
        self.shadow, self.site, self.L = shadow, site, L
        self.cells, self.each, self.space, self.base = cells, each, space, base
        mine = machine.stamps(L, site)
        self.mine = np.repeat(mine, each) if each > 1 else mine
        self._known = machine.clocks.known
        self._slots = machine.slots

    @cached_property
    def floor(self) -> Any:
        """The lowest stamps that the last barrier of each lane's block has not ordered."""
        if self._slots == 1:
            return np.uint64((int(self._known[0]) + 1) << CLOCK_SHIFT)
        low = (self._known[self.L.slot] + 1).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
        return np.repeat(low, self.each) if self.each > 1 else low


class Wgmma:
    """Matrix products in flight, by warpgroup: registers with their group, groups committed, fences."""

    def __init__(self) -> None:
        self.flying: dict[int, dict[int, int]] = {}
        self.committed: dict[int, int] = {}
        self.fenced: set[int] = set()


class WatchingMachine(Machine):
    """Runs a batch and finds its mistakes."""

    def __init__(self, launch: Any, blocks: Array) -> None:
        super().__init__(launch, blocks)
        self.clocks = Clocks(self.slots, self.shape.stride, blocks)
        self.shared_shadow = Shadow(len(self.sh.bytes))
        self.unwritten: Any = FALSE
        self.sites: list[Instruction] = launch.program.sites
        self.attributes: dict[int, Access] = launch.attributes
        self.ordered = launch.synchronises
        self.groups = np.zeros(len(self.alive), np.int64)
        self.phases: dict[int, Array] = {}
        self.ended: dict[int, Array] = {}
        self.waiting: dict[tuple[int, int], Array] = {}
        self.arrived = np.zeros(len(self.alive), np.int64)
        self.met_in_cluster: dict[int, Knowledge] = {}
        self.fenced_at = np.zeros(len(self.alive), np.int64)
        self.pending: dict[int, list[Knowledge]] = {}
        self.proxied = np.zeros(len(self.alive), np.int64)
        self.proxied_block = np.zeros(self.slots, np.int64)
        self.wgmma = Wgmma()

    def access(self, site: int) -> Access:
        """The attributes of a site, worked out once."""
        if site < 0:
            return WEAK
        found = self.attributes.get(site)
        if found is None:
            found = self.attributes[site] = access_of(self.sites[site])
        return found

    # Findings.

    def report(self, fault: Fault) -> None:
        """Raise a finding, or keep it and go on."""
        if self.launch.options.checks != "collect":
            raise fault
        cohort = self.current
        assert cohort is not None
        site = self.sites[fault.site] if fault.site >= 0 else None
        self.launch.collect(fault, self.error(fault, cohort, site))

    def tolerant(self, run: Callable[..., Any], L: Lanes, addr: Any, *rest: Any) -> Any:
        """Run an access; when findings are collected, the threads at fault are left out (None) and it goes on."""
        try:
            return run(L, addr, *rest)
        except Fault as fault:
            if fault.kind not in ("bounds", "misaligned", "readonly"):
                raise
            self.report(fault)
            bad = np.arange(L.n) if fault.lanes is None else fault.lanes
        good = np.setdiff1d(np.arange(L.n), bad)
        if not len(good):
            return None
        part = addr[good] if addr.__class__ is np.ndarray else addr
        others = [x[good] if x.__class__ is np.ndarray and len(x) == L.n else x for x in rest]
        got = self.tolerant(run, L.subset(good), part, *others)
        if got is None:
            return None
        out = np.zeros((L.n, *np.shape(got)[1:]), got.dtype)
        out[good] = got
        return out

    # Watched loads and stores.

    def g_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        def run(L: Lanes, addr: Any) -> Any:
            value = self.g.load(site, addr, dtype, shift, lanes)
            self.note_global(site, L, addr, 1 << shift, False, None)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "global", addr, True, False)
            return value

        self.unwritten = FALSE
        return self.or_zero(self.tolerant(run, L, addr), L, dtype, lanes)

    def or_zero(self, value: Any, L: Lanes, dtype: Any, lanes: int) -> Any:
        return np.zeros((L.n, lanes) if lanes > 1 else L.n, dtype) if value is None else value

    def g_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        def run(L: Lanes, addr: Any, value: Any) -> None:
            # Resolve first, so that an access out of bounds is found before anything is noted.
            self.g.resolve(site, np.atleast_1d(addr), dtype, shift, lanes, True)
            self.note_global(site, L, addr, 1 << shift, True, (value, dtype, lanes))
            self.g.store(site, addr, value, dtype, shift, lanes)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "global", addr, False, True)

        self.tolerant(run, L, addr, value)

    def s_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        def run(L: Lanes, addr: Any) -> Any:
            index = self.sh.index(site, L, addr, shift)
            self.unwritten = self.note_shared(site, L, index << shift, 1 << shift, False, None)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "shared", addr, True, False)
            view = self.sh.view(dtype, lanes)
            return view.take(index, 0) if index.__class__ is np.ndarray else view[index]

        self.unwritten = FALSE
        return self.or_zero(self.tolerant(run, L, addr), L, dtype, lanes)

    def s_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        def run(L: Lanes, addr: Any, value: Any) -> None:
            index = self.sh.index(site, L, addr, shift)
            self.note_shared(site, L, index << shift, 1 << shift, True, (value, dtype, lanes))
            self.sh.store(site, L, addr, value, dtype, shift, lanes)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "shared", addr, False, True)

        self.tolerant(run, L, addr, value)

    def l_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        value = self.lo.load(site, L, addr, dtype, shift, lanes)
        missing = self.lo.unwritten(L, addr, shift)
        self.unwritten = missing if missing.any() else FALSE
        return value

    def poisoned(self, site: int, L: Lanes, mark: Any, what: str) -> None:
        """A value that depends on memory never written reaches an address, a branch or global memory."""
        bad = np.flatnonzero(mark) if mark.__class__ is np.ndarray else np.arange(L.n if mark else 0)
        if not len(bad):
            return
        self.report(Fault("uninitialised", f"A value that was never written is used as {_article(what)}", site, bad,
                          hint="it comes from shared or local memory that no thread has written"))  # fmt: skip

    # Races.

    def stamps(self, L: Lanes, site: int) -> Array:
        """The stamps of what lanes do now."""
        stamps = self.clocks.stamp
        now = stamps if L.n == len(stamps) else stamps.take(L.ids)
        marked: Array = now | np.uint64(site & SITE_MASK)
        return marked

    def note_shared(self, site: int, L: Lanes, offset: Any, size: int, write: bool, data: Any) -> Any:
        """Note an access to shared memory; for reads, which threads found nothing written."""
        if offset.__class__ is not np.ndarray or offset.ndim == 0:
            offset = np.full(L.n, offset)
        cells, each = self.shared_shadow.granules(offset, size)
        event = Event(self, self.shared_shadow, site, L, cells, each, "shared", 0)
        if write:
            self.wrote(event, data, offset)
            return FALSE
        words = self.read(event)
        if words is None:
            return np.ones(L.n, bool)
        missing = words == 0
        if not missing.any():
            return FALSE
        return missing if each == 1 else missing.reshape(-1, each).all(axis=1)

    def note_global(self, site: int, L: Lanes, addr: Any, size: int, write: bool, data: Any) -> None:
        """Note an access to global memory, buffer by buffer."""
        if addr.__class__ is not np.ndarray:
            addr = np.full(L.n, addr)
        for shadow, base, at in self.launch.shadows_of(addr):
            part = L if at is None else L.subset(at)
            offset = ((addr if at is None else addr[at]) - np.uint64(base)).view(np.int64)
            cells, each = shadow.granules(offset, size)
            event = Event(self, shadow, site, part, cells, each, "global", base)
            if write:
                self.wrote(event, data if at is None or data is None else (_pick(data[0], at), *data[1:]), offset)
            else:
                self.read(event)

    def read(self, event: Event) -> Array | None:
        """Check a read against the last writes, and note it. Returns the stamps of the writes, None for none."""
        shadow = event.shadow
        words = None
        if shadow.written:
            words = shadow.writes.take(event.cells)
            self.conflicts(event, words, "read", "written", None)
        if not self.access(event.site).strong:
            self.note_read(event, event.mine)
        return words

    def note_read(self, event: Event, mine: Array) -> None:
        """Remember the reader of each granule; for several readers, that there were several."""
        shadow, cells = event.shadow, event.cells
        reads = shadow.reads
        if self.ordered:
            shadow.log.append((cells, mine, shadow.granule))
        noted = mine
        if shadow.touched:
            old = reads.take(cells)
            settled = ((old | np.uint64(SITE_MASK)) == (mine | EVERY_BITS | np.uint64(SITE_MASK))) | (
                old & MANY == MANY
            )
            if event.space == "global" and settled.all():
                return
            others = (((old ^ mine) & WHO) != 0) & (old >= event.floor if event.space == "shared" else old != 0)
            if others.any():
                noted = np.where(others, self.several(old, mine), mine)
        reads[cells] = noted
        shadow.touched = True
        after = reads.take(cells)
        lost = ((after ^ noted) & WHO) != 0
        if lost.any():
            reads[cells[lost]] = self.several(after[lost], noted[lost])

    @staticmethod
    def several(a: Array, b: Array) -> Array:
        """The mark of several readers: of one block, or of several blocks."""
        apart = ((a ^ b) & BLOCK_FIELD) != 0
        mixed: Array = (b | EVERY_BITS) | np.where(apart, MANY, np.uint64(0))
        return mixed

    def wrote(self, event: Event, data: Any, offset: Array) -> None:
        """Check a write against the last reads and writes, and note it."""
        shadow, cells, mine = event.shadow, event.cells, event.mine
        written = (data, offset) if data is not None else None
        if shadow.written:
            self.conflicts(event, shadow.writes.take(cells), "written", "written", written)
        if shadow.touched:
            self.conflicts(event, shadow.reads.take(cells), "written", "read", written)
        shadow.writes[cells] = mine
        shadow.written = True
        if self.ordered and shadow.touched:
            # Whoever is ordered after this write is ordered after the reads before it.
            shadow.forget(cells)
        if self.access(event.site).atomic:
            return
        after = shadow.writes.take(cells)
        lost = ((after ^ mine) & WHO) != 0
        if lost.any():
            self.collision(event, after, lost, data)

    def unchanged(self, event: Event, data: Any, offset: Array) -> Array:
        """Which threads write what is there already: no one can tell the order."""
        value, dtype, lanes = data
        n = event.L.n
        size = np.dtype(dtype).itemsize * lanes
        memory = self.sh.bytes if event.space == "shared" else self.launch.bytes_at(event.base)
        old = memory[offset[:, None] + np.arange(size)]
        new = np.broadcast_to(value, (n, lanes) if lanes > 1 else (n,))
        new = np.ascontiguousarray(new).view(np.uint8).reshape(n, size)
        equal: Array = (old == new).all(axis=1)
        return equal

    def collision(self, event: Event, after: Array, lost: Array, data: Any) -> None:
        """Threads of one instruction wrote the same granule: a race unless all wrote the same."""
        if data is not None and not (data[0].__class__ is np.ndarray and data[0].ndim):
            return
        where = np.flatnonzero(lost)
        if data is not None:
            where = where[self.differs(event, data, where)]
        if len(where):
            self.race(event, int(where[0]), after[where[0]], "written", "written", np.unique(where // event.each))

    @staticmethod
    def differs(event: Event, data: Any, where: Array) -> Array:
        """Whether overwritten granules were given other bytes than what stayed."""
        size = np.dtype(data[1]).itemsize * data[2]
        pieces = np.ascontiguousarray(data[0]).view(np.uint8).reshape(event.L.n * event.each, size // event.each)
        last = np.zeros(int(event.cells.max()) + 1, np.int64)
        last[event.cells] = np.arange(len(event.cells))
        other: Array = (pieces[where] != pieces[last[event.cells[where]]]).any(axis=1)
        return other

    def conflicts(self, event: Event, words: Array, now: str, before: str, written: Any) -> None:
        """Report accesses that no barrier of the block has put after the stamped ones, and nothing else either."""
        shadow, each = event.shadow, event.each
        if event.space == "shared" and self.shape.cluster_blocks == 1:
            suspect = words >= event.floor
            if shadow.hurried:
                suspect |= is_async(words)
            if not suspect.any():
                return
            suspect &= ((words ^ event.mine) & WHO) != 0
        else:
            suspect = (((words ^ event.mine) & WHO) != 0) & (words != 0)
        if not suspect.any():
            return
        lanes = event.L.ids
        at = np.flatnonzero(suspect)
        at = at[self.unordered(lanes[at // each], words[at], event.site, before)]
        if len(at) and before == "read" and self.ordered:
            at = self.read_by_others(event, at, words)
        if len(at) and written is not None:
            at = at[~self.unchanged(event, *written)[at // each]]
        if len(at):
            self.race(event, int(at[0]), words[at[0]], now, before, np.unique(at // each))

    def unordered(self, lanes: Array, words: Array, site: int, before: str) -> Array:
        """Which of some stamped accesses neither happen before what `lanes` do now nor are harmless beside it."""
        block, thread, clock, hurried = block_of(words), thread_of(words), clock_of(words), is_async(words)
        several = (thread == EVERY) & ~hurried if before == "read" else np.zeros(len(words), bool)
        left = ~self.clocks.knows_own(lanes, block, thread, clock, hurried, several)
        access = self.access(site)
        for k in np.flatnonzero(left):
            earlier = self.access(site_of(words[k])) if not hurried[k] else WEAK
            lane, other = int(lanes[k]), int(block[k])
            if access.strong and earlier.strong and self.in_scope(lane, other, access, earlier):
                left[k] = False
            elif several[k]:
                continue
            elif self.clocks.knows_foreign(lane, other, int(thread[k]), int(clock[k]), bool(hurried[k])):
                left[k] = False
            elif not self.launch.options.lockstep:
                left[k] = not self.same_warp(lane, other, int(thread[k]), bool(hurried[k]))
        return left

    def read_by_others(self, event: Event, at: Array, words: Array) -> Array:
        """Of writes to granules with unordered reads, those where the log has a reader that is truly unordered."""
        cells = event.cells
        found_cells, found = event.shadow.readers(np.unique(cells[at]))
        stamps, which = np.unique(found, return_inverse=True)
        keep = thread_of(words[at]) != EVERY
        verdicts: dict[int, Array] = {}
        for n in np.flatnonzero(~keep):
            lane = int(event.L.ids[at[n] // event.each])
            bad = verdicts.get(lane)
            if bad is None:
                mine = self.clocks.stamp[lane]
                bad = self.unordered(np.full(len(stamps), lane), stamps, -1, "log") & (((stamps ^ mine) & WHO) != 0)
                verdicts[lane] = bad
            keep[n] = bool(bad.any()) and bool(bad[which[found_cells == cells[at[n]]]].any())
        return at[keep]

    def same_warp(self, lane: int, block: int, thread: int, asynchronous: bool) -> bool:
        """Whether another thread is of the lane's warp."""
        own = int(self.blocks[lane // self.shape.stride])
        return not asynchronous and block == own and thread // 32 == lane % self.shape.stride // 32

    def in_scope(self, lane: int, block: int, a: Access, b: Access) -> bool:
        """Whether the scopes of two strong accesses include each other's threads."""
        least = min(a.scope, b.scope)
        own = int(self.blocks[lane // self.shape.stride])
        if block == own:
            return True
        if least == CTA:
            return False
        return least != CLUSTER or self.cluster_of(own) == self.cluster_of(block)

    def cluster_of(self, block: int) -> tuple[int, ...]:
        """Which cluster a block belongs to."""
        place = unflatten(block, self.shape.grid)
        return tuple(p // c for p, c in zip(place, self.shape.cluster, strict=True))

    def race(self, event: Event, k: int, word: Any, now: str, before: str, lanes: Array) -> None:
        """The finding: both instructions, both threads."""
        values: dict[str, Any] = {}
        earlier = self.sites[site_of(word)] if site_of(word) < len(self.sites) else None
        if earlier is not None:
            values["other access"] = f"line {earlier.line}: {earlier.text}"
            place = source_location(earlier.place)
            if place is not None:
                values["other source"] = str(place)
        hurried = bool(is_async(word))
        values["other thread"] = self.name_of(word, hurried, before)
        address = event.base + (int(event.cells[k]) << event.shadow.granule)
        where = address if event.space == "global" else address % self.sh.stride
        values["address"] = f"{where:#x} ({now} now, {before} before)"
        lane = k // event.each
        first = np.concatenate(([lane], lanes[lanes != lane]))
        message = f"Error: Race condition in {event.space} memory access"
        if hurried:
            hint = "wait for the asynchronous operation (its group or its mbarrier) before this access"
        else:
            hint = "put a barrier between the two accesses"
        self.report(Fault("race", message, event.site, first, values, hint))

    def name_of(self, word: Any, hurried: bool, before: str) -> str:
        """Who left a stamp, in words."""
        if hurried:
            return "an asynchronous operation that was not waited for"
        if before == "read" and int(thread_of(word)) == EVERY:
            return "several"
        block = unflatten(int(block_of(word)), self.shape.grid)
        return f"block {block}, thread {unflatten(int(thread_of(word)), self.shape.block)}"

    # Other accesses.

    def atomic_done(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> None:
        from_windows = space == "generic"
        if from_windows:
            high = np.broadcast_to(addr, (L.n,))
            shared = (high >= np.uint64(1 << 56)) & (high < np.uint64(1 << 57))
            if shared.all():
                addr, space = high - np.uint64(1 << 56), "shared"
            elif shared.any():
                return
            else:
                space = "global"
        if space == "shared":
            index = self.sh.index(site, L, addr, size.bit_length() - 1)
            self.note_shared(site, L, index << (size.bit_length() - 1), size, True, None)
        elif space == "global":
            self.g.resolve(site, np.broadcast_to(addr, (L.n,)), np.dtype(f"u{size}"), size.bit_length() - 1, 1, True)
            self.g.cache.pop(site, None)
            self.note_global(site, L, addr, size, True, None)
        if self.ordered:
            self.through_memory(site, L, space, addr, True, True)

    def shared_rows(self, site: int, L: Lanes, addr: Array) -> Array:
        rows: Array = self.s_load(site, L, addr, np.dtype(np.uint8), 4, 16)
        return rows

    def store_shared_rows(self, site: int, L: Lanes, addr: Array, rows: Array) -> None:
        self.s_store(site, L, addr, rows, np.dtype(np.uint8), 4, 16)

    # Order.

    def barrier_passed(self, cohort: Cohort) -> None:
        self.launch.idle = 0
        self.whole_barrier(np.arange(self.slots))

    def whole_barrier(self, slots: Array) -> None:
        if int(self.clocks.clock.max()) >= MAX_CLOCK:
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

    def barrier_arrived(self, cohort: Cohort, number: int) -> None:
        L = cohort.L
        for slot in np.unique(L.slot):
            threads = L.thread[L.slot == slot]
            row = self.clocks.rows(int(slot), threads).max(axis=0)
            old = self.waiting.get((number, int(slot)))
            self.waiting[number, int(slot)] = row if old is None else _join(old, row)
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
                if len(bad):
                    self._ended_early(words[bad[0]], lane, before)

    def _ended_early(self, word: Any, lane: int, before: str) -> None:
        values = {"other thread": self.name_of(word, False, before)}
        site = site_of(word)
        if site < len(self.sites):
            values["other access"] = f"line {self.sites[site].line}: {self.sites[site].text}"
        self.report(Fault("race", "Error: Race condition in shared memory access: the block ends while another may use it",
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

    # mbarriers.

    def word_slot(self, index: int) -> int:
        return index * 8 // self.sh.stride

    def mbarrier_made(self, site: int, L: Lanes, addr: Any) -> None:
        index = self.sh.index(site, L, addr, 3)
        self.note_shared(site, L, index << 3, 8, True, None)

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        self.note_shared(site, L, index << 3, 8, False, None)
        releasing = counts > 0
        if relaxed or not releasing.any():
            return
        for word in np.unique(index[releasing]):
            here = releasing & (index == word)
            for slot in np.unique(L.slot[here]):
                self.arrive_from(int(word), int(slot), L.thread[here & (L.slot == slot)])
        self.clocks.tick(L.ids[releasing])

    def arrive_from(self, word: int, slot: int, threads: Array) -> None:
        """What arriving threads know goes to those that will wait."""
        if slot == self.word_slot(word):
            row = self.clocks.rows(slot, threads).max(axis=0)
            self.bring(word, row)
            return
        for thread in threads:
            lane = slot * self.shape.stride + int(thread)
            known = self.clocks.publish(lane, int(self.clocks.clock[lane]))
            merge(self.launch.remote.setdefault((id(self), word), {}), known)

    def bring(self, word: int, row: Array) -> None:
        old = self.phases.get(word)
        self.phases[word] = row.copy() if old is None else _join(old, row)

    def mbarrier_completed(self, index: Array, parity: Array) -> None:
        for word in index:
            row = self.phases.get(int(word))
            if row is not None:
                self.ended[int(word)] = row.copy()

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        self.note_shared(site, L, index << 3, 8, False, None)
        if relaxed:
            return
        for word in np.unique(index[done]):
            row = self.ended.get(int(word))
            here = done & (index == word)
            remote = self.launch.remote.get((id(self), int(word)))
            for slot in np.unique(L.slot[here]):
                threads = L.thread[here & (L.slot == slot)]
                if row is not None and slot == self.word_slot(int(word)):
                    self.clocks.learn(int(slot), threads, row)
                if remote:
                    for thread in threads:
                        self.clocks.acquire(int(slot) * self.shape.stride + int(thread), remote)

    # Asynchronous copies.

    def async_read(self, site: int, L: Lanes, source: Any, size: int) -> Array:
        rows = super().async_read(site, L, source, size)
        self.note_global(site, L, source, size, False, None)
        return rows

    def async_write(self, site: int, L: Lanes, to: Any, rows: Array, size: int) -> None:
        shift = size.bit_length() - 1
        index = self.sh.index(site, L, to, shift)
        self.note_shared(site, L, index << shift, size, True, (rows, np.dtype(np.uint8), size))
        super().async_write(site, L, to, rows, size)
        # The writer is the thread's agent: only a wait makes the thread itself know.
        cells, each = self.shared_shadow.granules(np.broadcast_to(index << shift, (L.n,)), size)
        words = agent_stamp(self.groups[L.ids] + 1, L.block, L.thread, site)
        self.shared_shadow.writes[cells] = np.repeat(words, each) if each > 1 else words
        self.shared_shadow.hurried = True
        for slot in np.unique(L.slot):
            self.clocks.detail(int(slot))

    def async_commit(self, L: Lanes, bulk: bool) -> None:
        if not bulk:
            self.groups[L.ids] += 1

    def async_wait(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        if bulk:
            return
        reached = self.groups[L.ids] + 1 if everything else np.maximum(self.groups[L.ids] - count, 0)
        self.know_groups(L, reached)

    def know_groups(self, L: Lanes, reached: Array) -> None:
        for slot in np.unique(L.slot):
            here = L.slot == slot
            threads = L.thread[here]
            matrix = self.clocks.detail(int(slot))
            column = self.shape.stride + threads
            matrix[threads, column] = np.maximum(matrix[threads, column], reached[here])

    def async_arriving(self, L: Lanes) -> None:
        self.know_groups(L, self.groups[L.ids] + 1)
        self.groups[L.ids] += 1

    def async_store(self, site: int, L: Lanes, to: Any, value: Any, dtype: Any, size: int, barrier: Any) -> None:
        shift = size.bit_length() - 1
        index = np.broadcast_to(self.sh.index(site, L, to, shift), (L.n,))
        words = np.broadcast_to(self.sh.index(site, L, barrier, 3), (L.n,))
        super().async_store(site, L, to, value, dtype, size, barrier)
        for lane in range(L.n):
            self.agent_write(site, L.subset(np.array([lane])), int(index[lane]) << shift, size, int(words[lane]), False)

    def agent_write(self, site: int, one: Lanes, offset: int, count: int, word: int, checked: bool = True) -> None:
        """A copy counted by an mbarrier writes shared memory: its agent is stamped, and told to the barrier."""
        slot = self.word_slot(word)
        if checked:
            self.span_access(site, one, offset, count, True)
        column = self.clocks.agent(slot, word)
        row = np.zeros(self.clocks.detail(slot).shape[1], np.int64)
        clock = self.launch.agent_clock(id(self), word)
        row[column] = clock
        self.bring(word, row)
        step = 4 if count % 4 == 0 and offset % 4 == 0 else 1
        cells, _ = self.shared_shadow.granules(np.arange(offset, offset + count, step), step)
        word_ = agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)
        self.shared_shadow.writes[cells] = word_
        self.shared_shadow.written = self.shared_shadow.hurried = True

    def span_access(self, site: int, one: Lanes, offset: int, count: int, write: bool) -> None:
        """A thread touches a run of shared memory: check and note it as that thread's access."""
        step = 4 if count % 4 == 0 and offset % 4 == 0 else 1
        offsets = np.arange(offset, offset + count, step)
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        if not write:
            cells, each = self.shared_shadow.granules(offsets, step)
            self.across_proxies(site, many, cells, each, self.shared_shadow.writes.take(cells))
        self.note_shared(site, many, offsets, step, write, None)

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signals: Any
    ) -> None:
        if not count:
            return
        if from_space == "shared":
            self.span_access(site, one, self.offset_of(site, one, start), count, False)
        else:
            self.global_span(site, one, start, count, False)
        if to_space == "global":
            self.global_span(site, one, to, count, True)
        elif signals is not None:
            self.agent_write(site, one, self.offset_of(site, one, to), count, int(signals[0]))
        else:
            self.span_access(site, one, self.offset_of(site, one, to), count, True)

    def offset_of(self, site: int, one: Lanes, address: int) -> int:
        return int(np.atleast_1d(self.sh.index(site, one, np.array([address], np.uint64), 0))[0])

    def global_span(self, site: int, one: Lanes, start: int, count: int, write: bool) -> None:
        step = 4 if count % 4 == 0 and start % 4 == 0 else 1
        addresses = np.arange(start, start + count, step, dtype=np.uint64)
        many = Lanes(one.shape, np.repeat(one.ids, len(addresses)), one.blocks)
        self.note_global(site, many, addresses, step, write, None)

    def tensor_moved(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], shared: int, count: int, signals: Any
    ) -> None:
        offset = self.offset_of(site, one, shared)
        if signals is not None:
            self.agent_write(site, one, offset, count, int(signals[0]))
        else:
            self.span_access(site, one, offset, count, False)

    # wgmma.

    def warpgroups(self, L: Lanes) -> list[int]:
        """The warpgroups of some lanes, by their first lane's number over 128 (blocks are padded to warps)."""
        return [int(x) for x in np.unique(L.ids // 128)]

    def matrix_read(self, site: int, L: Lanes, addresses: Array, size: int) -> None:
        step = 4 if size < 4 else size
        for row, group in zip(addresses, self.warpgroups(L), strict=True):
            one = L.subset(np.array([int(np.searchsorted(L.ids, 128 * group))]))
            offsets = np.unique(row // step * step)
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            cells, each = self.shared_shadow.granules(offsets, step)
            event = Event(self, self.shared_shadow, site, many, cells, each, "shared", 0)
            words = self.shared_shadow.writes.take(cells)
            self.conflicts(event, words, "read", "written", None)
            self.across_proxies(site, many, cells, each, words)
            slot = int(one.slot[0])
            column = self.clocks.agent(slot, ("wgmma", group))
            clock = self.wgmma.committed.get(group, 0) + 1
            word = agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)
            self.note_read(event, np.full(len(cells), word))
            self.shared_shadow.hurried = True

    def across_proxies(self, site: int, L: Lanes, cells: Array, each: int, words: Array) -> None:
        """What was written by ordinary stores needs a proxy fence before asynchronous instructions read it."""
        block, thread, clock = block_of(words), thread_of(words), clock_of(words)
        slot = L.slot[np.arange(len(words)) // each]
        plain = (words != 0) & ~is_async(words) & (block == self.blocks[slot])
        lane = slot * self.shape.stride + np.where(plain, thread, 0)
        bad = np.flatnonzero(plain & (clock > self.proxied[lane]) & (clock > self.proxied_block[slot]))
        if not len(bad):
            return
        k = int(bad[0])
        earlier = self.sites[site_of(words[k])]
        values = {
            "other access": f"line {earlier.line}: {earlier.text}",
            "other thread": f"block {unflatten(int(block[k]), self.shape.grid)}, thread {unflatten(int(thread[k]), self.shape.block)}",
        }
        self.report(Fault("race", "Error: Race condition in shared memory access across proxies", site, bad // each, values,
                          "the writing threads need fence.proxy.async before the barrier"))  # fmt: skip

    def wgmma_issued(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        for group in self.warpgroups(L):
            if group not in self.wgmma.fenced:
                self.report(Fault("wgmma", "wgmma.mma_async on registers written since the last wgmma.fence", site,
                                  hint="put wgmma.fence.sync.aligned before the first product"))  # fmt: skip
            flying = self.wgmma.flying.setdefault(group, {})
            number = self.wgmma.committed.get(group, 0)
            flying.update(dict.fromkeys(numbers, number))

    def wgmma_fence(self, site: int, L: Lanes) -> None:
        self.wgmma.fenced.update(self.warpgroups(L))

    def wgmma_unfence(self, L: Lanes) -> None:
        """Registers of products were written by something else."""
        self.wgmma.fenced.difference_update(self.warpgroups(L))

    def wgmma_commit(self, site: int, L: Lanes) -> None:
        for group in self.warpgroups(L):
            self.wgmma.committed[group] = self.wgmma.committed.get(group, 0) + 1

    def wgmma_wait(self, site: int, L: Lanes, count: int) -> None:
        for group in self.warpgroups(L):
            done = self.wgmma.committed.get(group, 0) - count
            flying = self.wgmma.flying.get(group, {})
            self.wgmma.flying[group] = {register: n for register, n in flying.items() if n >= done}
            slot = 128 * group // self.shape.stride
            column = self.clocks.agent(slot, ("wgmma", group))
            threads = L.thread[L.ids // 128 == group]
            matrix = self.clocks.detail(slot)
            matrix[threads, column] = np.maximum(matrix[threads, column], max(done, 0))

    def wgmma_moved(self, L: Lanes, to: int, source: int) -> None:
        """A register was copied: it is in flight as its source is."""
        for group in self.warpgroups(L):
            flying = self.wgmma.flying.get(group)
            if flying:
                number = flying.get(source)
                if number is None:
                    flying.pop(to, None)
                else:
                    flying[to] = number

    def wgmma_used(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        if not any(self.wgmma.flying.values()):
            return
        for group in self.warpgroups(L):
            flying = self.wgmma.flying.get(group, {})
            if any(number in flying for number in numbers):
                self.report(Fault("wgmma", "A result of wgmma is used before it was waited for", site,
                                  hint="commit the group (wgmma.commit_group) and wait for it (wgmma.wait_group)"))  # fmt: skip

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
        if access.releases:
            self.clocks.tick(np.array([lane]))


def _join(a: Array, b: Array) -> Array:
    """The larger of two rows, entry by entry; the shorter one counts as zeros beyond its end."""
    if len(a) < len(b):
        a, b = b, a
    out = a.copy()
    np.maximum(out[: len(b)], b, out=out[: len(b)])
    return out


def _pick(value: Any, at: Array) -> Any:
    return value[at] if value.__class__ is np.ndarray else value


def _article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
