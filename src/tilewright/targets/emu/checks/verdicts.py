"""Verdicts: whether an earlier access happens before one that comes now, and the finding where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.base import Event, Watch
from tilewright.targets.emu.checks.crowd import Crowd
from tilewright.targets.emu.checks.hints import Pair, hint_for
from tilewright.targets.emu.checks.shadow import Shadow
from tilewright.targets.emu.checks.sites import CLUSTER, CTA, GPU, WEAK, Access
from tilewright.targets.emu.checks.stamps import (
    EVERY,
    SEVERAL,
    SITE_MASK,
    WHO,
    block_of,
    clock_of,
    is_async,
    site_of,
    thread_of,
)
from tilewright.targets.emu.faults import Fault, source_location
from tilewright.targets.emu.lanes import Array, Lanes, unflatten


class Verdicts(Watch):
    """Judges pairs of accesses by the clocks."""

    def unordered(self, lanes: Array, words: Array, access: Access, shared: bool) -> Array:
        """Which of some stamped accesses neither happen before what `lanes` do now nor are harmless beside it.

        `shared`: they are to shared memory.
        """
        block, thread, clock, hurried = block_of(words), thread_of(words), clock_of(words), is_async(words)
        several = (thread >= SEVERAL) & ~hurried
        left = ~self.clocks.knows_own(lanes, block, thread, clock, hurried, several)
        if access.strong and np.count_nonzero(left):
            at = np.flatnonzero(left & ~several)
            left[at[self.in_scope(lanes[at], block[at], words[at], access)]] = False
        at = np.flatnonzero(left & ~several)
        if len(at):
            known = self.clocks.knows_foreign(lanes[at], block[at], thread[at], clock[at], hurried[at], shared)
            left[at[known]] = False
        if not self.launch.options.lockstep and np.count_nonzero(left):
            left &= ~self.same_warp(lanes, block, thread, hurried)
        return np.asarray(left)

    def same_warp(self, lanes: Array, block: Array, thread: Array, hurried: Array) -> Array:
        """Whether accesses are of threads of the lanes' warps."""
        own = (block == self.blocks[lanes // self.shape.stride]) & ~hurried & (thread != EVERY)
        return np.asarray(own & (thread % SEVERAL // 32 == lanes % self.shape.stride // 32))

    def in_scope(self, lanes: Array, block: Array, words: Array, access: Access) -> Array:
        """Which earlier accesses are strong too, of the same size, with scopes that include each other's threads."""
        sites, which = np.unique(words & np.uint64(SITE_MASK), return_inverse=True)
        earlier = [self.access(int(site)) for site in sites]
        strong = np.array([a.strong and a.size == access.size for a in earlier], bool)[which]
        scope = np.array([min(a.scope, access.scope) for a in earlier], np.int64)[which]
        own = self.blocks[lanes // self.shape.stride]
        near = (block == own) | (scope == GPU)
        if self.shape.cluster_blocks > 1 and CLUSTER in scope:
            near |= (scope == CLUSTER) & (self.cluster_of(own) == self.cluster_of(block))
        return np.asarray(strong & near)

    def observed(self, shadow: Shadow, lanes: Array, cells: Array, times: Array) -> Array:
        """Which strong writes a strong read saw that happens before what the lanes do now.

        A read sees a write and those that led to it by read-modify-writes: they are before what follows the read
        (PTX ISA 8.9.2 and 8.9.5, observation order and causality order), released or not.
        """
        seen = np.zeros(len(lanes), bool)
        for cell in np.unique(cells):
            written, stores, counts = self._history(shadow, int(cell))
            readers = (
                shadow.strong_readers.of(np.array([cell]))[1:] if shadow.strong_readers.log else (written[:0],) * 2
            )
            stamps = np.concatenate((written[~stores], readers[0]))
            looked = np.concatenate((counts[~stores], readers[1].astype(np.int64)))
            for lane in np.unique(lanes[cells == cell]):
                here = (cells == cell) & (lanes == lane)
                own = ((stamps ^ self.clocks.stamp[lane]) & WHO) == 0
                shared = shadow is self.shared_shadow
                known = own | ~self.unordered(np.full(len(stamps), lane), stamps, WEAK, shared)
                last = int(looked[known].max(initial=-1))
                chain = int(counts[stores & (counts < last)].max(initial=-1))
                seen[here] = (times[here] < last) & (times[here] >= chain)
        return seen

    def _history(self, shadow: Shadow, cell: int) -> tuple[Array, Array, Array]:
        """(stamps, which are plain stores, times) of the strong writes to a granule."""
        _, stamps, times = shadow.strong_writers.of(np.array([cell]))
        sites, which = np.unique(stamps & np.uint64(SITE_MASK), return_inverse=True)
        plain = np.array([not self.access(int(site)).atomic for site in sites], bool)
        return stamps, plain[which], times

    def all_in_scope(self, event: Event, crowd: Crowd) -> bool:
        """Whether this access and those in a crowd of strong ones are harmless beside each other, whoever did them."""
        if not event.access.strong or crowd.sizes != {event.access.size}:
            return False
        reach = CTA if event.alone else CLUSTER if event.space == "shared" else GPU
        return min(event.access.scope, crowd.least) >= reach

    def cluster_of(self, block: Array) -> Array:
        """The number of the cluster that each block belongs to."""
        grid, cluster = self.shape.grid, self.shape.cluster
        x, y, z = (p // c for p, c in zip(unflatten(block, grid), cluster, strict=True))
        return np.asarray(x + grid[0] * (y + grid[1] * z))

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
        lane = k // event.each
        where = block_of(word), thread_of(word)
        pair = Pair(
            now, before, event.space, same_site=site_of(word) == event.site, hurried=hurried,
            strong=event.access.strong and earlier is not None and self.access(site_of(word)).strong,
            block=int(self.blocks[event.L.ids[lane] // self.shape.stride]) == int(where[0]),
            warp=bool(self.same_warp(event.L.ids[lane : lane + 1], *where, is_async(word))[0]),
        )  # fmt: skip
        values["other thread"] = self.name_of(word, hurried, before)
        address = event.base + event.shadow.offset(int(event.cells[k]))
        address = address if event.space == "global" else address % self.sh.stride
        values["address"] = f"{address:#x} ({now} now, {before} before)"
        first = np.concatenate(([lane], lanes[lanes != lane]))
        message = f"Error: Race condition in {event.space} memory access"
        self.report(Fault("race", message, event.site, first, values, hint_for(pair), event.L))

    def name_of(self, word: Any, hurried: bool, before: str) -> str:
        """Who left a stamp, in words."""
        if hurried:
            return "an asynchronous operation that was not waited for"
        if int(thread_of(word)) >= SEVERAL:
            return "several"
        block = unflatten(int(block_of(word)), self.shape.grid)
        return f"block {block}, thread {unflatten(int(thread_of(word)), self.shape.block)}"

    def across_proxies(self, site: int, L: Lanes, cells: Array, each: int, words: Array) -> None:
        """What was written by ordinary stores needs a proxy fence before a thread's asynchronous instruction reads it.

        `L` is that thread, as often as it reads."""
        block, thread, clock = block_of(words), thread_of(words), clock_of(words)
        slot = L.slot[np.arange(len(words)) // each]
        plain = (words != 0) & ~is_async(words) & (block == self.blocks[slot])
        bad = np.flatnonzero(plain)
        bad = bad[~self.proxies.covers(int(L.ids[0]), thread[bad], clock[bad])] if len(bad) else bad
        if not len(bad):
            return
        k = int(bad[0])
        earlier = self.sites[site_of(words[k])]
        values = {
            "other access": f"line {earlier.line}: {earlier.text}",
            "other thread": self.name_of(words[k], False, "written"),
        }
        message = "Error: Race condition in shared memory access across proxies"
        hint = "put fence.proxy.async after the stores, or after the barrier in the thread that reads"
        self.report(Fault("race", message, site, bad // each, values, hint, L))
