"""Global memory of a launch whose device shares it with others."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.shadow import GlobalShadows, Shadow
from tilewright.targets.emu.checks.order.strength import SYS, Strength, strength_of
from tilewright.targets.emu.fleet.late import LateWrites
from tilewright.targets.emu.image import Image
from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.memory import Buffer, GlobalMemory

CHUNK = 20
"""The history of memory is kept for pieces of 2**20 bytes, since launches name buffers of different extents."""


class FleetMemory(GlobalMemory):
    """Memory whose writes may reach other devices late; `shared` are the buffers that they see."""

    def __init__(
        self, buffers: list[Buffer], shared: list[Buffer], checks: bool, image: Image, late: LateWrites
    ) -> None:
        super().__init__([*buffers, *shared], checks)
        self._shared = shared
        self._image, self._late = image, late
        self._strengths: dict[int, Strength] = {}
        self._now = Strength()

    def released(self) -> None:
        self._late.deliver()

    def load(self, site: int, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        self._seen(addr, 1 << shift)
        return super().load(site, addr, dtype, shift, lanes)

    def store(self, site: int, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        self.put(self.resolve(site, addr, dtype, shift, lanes, True), value, lanes)

    def resolve(
        self, site: int, addr: Any, dtype: Any, shift: int, lanes: int, write: bool
    ) -> list[tuple[Array, Any, Array | None]]:
        self._now = self._strength(site)
        if write and self._now.releases and self._now.scope == SYS:
            self._late.deliver()
        self._seen(addr, 1 << shift)
        return super().resolve(site, addr, dtype, shift, lanes, write)

    def put(self, places: list[tuple[Array, Any, Array | None]], value: Any, lanes: int) -> None:
        if not self._late.late or self._now.releases:
            super().put(places, value, lanes)
            return
        for view, index, at in places:
            if not self._is_shared(view):
                super().put([(view, index, at)], value, lanes)
                continue
            rows = np.atleast_1d(index)
            many = value.__class__ is np.ndarray and value.ndim == (2 if lanes > 1 else 1)
            picked = value[-1:] if many and index.__class__ is not np.ndarray else value
            picked = picked[at] if many and at is not None else picked
            values = np.broadcast_to(picked, (len(rows), lanes) if lanes > 1 else (len(rows),))
            cells = (rows[:, None] * lanes + np.arange(lanes)).reshape(-1)
            self._late.write(view.reshape(-1), cells, values.reshape(-1).astype(view.dtype))

    def octets(self, site: int, addr: Array) -> Array:
        self._late.deliver()
        return super().octets(site, addr)

    def at(self, address: int, nbytes: int) -> Array | None:
        self._late.deliver()
        return super().at(address, nbytes)

    def _seen(self, addr: Any, size: int) -> None:
        """The device's own accesses see all that it has written."""
        if self._late.touched(addr, size):
            self._late.deliver()

    def _strength(self, site: int) -> Strength:
        found = self._strengths.get(site)
        if found is None:
            found = self._strengths[site] = strength_of(self._image.sites[site])
        return found

    def _is_shared(self, view: Array) -> bool:
        start = view.__array_interface__["data"][0]
        return any(buffer.address <= start < buffer.end for buffer in self._shared)


class FleetShadows(GlobalShadows):
    """The history of all memory, by address, for all launches that are under way."""

    def __init__(self) -> None:
        self.time = 0
        self._shadows: dict[int, Shadow] = {}

    def of(self, addr: Array) -> list[tuple[Shadow, int, Array | None]]:
        chunks = np.asarray(addr) >> np.uint64(CHUNK)
        first = int(chunks[0])
        if (chunks == chunks[0]).all():
            return [(self._chunk(first), first << CHUNK, None)]
        return [(self._chunk(int(n)), int(n) << CHUNK, np.flatnonzero(chunks == n)) for n in np.unique(chunks)]

    def forget(self, addresses: Array) -> None:
        """What a kernel allocates lies among other memory here, whose history goes with it."""
        for chunk in np.unique(addresses >> np.uint64(CHUNK)).tolist():
            self._shadows.pop(chunk, None)

    def bytes_at(self, address: int) -> Array:
        return np.frombuffer(
            memoryview((ctypes.c_ubyte * (1 << CHUNK)).from_address(address)), np.uint8
        )  # few are looked at

    def _chunk(self, number: int) -> Shadow:
        if number not in self._shadows:
            self._shadows[number] = Shadow(1 << CHUNK)
        return self._shadows[number]
