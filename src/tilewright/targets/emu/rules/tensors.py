"""Tensor copies (PTX ISA 9.7.9.27): tiles and im2col columns, between global and shared memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.numerics.formats import OOB_NAN
from tilewright.targets.emu.numerics.im2col import pixels
from tilewright.targets.emu.numerics.wgmma import swizzled
from tilewright.targets.emu.ptx import Instruction, Mem, Operand, Vec
from tilewright.targets.emu.rules.atomics import check_operation, combine
from tilewright.targets.emu.rules.barriers import complete_bytes
from tilewright.targets.emu.rules.copies import REDUCTIONS, at_lane, barrier_index, place, span, targets
from tilewright.targets.emu.rules.memory import address
from tilewright.targets.emu.runtime import provide

# Tensor copies.


@rule("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
def tensor(c: BlockCoder, i: Instruction) -> None:
    spaces = [m.split("::")[0] for m in i.mods if m.split("::")[0] in ("shared", "global")]
    unknown = [m for m in i.mods if m.startswith(("im2col", "tile")) and m not in ("im2col", "im2col_no_offs", "tile")]
    if unknown:
        raise c.fail(f"{i.opcode}: there is no mode .{unknown[0]}")
    if spaces[:1] == ["shared"]:
        _load_tensor(c, i)
    else:
        _store_tensor(c, i)


def coordinates(c: BlockCoder, mem: Operand) -> tuple[str, list[str]]:
    """The address of the map and the coordinates of `[map, {x, y}]`."""
    assert isinstance(mem, Mem)
    coords = mem.coords[0]
    items = coords.items if isinstance(coords, Vec) else (coords,)
    return address(c, Mem(mem.base, mem.offset), "generic"), [c.use(x, "s32") for x in items]


def _load_tensor(c: BlockCoder, i: Instruction) -> None:
    to, source, barrier, *more = i.ops
    where, coords = coordinates(c, source)
    im2col = "im2col" in i.mods
    if im2col:
        offsets = more.pop(0)
        given = offsets.items if isinstance(offsets, Vec) else (offsets,)
        if len(given) != len(coords) - 2:
            raise c.fail(f"{i.opcode} takes {len(coords) - 2} im2col offsets, not {len(given)}")
        coords += [c.use(x, "u16") for x in given]
    mask = c.use(more.pop(0), "u16") if "multicast::cluster" in i.mods else ""
    args = [place(c, to, "shared"), where, place(c, barrier, "shared"), *coords, *([mask] if mask else [])]
    inner = ", ".join(f"{{{3 + k}}}" for k in range(len(coords)))
    last = f"{{{3 + len(coords)}}}" if mask else "None"
    c.effect(f"tensor_load(S, SITE, L, {{0}}, {{1}}, {{2}}, ({inner},), {last}, {im2col})", args)


def _store_tensor(c: BlockCoder, i: Instruction) -> None:
    where, coords = coordinates(c, i.ops[0])
    op = next((m for m in i.mods if m in REDUCTIONS), "") if "reduce" in i.mods else ""
    im2col = "im2col_no_offs" in i.mods
    args = [where, place(c, i.ops[1], "shared"), *coords]
    inner = ", ".join(f"{{{2 + k}}}" for k in range(len(coords)))
    c.effect(f"tensor_store(S, SITE, L, {{0}}, {{1}}, ({inner},), {op!r}, {im2col})", args)


@rule("cp.async.bulk.prefetch.tensor")
def prefetch_tensor(c: BlockCoder, i: Instruction) -> None:
    """No effect."""


@lru_cache(maxsize=256)
def known_map(data: bytes) -> tuple[tensormap.TensorMap | None, ArgumentError | None]:
    """The map in 128 bytes, and what is wrong with it."""
    found = tensormap.decode(data)
    try:
        if found is not None:
            tensormap.check(found)
    except ArgumentError as error:
        return found, error
    return found, None


def read_map(S: Any, site: int, address_: int, lane: int, rank: int, im2col: bool) -> tensormap.TensorMap:
    """The tensor map at an address of global, constant or parameter memory, for copies of a rank and a mode."""
    data = S.g.at(address_, tensormap.SIZE)
    if data is None or address_ % 64:
        hint = "a tensor map is 128 bytes at a multiple of 64, in global, constant or parameter memory"
        values = {"address": f"{address_:#x}"}
        raise Fault("tensormap", "No tensor map at this address", site, np.array([lane]), values, hint)
    found, error = known_map(data.tobytes())
    if found is None:
        hint = "maps of cuTensorMapEncodeTiled are opaque; build them with targets.emu.tensormap.encode"
        values = {"address": f"{address_:#x}"}
        raise Fault("tensormap", "This tensor map was not made for the emulator", site, np.array([lane]), values, hint)
    if error is not None:
        raise Fault("tensormap", error.message, site, np.array([lane]), error.values, error.hint) from error
    if found.im2col != im2col or found.rank != rank:
        kinds = {True: "im2col", False: "tiled"}
        raise Fault("tensormap", f"A copy of rank {rank}, {kinds[im2col]}, with a tensor map of rank {found.rank}, "
                    f"{kinds[found.im2col]}", site, np.array([lane]))  # fmt: skip
    return found


@provide
def tensor_load(
    S: Any, site: int, L: Lanes, to: Any, where: Any, barrier: Any, coords: tuple[Any, ...], mask: Any, im2col: bool
) -> None:
    """One box a thread: global memory to shared memory, signalled at an mbarrier. im2col offsets follow `coords`."""
    modes = len(coords) // 2 + 1 if im2col else len(coords)
    for lane in range(L.n):
        one = L.subset(np.array([lane]))
        made = read_map(S, site, at_lane(where, lane), lane, modes, im2col)
        start = [at_lane(x, lane) for x in coords]
        tile = read_box(S, site, made, start, lane)
        base, ranks = at_lane(to, lane), targets(mask, lane)
        barriers = [barrier_index(S, site, one, at_lane(barrier, lane), rank) for rank in ranks]
        S.tensor_read(site, one, made, start, [int(told[0]) for told in barriers])
        for rank, told in zip(ranks, barriers, strict=True):
            destination = base if rank is None else (base & 0xFFFFFF) | (rank + 1) << 24
            out = span(S, site, one, "shared", destination, tile.size, lane, True)
            check_place(destination & 0xFFFFFF, made, site, lane)
            S.tensor_moved(site, one, made, start, destination, tile.size, told)
            order = chunk_order(destination & 0xFFFFFF & 1023, tile.size, made.swizzle)
            S.landing.deliver(int(told[0]), _place_tile(S, site, out, tile, order, told))


def _place_tile(S: Any, site: int, out: Array, tile: Array, order: Array, told: Array) -> Callable[[], None]:
    """What a tensor load does when it lands."""

    def land() -> None:
        out.reshape(-1, 16)[order] = tile.reshape(-1, 16)
        complete_bytes(S, site, told, np.array([tile.size]))

    return land


@provide
def tensor_store(
    S: Any, site: int, L: Lanes, where: Any, source: Any, coords: tuple[Any, ...], op: str, im2col: bool
) -> None:
    """One box a thread: shared memory to global memory; what lies outside the tensor is dropped."""
    for lane in range(L.n):
        one = L.subset(np.array([lane]))
        made = read_map(S, site, at_lane(where, lane), lane, len(coords), im2col)
        start = [at_lane(x, lane) for x in coords]
        if im2col:
            start += [0] * (len(coords) - 2)
        if op:
            check_operation(op, DTYPE_OF.get(made.type, made.type))
        base = at_lane(source, lane)
        check_place(base & 0xFFFFFF, made, site, lane)
        data = span(S, site, one, "shared", base, made.nbytes, lane, False)
        S.tensor_moved(site, one, made, start, base, made.nbytes, None)
        box_part(S, site, made, start, lane, True)  # out of bounds is an error of the instruction
        S.tensor_written(site, one, made, start)
        order = chunk_order(base & 1023, made.nbytes, made.swizzle)
        S.landing.store(int(one.ids[0]), _write_tile(S, site, made, start, data, order, op, lane))


def _write_tile(
    S: Any, site: int, made: tensormap.TensorMap, start: list[int], data: Array, order: Array, op: str, lane: int
) -> Callable[[], None]:
    """What a tensor store does when it lands."""

    def land() -> None:
        chunks = np.ascontiguousarray(data.reshape(-1, 16)[order])
        write_box(S, site, made, start, chunks.reshape(-1), op, lane)

    return land


def check_place(offset: int, made: tensormap.TensorMap, site: int, lane: int) -> None:
    if offset % 128:
        raise Fault("misaligned", "A tensor copy needs a shared address that is a multiple of 128", site,
                    np.array([lane]), {"address": f"{offset:#x}"})  # fmt: skip


@lru_cache(maxsize=1024)
def chunk_order(base: int, nbytes: int, span_: int) -> Array:
    """Where each 16-byte chunk of a box lies, counted in chunks from the box's start."""
    address_ = base + 16 * np.arange(nbytes // 16, dtype=np.int64)
    order: Array = (swizzled(address_, span_) - base) >> 4
    return order


class Part(NamedTuple):
    """The part of a box that lies in its tensor: its bytes in global memory (a view, or `data` at `index`), and where
    that part is in the box; modes outermost first."""

    data: Array
    index: Any
    box: Any


def box_part(S: Any, site: int, made: tensormap.TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """The part of a box inside the tensor, None if there is none."""
    return (column_part if made.im2col else tile_part)(S, site, made, start, lane, write)


def tile_part(S: Any, site: int, made: tensormap.TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """A tile's part: a strided view of global memory, and slices of the box."""
    strides = (made.width, *made.strides)
    offset, shape, steps, slices = 0, [], [], []
    for x, extent, count, step, stride in zip(start, made.extents, made.counts, made.steps, strides, strict=True):
        first = -(-max(-x, 0) // step)
        last = min(count, -(-(extent - x) // step)) if extent > x else first
        last = max(last, first)
        offset += (x + first * step) * stride
        shape.append(last - first)
        steps.append(step * stride)
        slices.append(slice(first, last))
    if 0 in shape:
        return None
    last_byte = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) + made.width
    data = tensor_bytes(S, site, made, offset, last_byte, lane, write)
    view = np.lib.stride_tricks.as_strided(data, (*shape[::-1], made.width), (*steps[::-1], 1), writeable=write)
    return Part(view, ..., tuple(slices[::-1]))


def column_part(S: Any, site: int, made: tensormap.TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """A column's part: pixels of global memory by index, and the numbers of these pixels in the column."""
    rank = made.rank
    base, offsets = start[1:rank], start[rank:]
    if any(not low <= x <= high for x, low, high in zip(base, made.lower, made.last, strict=False)):
        raise Fault("tensormap", "An im2col copy starts outside its bounding box", site, np.array([lane]),
                    {"start": base[:-1], "lower corner": made.lower, "last": made.last})  # fmt: skip
    places = pixels(base, made.lower, made.last, made.steps[1:-1], offsets, made.box[1])
    inside = np.flatnonzero(((places >= 0) & (places < made.extents[1:])).all(axis=1))
    first, end = max(start[0], 0), min(start[0] + made.box[0], made.extents[0])
    if not len(inside) or first >= end:
        return None
    rows = places[inside] @ np.array(made.strides, np.int64) + first * made.width
    size = (end - first) * made.width
    low = int(rows.min())
    data = tensor_bytes(S, site, made, low, int(rows.max()) + size, lane, write)
    index = (rows - low)[:, None] + np.arange(size)
    return Part(
        data, index.reshape(len(rows), end - first, made.width), (inside, slice(first - start[0], end - start[0]))
    )


def tensor_bytes(S: Any, site: int, made: tensormap.TensorMap, first: int, end: int, lane: int, write: bool) -> Array:
    """Bytes of a tensor by their offsets; a fault where they are no memory of the launch."""
    data = S.g.at(made.address + first, end - first)
    if data is None:
        bad = S.g.out_of_bounds(site, np.array([made.address + first], np.uint64), np.array([True]), end - first, write,
                                True)  # fmt: skip
        bad.lanes = np.array([lane])
        bad.hint = "the tensor map spans more than the buffer"
        raise bad
    if write and not S.g.buffer_of(made.address + first).writable:
        raise Fault("readonly", "Write to read-only global memory", site, np.array([lane]))
    return np.asarray(data)


def read_box(S: Any, site: int, made: tensormap.TensorMap, start: list[int], lane: int) -> Array:
    """The bytes of a box, in order; what lies outside the tensor is zero (or NaN)."""
    tile = np.zeros((*made.counts[::-1], made.width), np.uint8)
    if made.fill_nan:
        tile[...] = np.frombuffer(nan_fill(made.type), np.uint8)
    part = box_part(S, site, made, start, lane, False)
    if part is not None:
        tile[part.box] = part.data[part.index]
    return tile.reshape(-1)


def nan_fill(kind: str) -> bytes:
    """The special NaN that fills out-of-bounds elements."""
    width = tensormap.WIDTHS[kind]
    patterns = {2: OOB_NAN.to_bytes(2, "little"), 4: b"\xff\xff\xff\x7f", 8: b"\xff" * 7 + b"\x7f"}
    return patterns.get(width, bytes(width))


DTYPE_OF = {"f32ftz": "f32", "tf32": "f32", "tf32ftz": "f32"}
"""The types in which reductions of these tensors are computed."""


def write_box(S: Any, site: int, made: tensormap.TensorMap, start: list[int], data: Array, op: str, lane: int) -> None:
    """Store a box, or reduce it into the tensor."""
    part = box_part(S, site, made, start, lane, True)
    if part is None:
        return
    tile = data.reshape(*made.counts[::-1], made.width)[part.box]
    if not op:
        part.data[part.index] = tile
        return
    kind = DTYPE_OF.get(made.type, made.type)
    dtype = np.dtype(DTYPE[kind])
    old = np.ascontiguousarray(part.data[part.index]).view(dtype)
    new = combine(op, kind, made.type != "f32")(old, np.ascontiguousarray(tile).view(dtype), None)
    part.data[part.index] = np.ascontiguousarray(new).view(np.uint8).reshape(tile.shape)
