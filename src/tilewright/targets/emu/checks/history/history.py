"""The service that keeps the last accesses to memory, and finds those that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.cache import AccessCache
from tilewright.targets.emu.checks.history.detector import Detector
from tilewright.targets.emu.checks.history.footprint import Footprint
from tilewright.targets.emu.checks.history.shadow import GlobalShadows, Shadow
from tilewright.targets.emu.checks.observer import Access, Batch, Observer
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import ONE_TICK
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.memory import parts_of


class History(Observer):
    """Shadow memory of a batch's shared memory (`shared`) and of the launch's global memory (`everywhere`).

    Observes plain accesses, atomics and mbarriers, and has the `detector` check and note each. Asynchronous operations
    are noted by the checker that knows whose they are.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self.order = batch.service(HappensBefore)
        self.shared = Shadow(len(batch.shared.bytes))
        self.everywhere = batch.of_launch(GlobalShadows)
        self.detector = Detector(batch, self.order, self.everywhere)
        self.before: tuple[Observer, ...] = (self,)
        self._cache: AccessCache | None = None
        if self.order.only_barriers and batch.shape.cluster_blocks == 1:
            self._cache = AccessCache(self.shared, self.order)
        self._made: dict[int, list[int]] = {}
        self._made_known: dict[int, list[int]] = {}

    # Events.

    def shared_access(self, access: Access) -> None:
        cache = self._cache
        if cache is not None:
            if cache.repeated(access):
                return
            cache.remember(access)
        self._shared(access)

    def global_access(self, access: Access) -> None:
        self._global(access)

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> None:
        shift = size.bit_length() - 1
        for part in parts_of(L, space, addr):
            if part.space == "global":
                self._global(Access("global", site, part.L, part.addr, None, shift, True))
            elif part.space == "shared":
                index = self.batch.shared.index(site, part.L, part.addr, shift)
                self._shared(Access("shared", site, part.L, part.addr, index, shift, True))

    def allocated(self, addresses: Array) -> None:
        self.everywhere.forget(addresses)

    def mbarrier_made(self, site: int, L: Lanes, index: Array) -> None:
        self._shared(Access("shared", site, L, index, index, 3, True))
        for lane, word in zip(L.ids.tolist(), index.tolist(), strict=True):
            self._made.setdefault(lane, []).append(word << 3)

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        self._shared(Access("shared", site, L, index, index, 3, False))

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        self._shared(Access("shared", site, L, index, index, 3, False))

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        if kind == "mbarrier_init":
            for lane in L.ids.tolist():
                self._made_known.setdefault(lane, []).extend(self._made.pop(lane, ()))

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        """mbarriers that a fence has shown to the cluster: their initialisation precedes all that is done from now."""
        for lane in L.ids.tolist() if relaxed and self._made_known else ():
            for offset in self._made_known.pop(lane, ()):
                cells, _ = self.shared.granules(np.array([offset]), 8)
                self.shared.writes[cells] &= ONE_TICK - np.uint64(1)

    # Accesses.

    def _shared(self, access: Access) -> None:
        now = self.shared_of(access)
        if access.writes:
            self.detector.write(now)
        else:
            self.detector.read(now)

    def _global(self, access: Access) -> None:
        addr, data = access.addresses, _data(access)
        for shadow, base, at in self.everywhere.of(addr):
            L = access.L if at is None else access.L.subset(at)
            offsets = ((addr if at is None else addr[at]) - np.uint64(base)).view(np.int64)
            mine = data if at is None or data is None else (_pick(data[0], at), *data[1:])
            touched = shadow.granules(offsets, access.size)
            now = Footprint(self.order, shadow, access.site, L, touched, offsets, "global", base, mine)
            if access.writes:
                self.detector.write(now)
            else:
                self.detector.read(now)

    def shared_of(self, access: Access, asynchronous: bool = False) -> Footprint:
        """What an access touches of shared memory."""
        touched = self.shared.touched(access)
        return Footprint(self.order, self.shared, access.site, access.L, touched, access.offsets, data=_data(access),
                         asynchronous=asynchronous)  # fmt: skip

    def shared_by(self, site: int, one: Lanes, offsets: Array, size: int) -> Footprint:
        """An asynchronous operation of one thread touches shared memory at many offsets, `size` bytes at each."""
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        touched = self.shared.granules(offsets, size)
        return Footprint(self.order, self.shared, site, many, touched, offsets, asynchronous=True)

    def global_by(self, site: int, one: Lanes, addresses: Array, size: int) -> Iterator[Footprint]:
        """The same of global memory, buffer by buffer."""
        for shadow, base, at in self.everywhere.of(addresses) if len(addresses) else ():
            offsets = ((addresses if at is None else addresses[at]) - np.uint64(base)).view(np.int64)
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            touched = shadow.granules(offsets, size)
            yield Footprint(self.order, shadow, site, many, touched, offsets, "global", base, asynchronous=True)


def _data(access: Access) -> tuple[Any, Any, int] | None:
    """What a store writes, None where it is not known or there is no store."""
    return (access.value, access.dtype, access.count) if access.writes and access.dtype is not None else None


def _pick(value: Any, at: Array) -> Any:
    return value[at] if value.__class__ is np.ndarray else value
