"""Counting memory traffic as the hardware would split it: sectors of global memory, wavefronts of shared memory.

A request is one instruction of one warp. Global memory moves sectors of 32 bytes; the ideal is what the distinct
bytes of a request would need. Shared memory has 32 banks of 4 bytes and serves a request in wavefronts: as many as
the busiest bank has distinct words. Requests of 8 and 16 bytes a thread go by half and quarter warps, so their ideal
is 2 and 4 wavefronts (NVIDIA Nsight Compute documentation, "Memory Tables"). `cp.async` writes shared memory once for
each line of 128 bytes of global memory that a half or quarter warp reads, as ncu counts on an H200.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.boxes import box_addresses
from tilewright.targets.emu.checks.observer import Access, Batch, Observer
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.tensormap import TensorMap

SECTOR_SHIFT = 5
LINE_SHIFT = 7
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
    return _traffic(L, addr, size, phases_of(L, size))


def copied_traffic(L: Lanes, addr: Any, size: int, source: Any) -> tuple[int, int, int]:
    """The same of `cp.async`, which reads the addresses `source` of global memory."""
    phases = phases_of(L, size)
    requests, _, ideal = _traffic(L, addr, size, phases)
    lines = np.broadcast_to(source, (L.n,)).astype(np.int64) >> LINE_SHIFT & LOW48
    parts = np.unique((phases << 48) | lines, return_inverse=True)[1].reshape(-1)
    return requests, _traffic(L, addr, size, parts)[1], ideal


def phases_of(L: Lanes, size: int) -> Array:
    """The part of a request that each lane belongs to: a whole warp, half or a quarter of one."""
    words = max(size // 4, 1)
    return L.warp * words + L.lane.astype(np.int64) // (32 // words)


def _traffic(L: Lanes, addr: Any, size: int, group: Array) -> tuple[int, int, int]:
    """(requests, wavefronts, parts) where each part of `group` is served apart from the others."""
    address = np.broadcast_to(addr, (L.n,)).astype(np.int64)
    words = max(size // 4, 1)
    word = ((address >> 2)[:, None] + np.arange(words)) & 0xFFFFFFFF
    distinct = np.unique((np.repeat(group, words) << 32) | word.reshape(-1))
    phase, where = distinct >> 32, distinct & 0xFFFFFFFF
    first = int(phase[0])
    busy = np.bincount((phase - first) * 32 + (where & 31), minlength=(int(phase[-1]) - first + 1) * 32)
    warps = 1 + int(np.count_nonzero(L.warp[1:] != L.warp[:-1]))
    return warps, int(busy.reshape(-1, 32).max(axis=1).sum()), len(np.unique(phase))


class TrafficTable:
    """What a launch has counted: traffic by instruction and state space, and the sectors that it touched."""

    def __init__(self, batch: Batch | None = None) -> None:
        self.lines: dict[tuple[int, str], Traffic] = {}
        self.read, self.written = Touched(), Touched()

    def add(self, site: int, space: str, counts: tuple[int, int, int]) -> None:
        """Count (requests, units, ideal) of an instruction."""
        if site >= 0:
            self.lines.setdefault((site, space), Traffic()).add(*counts)

    @property
    def distinct_sectors(self) -> int:
        """Sectors that were read plus those that were written, each once."""
        return self.read.count() + self.written.count()


class TrafficCounter(Observer):
    """Counts loads, stores and copies by instruction."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._table = batch.of_launch(TrafficTable)

    def global_access(self, access: Access) -> None:
        where = self._from_base(access.address)
        self._table.add(access.site, "global", global_traffic(access.L, where, access.size))
        (self._table.written if access.writes else self._table.read).add(where >> np.uint64(SECTOR_SHIFT))

    def shared_access(self, access: Access) -> None:
        self._table.add(access.site, "shared", shared_traffic(access.L, access.address, access.size))

    def copy_written(self, access: Access) -> None:
        source = self._from_base(access.source)
        self._table.add(access.site, "shared", copied_traffic(access.L, access.address, access.size, source))

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:
        if "global" in (from_space, to_space):
            begin = start if from_space == "global" else to
            first = int(np.atleast_1d(self._from_base(np.array([begin], np.uint64)))[0]) >> SECTOR_SHIFT
            sectors = first + np.arange(-(-count >> SECTOR_SHIFT) or 1, dtype=np.uint64)
            self._copied(site, sectors, to_space == "global")

    def tensor_read(self, site: int, one: Lanes, made: TensorMap, start: list[int], signals: list[int]) -> None:
        self._box(site, made, start, False)  # once, however many blocks of the cluster it goes to

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:
        self._box(site, made, start, True)

    def _box(self, site: int, made: TensorMap, start: list[int], writes: bool) -> None:
        places = box_addresses(made, start)
        if len(places):
            self._copied(site, np.unique(self._from_base(places) >> np.uint64(SECTOR_SHIFT)), writes)

    def _copied(self, site: int, sectors: Array, writes: bool) -> None:
        self._table.add(site, "global", (1, len(sectors), len(sectors)))
        (self._table.written if writes else self._table.read).add(sectors)

    def _from_base(self, addr: Any) -> Any:
        """Addresses from the start of their buffer, as if each buffer began at a multiple of 256, as on the device."""
        memory = self.batch.memory
        inside = np.maximum(np.searchsorted(memory.start_array, addr, "right") - 1, 0)
        return addr - memory.start_array[inside] + (inside.astype(np.uint64) << np.uint64(40))
