"""wgmma: registers in flight, and the fence before the first product."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.observer import Batch, Observer, warpgroups
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Lanes

WAIT = "commit the group (wgmma.commit_group) and wait for it (wgmma.wait_group)"


class WgmmaRegisters(Observer):
    """Follows the registers of products that no one has waited for, by warpgroup."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._writing: dict[int, dict[int, int]] = {}
        """Registers that products write, with the number of their group."""
        self._reading: dict[int, dict[int, int]] = {}
        """Registers that they read."""
        self._committed: dict[int, int] = {}
        self._fenced: set[int] = set()

    def wgmma_issued(self, site: int, L: Lanes, written: tuple[int, ...], read: tuple[int, ...]) -> None:
        for group in warpgroups(L):
            if group not in self._fenced:
                self._report("wgmma.mma_async on registers written since the last wgmma.fence", site, L, group,
                             "put wgmma.fence.sync.aligned before the first product")  # fmt: skip
            number = self._committed.get(group, 0)
            self._writing.setdefault(group, {}).update(dict.fromkeys(written, number))
            self._reading.setdefault(group, {}).update(dict.fromkeys(read, number))

    def wgmma_fenced(self, site: int, L: Lanes) -> None:
        self._fenced.update(warpgroups(L))

    def wgmma_unfenced(self, L: Lanes) -> None:
        self._fenced.difference_update(warpgroups(L))

    def wgmma_committed(self, site: int, L: Lanes) -> None:
        for group in warpgroups(L):
            self._committed[group] = self._committed.get(group, 0) + 1

    def wgmma_awaited(self, site: int, L: Lanes, count: int) -> None:
        for group in warpgroups(L):
            done = self._committed.get(group, 0) - count
            for under_way in (self._writing, self._reading):
                under_way[group] = {register: n for register, n in under_way.get(group, {}).items() if n >= done}

    def wgmma_moved(self, L: Lanes, to: int, source: int) -> None:
        """The copy is in flight as its source is."""
        for group in warpgroups(L):
            writing = self._writing.get(group)
            if writing:
                number = writing.get(source)
                if number is None:
                    writing.pop(to, None)
                else:
                    writing[to] = number

    def wgmma_changed(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        for group in warpgroups(L) if any(self._reading.values()) else ():
            reading = self._reading.get(group, {})
            if any(number in reading for number in numbers):
                message = "A register of wgmma's matrix A is overwritten before wgmma was waited for"
                self._report(message, site, L, group, WAIT)

    def wgmma_used(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        for group in warpgroups(L) if any(self._writing.values()) else ():
            writing = self._writing.get(group, {})
            if any(number in writing for number in numbers):
                self._report("A result of wgmma is used before it was waited for", site, L, group, WAIT)

    def _report(self, message: str, site: int, L: Lanes, group: int, hint: str) -> None:
        members = L.subset(np.flatnonzero(L.ids // 128 == group))
        self.batch.report(Fault("wgmma", message, site, hint=hint, among=members))
