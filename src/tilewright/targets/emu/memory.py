"""The memories of a launch: host buffers as global memory, shared memory by block, local memory by thread.

Every access is resolved to (typed view, element index) and checked against the bounds of what it names, so that
no address of an emulated program can touch anything else. Addresses: global ones are real host addresses;
`SHARED_WINDOW` and `LOCAL_WINDOW` are where the generic address space shows shared and local memory.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes

SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 1 << 57
WINDOW_END = LOCAL_WINDOW + (1 << 32)
CLUSTER_SHIFT = 24
"""A shared address with rank + 1 in the bits from here up names another block of the cluster."""

NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Buffer:
    """Host memory that a kernel may touch."""

    address: int
    nbytes: int
    writable: bool = True
    name: str = ""

    @property
    def end(self) -> int:
        return self.address + self.nbytes


class Region:
    """A buffer with its typed views; a view covers the elements that lie in it as a whole and aligned."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(memoryview((ctypes.c_ubyte * buffer.nbytes).from_address(buffer.address)), np.uint8)
        self.views: dict[tuple[Any, int, int], tuple[Any, Array]] = {}

    def view(self, dtype: Any, shift: int, lanes: int) -> tuple[Any, Array]:
        """(first address, array) of `dtype` elements; `lanes` > 1: rows of that many, aligned as a whole."""
        key = (dtype, shift, lanes)
        found = self.views.get(key)
        if found is None:
            size = 1 << shift
            start = -(-self.buffer.address // size) * size
            count = max(self.buffer.end - start, 0) // size
            skip = start - self.buffer.address
            array = self.bytes[skip : skip + count * size].view(dtype) if count else np.empty(0, dtype)
            if lanes > 1:
                array = array.reshape(-1, lanes)
            found = self.views[key] = (np.uint64(start), array)
        return found


class GlobalMemory:
    """The buffers of a launch, by address."""

    def __init__(self, buffers: list[Buffer], checks: bool = False) -> None:
        kept = sorted((b for b in buffers if b.nbytes > 0), key=lambda b: (b.address, b.nbytes))
        merged: list[Buffer] = []
        for buffer in kept:
            if merged and buffer.address < merged[-1].end:
                merged[-1] = _overlapping(merged[-1], buffer)
            else:
                merged.append(buffer)
        self.regions = [Region(buffer) for buffer in merged]
        self._index()
        self.checks = checks
        self.cache: dict[int, tuple[Any, Array]] = {}

    def load(self, site: int, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """Elements (or rows of `lanes` elements) at byte addresses `addr`."""
        cached = self.cache.get(site)
        if cached is not None and shift:
            # Below the buffer the difference wraps round, and shifted it is beyond any view: one test for both ends.
            # Unshifted it could be negative as a signed index, which NumPy would take.
            offset = (addr - cached[0]) >> shift
            if self.checks:
                self._aligned(site, addr, shift)
            try:
                if offset.__class__ is np.ndarray:
                    return cached[1].take(offset.view(np.int64), 0)
                return cached[1][offset]
            except IndexError:
                pass
        return self._load(site, addr, dtype, shift, lanes)

    def _load(self, site: int, addr: Any, dtype: Any, shift: int, lanes: int) -> Any:
        places = self.resolve(site, addr, dtype, shift, lanes, False)
        if len(places) == 1:
            return places[0][0][places[0][1]]
        shape = (len(addr), lanes) if lanes > 1 else (len(addr),)
        out = np.empty(shape, dtype)
        for view, index, at in places:
            out[at] = view[index]
        return out

    def store(self, site: int, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """Write elements (or rows). Of several threads at one address the last wins."""
        cached = self.cache.get(site)
        if cached is not None and shift and addr.__class__ is np.ndarray:
            if self.checks:
                self._aligned(site, addr, shift)
            try:
                cached[1][((addr - cached[0]) >> shift).view(np.int64)] = value
                return
            except IndexError:
                pass
        self.put(self.resolve(site, addr, dtype, shift, lanes, True), value, lanes)

    def put(self, places: list[tuple[Array, Any, Array | None]], value: Any, lanes: int) -> None:
        """Write elements (or rows) to what `resolve` has found."""
        rank = 2 if lanes > 1 else 1
        for view, index, at in places:
            many = value.__class__ is np.ndarray and value.ndim == rank
            if index.__class__ is not np.ndarray:
                view[index] = value[-1] if many else value
            else:
                view[index] = value[at] if many and at is not None else value

    def resolve(
        self, site: int, addr: Any, dtype: Any, shift: int, lanes: int, write: bool
    ) -> list[tuple[Array, Any, Array | None]]:
        """Where addresses lie: (view, element index, positions among `addr`; None for all)."""
        size = 1 << shift
        self._aligned(site, addr, shift)
        cached = self.cache.get(site)
        if cached is None:
            cached = self._find(site, addr, dtype, shift, lanes, write)
        base, view = cached
        offset = (addr - base) >> shift
        if int(offset.max()) < len(view) and (shift or int((addr - base).max()) < len(view)):
            index = offset.view(np.int64) if offset.__class__ is np.ndarray else int(offset)
            return [(view, index, None)]
        return self._spread(site, np.atleast_1d(addr), dtype, shift, lanes, write, size, addr.__class__)

    def _aligned(self, site: int, addr: Any, shift: int) -> None:
        if not shift:
            return
        wrong = addr & addr.dtype.type((1 << shift) - 1)
        if np.count_nonzero(wrong):
            raise misaligned(site, addr, wrong, shift, "global")

    def _find(self, site: int, addr: Any, dtype: Any, shift: int, lanes: int, write: bool) -> tuple[Any, Array]:
        first = int(addr[0]) if addr.__class__ is np.ndarray else int(addr)
        index = bisect_right(self.starts, first) - 1
        if index < 0 or first + (1 << shift) > self.regions[index].buffer.end:
            return np.uint64(0), np.empty(0, dtype)
        region = self.regions[index]
        if write and not region.buffer.writable:
            return np.uint64(0), np.empty(0, dtype)
        found = self.cache[site] = region.view(dtype, shift, lanes)
        return found

    def _spread(
        self,
        site: int,
        addr: Array,
        dtype: Any,
        shift: int,
        lanes: int,
        write: bool,
        size: int,
        kind: Any,
        keep: bool = True,
    ) -> list[tuple[Array, Any, Array | None]]:
        """Addresses in several buffers."""
        inside = np.searchsorted(self.start_array, addr, "right") - 1
        ends = self.end_array[np.maximum(inside, 0)] if len(self.end_array) else np.zeros(len(addr), np.uint64)
        room = ends - addr
        bad = (inside < 0) | (room < np.uint64(size)) | (ends < addr)
        if bad.any():
            raise self.out_of_bounds(site, addr, bad, size, write, kind is not np.ndarray)
        places: list[tuple[Array, Any, Array | None]] = []
        for number in np.unique(inside):
            region = self.regions[number]
            at = np.flatnonzero(inside == number)
            if write and not region.buffer.writable:
                raise read_only(site, addr, at, region.buffer, kind is not np.ndarray)
            base, view = region.view(dtype, shift, lanes)
            index = ((addr[at] - base) >> shift).view(np.int64)
            if keep:
                self.cache[site] = (base, view)
            if kind is not np.ndarray:
                return [(view, int(index[0]), None)]
            places.append((view, index, None if len(at) == len(addr) else at))
        return places

    def out_of_bounds(self, site: int, addr: Array, bad: Array, size: int, write: bool, uniform: bool) -> Fault:
        first = int(addr[np.flatnonzero(bad)[0]])
        values: dict[str, Any] = {"address": f"{first:#x}", "bytes": size}
        nearest = self._nearest(first)
        if nearest is not None and -(1 << 32) < first - nearest.address < (1 << 32) + nearest.nbytes:
            values["nearest buffer"] = describe(nearest)
            distance = first - nearest.end if first >= nearest.address else first - nearest.address
            if first < nearest.address:
                values["distance"] = f"{-distance} bytes before its start"
            elif first >= nearest.end:
                values["distance"] = f"{distance} bytes past its end"
            else:
                values["distance"] = f"its last {nearest.end - first} bytes, {size} wanted"
        else:
            values["buffers"] = f"{len(self.regions)}, none near"
        what = "write" if write else "read"
        hint = "a null pointer?" if first < 4096 else "compare the index with the size of the buffer"
        lanes = None if uniform else np.flatnonzero(bad)
        return Fault("bounds", f"Out-of-bounds {what} of global memory", site, lanes, values, hint)

    def _nearest(self, address: int) -> Buffer | None:
        buffers = [region.buffer for region in self.regions]

        def away(b: Buffer) -> int:
            return max(b.address - address, address - b.end + 1, 0)

        return min(buffers, key=away, default=None)

    def add(self, buffer: Buffer) -> None:
        """One more buffer, for device memory allocated while a kernel runs."""
        index = bisect_right(self.starts, buffer.address)
        self.regions.insert(index, Region(buffer))
        self._index()

    def remove(self, address: int) -> None:
        self.regions = [region for region in self.regions if region.buffer.address != address]
        self.cache.clear()
        self._index()

    def _index(self) -> None:
        self.starts = [region.buffer.address for region in self.regions]
        self.start_array = np.array(self.starts, np.uint64)
        self.end_array = np.array([region.buffer.end for region in self.regions], np.uint64)

    def released(self) -> None:
        """A thread releases, to all devices, what it has written and seen."""

    def at(self, address: int, nbytes: int) -> Array | None:
        """The bytes at an address, None where they are not all in one buffer."""
        index = bisect_right(self.starts, address) - 1
        if index < 0 or address + nbytes > self.regions[index].buffer.end:
            return None
        start = address - self.starts[index]
        data: Array = self.regions[index].bytes[start : start + nbytes]
        return data

    def octets(self, site: int, addr: Array) -> Array:
        """Single bytes, whatever type the site reads otherwise."""
        out = np.empty(len(addr), np.uint8)
        for view, index, at in self._spread(site, addr, np.dtype(np.uint8), 0, 1, False, 1, np.ndarray, False):
            out[slice(None) if at is None else at] = view[index]
        return out

    def buffer_of(self, address: int) -> Buffer | None:
        index = bisect_right(self.starts, address) - 1
        if index < 0 or address >= self.regions[index].buffer.end:
            return None
        return self.regions[index].buffer


def _overlapping(a: Buffer, b: Buffer) -> Buffer:
    """Two arguments that are views of one array: their union, writable if either is."""
    end = max(a.end, b.end)
    name = a.name if a.name == b.name else f"{a.name}, {b.name}"
    return Buffer(a.address, end - a.address, a.writable or b.writable, name)


def describe(buffer: Buffer) -> str:
    """A buffer in words."""
    name = f"{buffer.name}: " if buffer.name else ""
    return f"{name}{buffer.address:#x} to {buffer.end:#x}, {buffer.nbytes} bytes"


def misaligned(site: int, addr: Any, wrong: Any, shift: int, space: str, among: Lanes | None = None) -> Fault:
    """The fault of addresses that are no multiple of the access size."""
    uniform = addr.__class__ is not np.ndarray
    lanes = None if uniform else np.flatnonzero(wrong)
    first = int(addr) if uniform else int(addr[lanes[0]])  # type: ignore[index]
    values = {"address": f"{first:#x}", "needs": f"a multiple of {1 << shift}"}
    return Fault("misaligned", f"Misaligned access to {space} memory", site, lanes, values, None, among)


def read_only(site: int, addr: Array, at: Array, buffer: Buffer, uniform: bool) -> Fault:
    """The fault of a write to memory that may only be read."""
    values = {"address": f"{int(addr[at[0]]):#x}", "buffer": describe(buffer)}
    return Fault("readonly", "Write to read-only global memory", site, None if uniform else at, values)


REMEMBERED = 1 << 13
"""Accesses to shared memory of at most so many threads are remembered: for more, it would save little."""


class SharedMemory:
    """Shared memory of the blocks of a batch: `stride` bytes from one block to the next, `size` of them usable."""

    def __init__(self, slots: int, size: int, checks: bool = False) -> None:
        self.size = size
        self.stride = -(-max(size, 1) // 1024) * 1024
        self.slots = slots
        self.bytes = np.zeros(slots * self.stride, np.uint8)
        self.views: dict[tuple[Any, int], Array] = {}
        self.last: dict[int, tuple[Any, Lanes, int, Array]] = {}
        self.checks = checks
        self.block_alive: Array | None = None

    def view(self, dtype: Any, lanes: int) -> Array:
        found = self.views.get((dtype, lanes))
        if found is None:
            found = self.bytes.view(dtype)
            if lanes > 1:
                found = found.reshape(-1, lanes)
            self.views[dtype, lanes] = found
        return found

    def index(self, site: int, L: Lanes, addr: Any, shift: int) -> Any:
        """Element indices of shared addresses (offsets from the block's start, or cluster addresses).

        A site that got the same arrays the last time, which never change, gets the same answer.
        """
        last = self.last.get(site)
        if last is not None and last[0] is addr and last[1] is L and last[2] == shift:
            return last[3]
        top = int(addr.max())
        if top > self.size - (1 << shift):
            return self._far(site, L, addr, shift)
        if self.checks and shift:
            wrong = addr & addr.dtype.type((1 << shift) - 1)
            if np.count_nonzero(wrong):
                raise misaligned(site, addr, wrong, shift, "shared", L)
        if addr.__class__ is np.ndarray:
            index: Any = (addr >> shift).astype(np.int64) + L.offset(self.stride, shift)
            if L.n <= REMEMBERED:
                self.last[site] = addr, L, shift, index
            return index
        return np.int64(top >> shift) + L.offset(self.stride, shift)

    def _far(self, site: int, L: Lanes, addr: Any, shift: int) -> Any:
        """Addresses of other blocks of the cluster; others are out of bounds."""
        uniform = addr.__class__ is not np.ndarray
        full = np.broadcast_to(np.asarray(addr).astype(np.int64), (L.n,))
        rank = (full >> CLUSTER_SHIFT) - 1
        inner = full & ((1 << CLUSTER_SHIFT) - 1)
        bad = (inner > self.size - (1 << shift)) | (rank >= L.shape.cluster_blocks)
        bad |= (full < 0) | (full >= SHARED_WINDOW)
        if bad.any():
            raise self._out_of_bounds(site, L, full, bad, shift, uniform)
        wrong = inner & ((1 << shift) - 1)
        if wrong.any():
            raise misaligned(site, full, wrong, shift, "shared", L)
        slot = np.where(rank < 0, L.slot, cluster_slot(L, np.maximum(rank, 0)))
        if self.block_alive is not None and not self.block_alive[slot].all():
            gone = np.flatnonzero(self.block_alive[slot] == 0)
            raise Fault("cluster", "Access to shared memory of a block that has ended", site, gone,
                        hint="keep the block alive by a cluster barrier before its end", among=L)  # fmt: skip
        return (inner + slot * self.stride) >> shift

    def _out_of_bounds(self, site: int, L: Lanes, addr: Array, bad: Array, shift: int, uniform: bool) -> Fault:
        lanes = np.flatnonzero(bad)
        values = {"address": f"{int(addr[lanes[0]]):#x}", "bytes": 1 << shift, "shared memory": f"{self.size} bytes"}
        hint = "compare the index with the size; a launch's smem= must cover all that the kernel allocates"
        if self.size == 0:
            hint = "pass smem= for dynamic shared memory"
        message = "Out-of-bounds access to shared memory"
        return Fault("bounds", message, site, None if uniform else lanes, values, hint, L)

    def load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        index = self.index(site, L, addr, shift)
        view = self.view(dtype, lanes)
        return view.take(index, 0) if index.__class__ is np.ndarray else view[index]

    def store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        index = self.index(site, L, addr, shift)
        write(self.view(dtype, lanes), index, value, lanes)

    def resolve(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int) -> tuple[Array, Any]:
        return self.view(dtype, 1), self.index(site, L, addr, shift)


def cluster_slot(L: Lanes, rank: Array) -> Array:
    """The slot of the block with `rank` in each lane's cluster; a batch holds whole clusters, in rank order."""
    size = L.shape.cluster_blocks
    slot: Array = L.slot // size * size + rank
    return slot


def write(view: Array, index: Any, value: Any, lanes: int = 1) -> None:
    """`view[index] = value`, where a uniform index takes the last thread's value."""
    many = value.__class__ is np.ndarray and value.ndim == (2 if lanes > 1 else 1)
    if many and index.__class__ is not np.ndarray:
        value = value[-1]
    view[index] = value


class LocalMemory:
    """Local memory: a row of `size` bytes for each lane of a batch, grown as functions are called."""

    def __init__(self, lanes: int, size: int, checks: bool = False) -> None:
        self.lanes = lanes
        self.size = 0
        self.checks = checks
        self.bytes = np.zeros(0, np.uint8)
        self.written = np.zeros(0, np.uint8)
        self.wanted = size
        self.reached = size
        """The end of all frames that there have been."""

    def reserve(self, size: int) -> None:
        """Make rows at least `size` bytes long."""
        self.wanted = max(self.wanted, size)
        self.reached = max(self.reached, size)

    def _grow(self) -> None:
        size = -(-max(self.wanted, 2 * self.size) // 16) * 16
        table = np.zeros((self.lanes, size), np.uint8)
        if self.size:
            table[:, : self.size] = self.bytes.reshape(self.lanes, self.size)
        if self.checks:
            marks = np.zeros((self.lanes, size), np.uint8)
            if self.size:
                marks[:, : self.size] = self.written.reshape(self.lanes, self.size)
            self.written = marks.reshape(-1)
        self.size, self.wanted = size, size
        self.bytes = table.reshape(-1)

    def index(self, site: int, L: Lanes, addr: Any, shift: int) -> Array:
        if self.size < self.wanted:
            self._grow()
        top = int(addr.max())
        if top > self.size - (1 << shift):
            raise self._out_of_bounds(site, L, addr, shift, self.size)
        if shift:
            wrong = addr & addr.dtype.type((1 << shift) - 1)
            if wrong.any():
                raise misaligned(site, addr, wrong, shift, "local", L)
        if addr.__class__ is np.ndarray:
            start: Any = addr.astype(np.int64)
        else:
            start = top
        index: Array = (L.ids * self.size + start) >> shift
        return index

    def beyond(self, site: int, L: Lanes, addr: Any, shift: int, end: int) -> Fault:
        """The fault of addresses behind `end`, where the frames of the functions that run do."""
        full = np.atleast_1d(addr).astype(np.uint64)
        last = end - (1 << shift)
        bad = np.flatnonzero(full > np.uint64(last)) if last >= 0 else np.arange(len(full))
        if int(full.max()) + (1 << shift) > self.reached:
            return self._out_of_bounds(site, L, addr, shift, end)
        values = {"address": f"{int(full[bad[0]]):#x}", "bytes": 1 << shift, "functions that run": f"up to {end:#x}"}
        hint = "a local array ends with its function: return its values, or let the caller pass the array"
        lanes = bad if addr.__class__ is np.ndarray else None
        return Fault("bounds", "Access to local memory of a function that has returned", site, lanes, values, hint, L)

    def _out_of_bounds(self, site: int, L: Lanes, addr: Any, shift: int, size: int) -> Fault:
        full = np.atleast_1d(addr)
        bad = np.flatnonzero(full > full.dtype.type(max(size - (1 << shift), 0)))
        values = {"address": f"{int(full[bad[0]]) if len(bad) else int(full.max()):#x}", "bytes": 1 << shift,
                  "local memory": f"{size} bytes a thread"}  # fmt: skip
        lanes = bad if addr.__class__ is np.ndarray else None
        return Fault("bounds", "Out-of-bounds access to local memory", site, lanes, values, None, L)

    def view(self, dtype: Any, lanes: int) -> Array:
        found = self.bytes.view(dtype)
        return np.asarray(found.reshape(-1, lanes) if lanes > 1 else found)

    def load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        index = self.index(site, L, addr, shift)
        return self.view(dtype, lanes).take(index, 0)

    def store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        index = self.index(site, L, addr, shift)
        self.view(dtype, lanes)[index] = value
        if self.checks:
            self.written.reshape(-1, np.dtype(dtype).itemsize * lanes)[index] = 1  # each byte

    def copy(self, L: Lanes, source: int, target: int, size: int) -> None:
        """Copy bytes of each lane, with whether they were written."""
        if self.size < self.wanted:
            self._grow()
        for table in (self.bytes, self.written) if self.checks else (self.bytes,):
            rows = table.reshape(self.lanes, self.size)
            rows[L.ids, target : target + size] = rows[L.ids, source : source + size]

    def forget(self, L: Lanes, start: int, size: int) -> None:
        """Some bytes of each lane count as never written from now on."""
        if self.size < self.wanted:
            self._grow()
        if self.checks and size:
            self.written.reshape(self.lanes, self.size)[L.ids, start : start + size] = 0

    def mark(self, cells: Array, written: Any) -> None:
        """Say of some bytes whether what is there is written."""
        self.written[cells] = written

    def unwritten(self, L: Lanes, addr: Any, shift: int) -> Array:
        """Which bytes that lanes read were never written: a row a lane."""
        index = self.index(-1, L, addr, shift) << shift
        return np.asarray(self.written[index[:, None] + np.arange(1 << shift)] == 0)

    def resolve(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int) -> tuple[Array, Array]:
        index = self.index(site, L, addr, shift)
        return self.view(dtype, 1), index


def check_buffers(buffers: list[tuple[int, int, bool]]) -> list[Buffer]:
    """Buffers of a launch from (address, bytes, writable) triples."""
    checked = []
    for number, (address, nbytes, writable) in enumerate(buffers):
        if address < 0 or nbytes < 0 or address + nbytes > SHARED_WINDOW:
            raise ArgumentError(f"buffer {number} is not host memory",
                                values={"address": hex(address), "bytes": nbytes})  # fmt: skip
        checked.append(Buffer(address, nbytes, writable, f"buffer {number}"))
    return checked
