"""wgmma: registers in flight, fences, and shared memory read across proxies."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.base import Event
from tilewright.targets.emu.checks.copies import Copies
from tilewright.targets.emu.checks.stamps import (
    agent_stamp,
)
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes


class Products(Copies):
    """Watches matrix products of warpgroups."""

    def warpgroups(self, L: Lanes) -> list[int]:
        """The warpgroups of some lanes, by their first lane's number over 128 (blocks are padded to warps)."""
        return [int(x) for x in np.unique(L.ids // 128)]

    def members(self, L: Lanes, group: int) -> Lanes:
        """The lanes of a warpgroup."""
        return L.subset(np.flatnonzero(L.ids // 128 == group))

    def matrix_read(self, site: int, L: Lanes, addresses: Array, size: int) -> Array | None:
        step = 4 if size < 4 else size
        found = None
        for number, (row, group) in enumerate(zip(addresses, self.warpgroups(L), strict=True)):
            one = L.subset(np.array([int(np.searchsorted(L.ids, 128 * group))]))
            offsets = np.unique(row // step * step)
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            cells, each = self.shared_shadow.granules(offsets, step)
            event = Event(self, self.shared_shadow, site, many, cells, each, "shared", 0)
            words = self.check_read(event)
            self.across_proxies(site, many, cells, each, words)
            missing = self.shared_shadow.missing(cells, words)
            if np.count_nonzero(missing):
                found = np.zeros(addresses.shape, bool) if found is None else found
                gone = offsets[np.logical_or.reduce(missing.reshape(-1, each), 1)]
                found[number] = np.isin(row // step * step, gone)
            slot = int(one.slot[0])
            column = self.clocks.agent(slot, ("wgmma", group))
            clock = self.wgmma.committed.get(group, 0) + 1
            word = agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)
            self.note_read(event, np.full(len(cells), word))
            self.shared_shadow.hurried = self.shared_shadow.readers.hurried = True
        return found

    def wgmma_issued(self, site: int, L: Lanes, numbers: tuple[int, ...], read: tuple[int, ...]) -> None:
        for group in self.warpgroups(L):
            if group not in self.wgmma.fenced:
                self.report(Fault("wgmma", "wgmma.mma_async on registers written since the last wgmma.fence", site,
                                  hint="put wgmma.fence.sync.aligned before the first product",
                                  among=self.members(L, group)))  # fmt: skip
            flying = self.wgmma.flying.setdefault(group, {})
            number = self.wgmma.committed.get(group, 0)
            flying.update(dict.fromkeys(numbers, number))
            self.wgmma.reading.setdefault(group, {}).update(dict.fromkeys(read, number))

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
            for under_way in (self.wgmma.flying, self.wgmma.reading):
                kept = {register: n for register, n in under_way.get(group, {}).items() if n >= done}
                under_way[group] = kept
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

    def wgmma_changed(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        for group in self.warpgroups(L) if any(self.wgmma.reading.values()) else ():
            reading = self.wgmma.reading.get(group, {})
            if any(number in reading for number in numbers):
                message = "A register of wgmma's matrix A is overwritten before wgmma was waited for"
                hint = "commit the group (wgmma.commit_group) and wait for it (wgmma.wait_group)"
                self.report(Fault("wgmma", message, site, hint=hint, among=self.members(L, group)))

    def wgmma_used(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        if not any(self.wgmma.flying.values()):
            return
        for group in self.warpgroups(L):
            flying = self.wgmma.flying.get(group, {})
            if any(number in flying for number in numbers):
                hint = "commit the group (wgmma.commit_group) and wait for it (wgmma.wait_group)"
                message = "A result of wgmma is used before it was waited for"
                self.report(Fault("wgmma", message, site, hint=hint, among=self.members(L, group)))
