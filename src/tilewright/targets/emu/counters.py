"""Counting memory traffic as the hardware would split it: sectors of global memory, wavefronts of shared memory.

A request is one instruction of one warp. Global memory moves sectors of 32 bytes; the ideal is what the distinct
bytes of a request would need. Shared memory has 32 banks of 4 bytes and serves a request in wavefronts: as many as
the busiest bank has distinct words. Requests of 8 and 16 bytes a thread go by half and quarter warps, so their ideal
is 2 and 4 wavefronts (NVIDIA Nsight Compute documentation, "Memory Tables").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.boxes import box_addresses
from tilewright.targets.emu.checks.watch import WatchingMachine
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.tensormap import TensorMap

SECTOR_SHIFT = 5
LOW48 = (1 << 48) - 1


@dataclass
class Traffic:
    """Requests, and the units (sectors or wavefronts) that they took and would have taken at best."""

    requests: int = 0
    units: int = 0
    ideal: int = 0

    def add(self, requests: int, units: int, ideal: int) -> None:
        """Count some more."""
        self.requests += requests
        self.units += units
        self.ideal += ideal


class Touched:
    """A set of sectors."""

    def __init__(self) -> None:
        self._parts: list[Array] = []
        self._size = 0

    def add(self, sectors: Array) -> None:
        """Add sectors, by number."""
        self._parts.append(np.unique(sectors))
        self._size += len(self._parts[-1])
        if self._size > 1 << 20 and len(self._parts) > 1:
            self._parts = [np.unique(np.concatenate(self._parts))]
            self._size = 0  # grow by as much again before the next time

    def count(self) -> int:
        """How many there are."""
        return len(np.unique(np.concatenate(self._parts))) if self._parts else 0


def global_traffic(L: Lanes, addr: Any, size: int) -> tuple[int, int, int]:
    """(requests, sectors, ideal sectors) of one instruction."""
    address = np.broadcast_to(addr, (L.n,)).astype(np.int64)
    warps = 1 + int(np.count_nonzero(L.warp[1:] != L.warp[:-1]))
    # Addresses of no buffer count as anything: the access itself is the fault, and comes next.
    sectors = np.unique((L.warp << 48) | (address >> SECTOR_SHIFT & LOW48))
    distinct = np.unique((L.warp << 48) | (address // size & LOW48))
    bytes_each = np.bincount((distinct >> 48) - int(L.warp[0])) * size
    return warps, len(sectors), int((-(-bytes_each // 32)).sum())


def shared_traffic(L: Lanes, addr: Any, size: int) -> tuple[int, int, int]:
    """(requests, wavefronts, ideal wavefronts) of one instruction."""
    address = np.broadcast_to(addr, (L.n,)).astype(np.int64)
    words = max(size // 4, 1)
    group = L.warp * words + L.lane.astype(np.int64) // (32 // words)
    word = ((address >> 2)[:, None] + np.arange(words)) & 0xFFFFFFFF
    distinct = np.unique((np.repeat(group, words) << 32) | word.reshape(-1))
    phase, where = distinct >> 32, distinct & 0xFFFFFFFF
    first = int(phase[0])
    busy = np.bincount((phase - first) * 32 + (where & 31), minlength=(int(phase[-1]) - first + 1) * 32)
    warps = 1 + int(np.count_nonzero(L.warp[1:] != L.warp[:-1]))
    return warps, int(busy.reshape(-1, 32).max(axis=1).sum()), len(np.unique(phase))


class Counting(Machine):
    """Counts loads and stores by instruction, whatever else the machine does with them."""

    def _count(self, site: int, space: str, counts: tuple[int, int, int]) -> None:
        if site >= 0:
            self.launch.traffic.setdefault((site, space), Traffic()).add(*counts)

    def _from_base(self, addr: Any) -> Any:
        """Addresses from the start of their buffer, as if each buffer began at a multiple of 256, as on the device."""
        memory = self.launch.memory
        inside = np.maximum(np.searchsorted(memory.start_array, addr, "right") - 1, 0)
        return addr - memory.start_array[inside] + (inside.astype(np.uint64) << np.uint64(40))

    def _global(self, site: int, L: Lanes, addr: Any, size: int, writes: bool) -> None:
        where = self._from_base(addr)
        self._count(site, "global", global_traffic(L, where, size))
        (self.launch.touched_writes if writes else self.launch.touched_reads).add(where >> np.uint64(SECTOR_SHIFT))

    def _span(self, site: int, start: int, count: int, writes: bool) -> None:
        """A copy of one run of bytes."""
        first = int(np.atleast_1d(self._from_base(np.array([start], np.uint64)))[0]) >> SECTOR_SHIFT
        sectors = first + np.arange(-(-count >> SECTOR_SHIFT) or 1, dtype=np.uint64)
        self._count(site, "global", (1, len(sectors), len(sectors)))
        (self.launch.touched_writes if writes else self.launch.touched_reads).add(sectors)

    def g_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        self._global(site, L, addr, 1 << shift, False)
        return super().g_load(site, L, addr, dtype, shift, lanes)

    def g_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        self._global(site, L, addr, 1 << shift, True)
        super().g_store(site, L, addr, value, dtype, shift, lanes)

    def s_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        self._count(site, "shared", shared_traffic(L, addr, 1 << shift))
        return super().s_load(site, L, addr, dtype, shift, lanes)

    def s_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        self._count(site, "shared", shared_traffic(L, addr, 1 << shift))
        super().s_store(site, L, addr, value, dtype, shift, lanes)

    def async_read(self, site: int, L: Lanes, source: Any, size: int) -> Array:
        self._global(site, L, source, size, False)
        return super().async_read(site, L, source, size)

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signals: Any
    ) -> None:
        if count and "global" in (from_space, to_space):
            self._span(site, start if from_space == "global" else to, count, to_space == "global")
        super().bulk_moved(site, one, from_space, start, to_space, to, count, signals)

    def tensor_moved(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], shared: int, count: int, signals: Any
    ) -> None:
        places = box_addresses(made, start)
        if len(places):
            sectors = np.unique(self._from_base(places) >> np.uint64(SECTOR_SHIFT))
            self._count(site, "global", (1, len(sectors), len(sectors)))
            (self.launch.touched_reads if signals is not None else self.launch.touched_writes).add(sectors)
        super().tensor_moved(site, one, made, start, shared, count, signals)

    def shared_rows(self, site: int, L: Lanes, addr: Array) -> Array:
        rows: Array = self.s_load(site, L, addr, np.dtype(np.uint8), 4, 16)
        return rows

    def store_shared_rows(self, site: int, L: Lanes, addr: Array, rows: Array) -> None:
        self.s_store(site, L, addr, rows, np.dtype(np.uint8), 4, 16)


class CountingWatch(Counting, WatchingMachine):
    """Counts and watches."""
