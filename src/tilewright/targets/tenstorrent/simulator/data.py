"""A core with its data: pages of circular buffers, DST, and memory that transfers reach at barriers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.hw.tensix import FACE, TILE
from tilewright.targets.tenstorrent.simulator import numerics
from tilewright.targets.tenstorrent.simulator.core import CircularBuffer, Core
from tilewright.targets.tenstorrent.simulator.faults import Fault
from tilewright.targets.tenstorrent.simulator.numerics import BINARY, NUMPY, UNARY, rounded, spread, unpacked


class DataBuffer(CircularBuffer):
    """A circular buffer with its pages; a page that was never written holds NaN."""

    def __init__(self, entry: Mapping[str, Any], base: int) -> None:
        super().__init__(entry, base)
        self.dtype = NUMPY[self.format]
        self.data = np.full((self.pages, TILE * TILE), np.nan, dtype=self.dtype)

    def front(self, index: int) -> Any:
        """The page that a consumer sees at `index`."""
        return self.data[(self.popped + index) % self.pages]


class DataCore(Core):
    """Computes. `memory` are the pages of each tensor by name: (tiles, 1024)."""

    def __init__(
        self,
        entries: Sequence[Mapping[str, Any]],
        memory: Mapping[str, Any],
        capacity: int,
        mode: str,
        checked: bool = True,
    ) -> None:
        super().__init__(entries, {name: len(pages) for name, pages in memory.items()}, capacity, checked)
        self.memory, self.mode = memory, mode
        self.tiles = np.zeros((capacity, TILE, TILE), np.float32)

    def make_buffer(self, entry: Mapping[str, Any], base: int) -> CircularBuffer:
        return DataBuffer(entry, base)

    def extern(self, at: int) -> None:
        name = self.calls.calls[at].op.name
        raise Fault(f"calls {name}, a function of C++", "the simulator runs operations of tt; run this in wolfpine")

    # Memory.

    def land_reads(self) -> None:
        for tensor, tile, buffer, page in self.reads:
            buffer.data[page % buffer.pages] = self.memory[tensor][tile]  # type: ignore[attr-defined]
        super().land_reads()

    def land_writes(self) -> None:
        for tensor, tile, buffer, page in self.writes:
            self.memory[tensor][tile] = buffer.data[page % buffer.pages]  # type: ignore[attr-defined]
        super().land_writes()

    def l1_fill(self, at: int, address: int, *number: Any) -> None:
        super().l1_fill(at, address)
        self._page(address)[:] = number[0] if number else self.attrs(at)["number"]

    def l1_fill_scaler(self, at: int, address: int) -> None:
        super().l1_fill_scaler(at, address)
        page = self._page(address)
        page[:] = 0
        page.reshape(-1, FACE, FACE)[:, 0, :] = self.attrs(at)["number"]

    def _page(self, address: int) -> Any:
        buffer: Any = self.at_address(address)
        return buffer.data[(address - buffer.base) // buffer.page_size]

    # The engines.

    def _keep(self, dst: int, values: Any) -> None:
        self.tiles[dst] = rounded(values, self.mode)

    def _fresh(self, dst: int) -> bool:
        """Whether nothing was computed into a tile in this life of DST."""
        return dst not in self.dst_written

    def mm_mma(self, at: int, a: Any, b: Any, ia: int, ib: int, dst: int) -> None:
        fresh = self._fresh(dst)
        super().mm_mma(at, a, b, ia, ib, dst)
        left, right = unpacked(a.front(ia)), unpacked(b.front(ib))
        total = np.zeros((TILE, TILE), np.float32) if fresh else self.tiles[dst]
        for start in range(0, TILE, FACE):  # DST is rounded after each face of the inner mode
            total = rounded(total + left[:, start : start + FACE] @ right[start : start + FACE], self.mode)
        self.tiles[dst] = total

    def _fpu(self, kind: str, at: int, a: Any, b: Any, ia: int, ib: int, dst: int) -> None:
        super()._fpu(kind, at, a, b, ia, ib, dst)
        left, right = unpacked(a.front(ia)), spread(unpacked(b.front(ib)), self.attrs(at)["bcast"])
        with np.errstate(all="ignore"):
            self._keep(dst, {"add": np.add, "sub": np.subtract, "mul": np.multiply}[kind](left, right))

    def reduce(self, at: int, source: Any, scaler: Any, index: int, one: int, dst: int) -> None:
        fresh = self._fresh(dst)
        super().reduce(at, source, scaler, index, one, dst)
        attrs = self.attrs(at)
        values, factor = unpacked(source.front(index)), float(unpacked(scaler.front(one))[0, 0])
        by_row, adds = attrs["dim"] == "row", attrs["kind"] == "add"
        axis = 1 if by_row else 0
        with np.errstate(all="ignore"):
            found = (values.sum(axis, dtype=np.float32) if adds else np.fmax.reduce(values, axis)) * np.float32(factor)
        place = (slice(None), 0) if by_row else (0, slice(None))
        if fresh:
            self.tiles[dst] = 0
            self.tiles[dst][place] = 0 if adds else -np.inf
        before = self.tiles[dst][place]
        total = self.tiles[dst].copy()
        total[place] = before + found if adds else np.fmax(before, found)
        self._keep(dst, total)

    def copy(self, at: int, source: Any, index: int, dst: int) -> None:
        super().copy(at, source, index, dst)
        self._keep(dst, unpacked(source.front(index)))

    def bcast(self, at: int, source: Any, index: int, dst: int) -> None:
        super().bcast(at, source, index, dst)
        self._keep(dst, spread(unpacked(source.front(index)), self.attrs(at)["dim"]))

    def sfpu_unary(self, at: int, dst: int) -> None:
        super().sfpu_unary(at, dst)
        attrs = self.attrs(at)
        more = [np.float32(attrs["parameter"])] if "parameter" in attrs else []
        with np.errstate(all="ignore"):
            self._keep(dst, UNARY[attrs["kind"]](self.tiles[dst], *more).astype(np.float32))

    def sfpu_binary(self, at: int, left: int, right: int, dst: int) -> None:
        super().sfpu_binary(at, left, right, dst)
        with np.errstate(all="ignore"):
            self._keep(dst, BINARY[self.attrs(at)["kind"]](self.tiles[left], self.tiles[right]))

    def pack(self, at: int, dst: int, buffer: Any) -> None:
        super().pack(at, dst, buffer)
        values = self.tiles[dst]
        if self.attrs(at).get("relu"):
            values = np.fmax(values, 0)
        page = buffer.pushed + len(buffer.written) - 1
        buffer.data[page % buffer.pages] = numerics.tilize(values)[0].astype(buffer.dtype)
