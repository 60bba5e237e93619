"""Tensor copies (PTX ISA 9.7.9.27): tiles and im2col columns, between global and shared memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.hw.atoms.async_copy import TENSOR_REDUCTIONS
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.numerics.wgmma import swizzled
from tilewright.targets.emu.ptx import Instruction, Mem, Operand, Vec
from tilewright.targets.emu.rules.barriers import complete_bytes
from tilewright.targets.emu.rules.box_parts import box_part, read_box, write_box
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
    """Has the errors of a load, and no other effect."""
    where, coords = coordinates(c, i.ops[0])
    inner = ", ".join(f"{{{1 + k}}}" for k in range(len(coords)))
    c.effect(f"tensor_prefetch(S, SITE, L, {{0}}, ({inner},), {'im2col' in i.mods})", [where, *coords])


@provide
def tensor_prefetch(S: Any, site: int, L: Lanes, where: Any, coords: tuple[Any, ...], im2col: bool) -> None:
    for lane in range(L.n):
        one = L.subset(np.array([lane]))
        made = read_map(S, site, one, at_lane(where, lane), lane, len(coords), im2col)
        check_start(made, [at_lane(x, lane) for x in coords], site, lane)


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


def read_map(S: Any, site: int, one: Lanes, address_: int, lane: int, rank: int, im2col: bool) -> tensormap.TensorMap:
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
    if not 0 <= address_ - S.launch.param_address < len(S.launch.params):
        S.on.map_read(site, one, address_)
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
        made = read_map(S, site, one, at_lane(where, lane), lane, modes, im2col)
        start = [at_lane(x, lane) for x in coords]
        check_start(made, start, site, lane)
        tile = read_box(S, site, made, start, lane)
        base, ranks = at_lane(to, lane), targets(mask, site, L, lane)
        barriers = [barrier_index(S, site, one, at_lane(barrier, lane), rank) for rank in ranks]
        S.on.tensor_read(site, one, made, start, [int(told[0]) for told in barriers])
        for rank, told in zip(ranks, barriers, strict=True):
            destination = base if rank is None else (base & 0xFFFFFF) | (rank + 1) << 24
            check_place(destination & 0xFFFFFF, site, lane)
            order = chunk_order(made, destination & 1023)
            out = span(S, site, one, "shared", destination, room(order), lane, True)
            S.on.tensor_loaded(site, one, made, start, destination, order, int(told[0]))
            S.in_flight.deliver(int(told[0]), _place_tile(S, site, out, tile, order, told))


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
        made = read_map(S, site, one, at_lane(where, lane), lane, len(coords), im2col)
        start = [at_lane(x, lane) for x in coords]
        if im2col:
            start += [0] * (len(coords) - 2)
        if op:
            check_reduction(op, made, site, lane)
        check_start(made, start, site, lane)
        check_stored(made, start, site, lane)
        base = at_lane(source, lane)
        check_place(base & 0xFFFFFF, site, lane)
        order = chunk_order(made, base & 1023)
        data = span(S, site, one, "shared", base, room(order), lane, False)
        S.on.tensor_stored(site, one, made, start, base, order)
        box_part(S, site, made.stored, start, lane, True)  # out of bounds is an error of the instruction
        S.on.tensor_written(site, one, made.stored, start)
        S.in_flight.store(int(one.ids[0]), _write_tile(S, site, made.stored, start, data, order, op, lane))


def _write_tile(
    S: Any, site: int, made: tensormap.TensorMap, start: list[int], data: Array, order: Array, op: str, lane: int
) -> Callable[[], None]:
    """What a tensor store does when it lands."""

    def land() -> None:
        chunks = np.ascontiguousarray(data.reshape(-1, 16)[order])
        write_box(S, site, made, start, chunks.reshape(-1), op, lane)

    return land


def check_reduction(op: str, made: tensormap.TensorMap, site: int, lane: int) -> None:
    """A fault where a GPU has no such reduction: it takes it for an illegal instruction."""
    if made.type not in TENSOR_REDUCTIONS[op]:
        raise Fault("tensormap", f"There is no tensor reduction .{op} of {made.type}", site, np.array([lane]),
                    {"map": made}, f"types of .{op}: {' '.join(TENSOR_REDUCTIONS[op])}")  # fmt: skip


def check_start(made: tensormap.TensorMap, start: list[int], site: int, lane: int) -> None:
    """A fault where a GPU takes the copy for an illegal instruction (measured on an H100): mode 0 starts within 16
    bytes, or a column outside its bounding box."""
    if start[0] * made.unit % 16:
        raise Fault("misaligned", "A tensor copy starts at a multiple of 16 bytes along mode 0", site, np.array([lane]),
                    {"start": start, "element": f"{made.unit} bytes"})  # fmt: skip
    base = [start[mode] for mode in made.pixel_modes[:-1]]
    if any(not low <= x <= high for x, low, high in zip(base, made.lower, made.last, strict=False)):
        raise Fault("tensormap", "An im2col copy starts outside its bounding box", site, np.array([lane]),
                    {"start": base, "lower corner": made.lower, "last": made.last})  # fmt: skip


def check_stored(made: tensormap.TensorMap, start: list[int], site: int, lane: int) -> None:
    """A fault where a tile to be stored starts before the tensor: a GPU takes it for an illegal instruction."""
    if not made.im2col and min(start) < 0:
        raise Fault("tensormap", "A tensor store starts at a negative coordinate", site, np.array([lane]),
                    {"start": start}, "loads may start before the tensor, stores may not")  # fmt: skip


def check_place(offset: int, site: int, lane: int) -> None:
    if offset % 128:
        raise Fault("misaligned", "A tensor copy needs a shared address that is a multiple of 128", site,
                    np.array([lane]), {"address": f"{offset:#x}"})  # fmt: skip


@lru_cache(maxsize=1024)
def chunk_order(made: tensormap.TensorMap, base: int) -> Array:
    """Where each 16-byte chunk of a box lies, counted in chunks from the box's start; `base` is that modulo 1024."""
    row, place = np.divmod(16 * np.arange(made.nbytes // 16, dtype=np.int64), made.row)
    order: Array = (swizzled(base + row * made.pitch + place, made.swizzle) - base) >> 4
    return order


def room(order: Array) -> int:
    """Bytes of shared memory that a box spans, with the gaps between narrow rows."""
    return 16 * (int(order.max()) + 1)


def runs(order: Array) -> list[tuple[int, int]]:
    """The parts of shared memory that a box fills: the first byte of each, from the box's start, and their number."""
    chunks = np.sort(order)
    starts = np.flatnonzero(np.diff(chunks, prepend=-2) != 1)
    counts = np.diff(starts, append=len(chunks))
    return [(16 * int(chunks[at]), 16 * int(count)) for at, count in zip(starts, counts, strict=True)]
