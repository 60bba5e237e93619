"""Races: accesses to the same bytes, at least one a write, that nothing orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.base import FALSE, Event, Watch
from tilewright.targets.emu.checks.shadow import (
    BLOCK_FIELD,
    EVERY,
    EVERY_BITS,
    MANY,
    SITE_MASK,
    WHO,
    block_of,
    clock_of,
    is_async,
    site_of,
    thread_of,
)
from tilewright.targets.emu.checks.sites import CLUSTER, CTA, WEAK, Access
from tilewright.targets.emu.faults import Fault, source_location
from tilewright.targets.emu.lanes import Array, Lanes, unflatten


class Races(Watch):
    """Notes accesses and reports those that are unordered."""

    def stamps(self, L: Lanes, site: int) -> Array:
        """The stamps of what lanes do now."""
        stamps = self.clocks.stamp
        now = stamps if L.n == len(stamps) else stamps.take(L.ids)
        marked: Array = now | np.uint64(site & SITE_MASK)
        return marked

    def note_shared(self, site: int, L: Lanes, offset: Any, size: int, write: bool, data: Any) -> Any:
        """Note an access to shared memory; for reads, which threads found nothing written."""
        if offset.__class__ is not np.ndarray:
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
        if not np.count_nonzero(missing):
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
            if event.space == "global" and self.settled(old, mine):
                return
            others = old >= event.floor if event.space == "shared" else old != 0
            if np.count_nonzero(others):
                others &= ((old ^ mine) & WHO) != 0
            if np.count_nonzero(others):
                noted = np.where(others, self.several(old, mine), mine)
        reads[cells] = noted
        shadow.touched = True
        after = reads.take(cells)
        lost = after != noted
        if np.count_nonzero(lost):
            reads[cells[lost]] = self.several(after[lost], noted[lost])

    @staticmethod
    def settled(old: Array, mine: Array) -> bool:
        """Whether nothing is to be noted: granules are known to be read by several threads already."""
        site = np.uint64(SITE_MASK)
        return bool((((old | site) == (mine | EVERY_BITS | site)) | (old & MANY == MANY)).all())

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
        lost = after != mine
        if np.count_nonzero(lost):
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
            if not np.count_nonzero(suspect):
                return
            suspect &= ((words ^ event.mine) & WHO) != 0
        else:
            suspect = (((words ^ event.mine) & WHO) != 0) & (words != 0)
        if not np.count_nonzero(suspect):
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
        return np.asarray(at[keep])

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
            "other thread": self.name_of(words[k], False, "written"),
        }
        message = "Error: Race condition in shared memory access across proxies"
        hint = "the writing threads need fence.proxy.async before the barrier"
        self.report(Fault("race", message, site, bad // each, values, hint))


def _pick(value: Any, at: Array) -> Any:
    return value[at] if value.__class__ is np.ndarray else value
