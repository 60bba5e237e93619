"""`tensormap.replace` and `tensormap.cp_fenceproxy` (PTX ISA 9.1, 9.7.9.28 and 9.7.13.16)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import SHARED_WINDOW
from tilewright.targets.emu.ptx import Imm, Instruction, Operand
from tilewright.targets.emu.rules.memory import address, generic_load, generic_store, state_space
from tilewright.targets.emu.runtime import full, provide

U8 = np.dtype(np.uint8)
HALF = 64
"""A map is accessed by halves: it is aligned to 64 bytes."""


def generic_place(c: BlockCoder, mem: Operand, space: str) -> str:
    """A memory operand as a generic address."""
    text = f"{address(c, mem, space)}.astype(u8)"
    return c.let(f"{text} + {c.constant(SHARED_WINDOW, 'u8')}" if space == "shared" else text)


@rule("tensormap.replace")
def replace(c: BlockCoder, i: Instruction) -> None:
    """`tensormap.replace.tile.field{.ss}.b1024.type [a]{, ord}, value`."""
    field = i.mods[2]
    if "tile" not in i.mods or field not in tensormap.FIELDS:
        raise c.fail(f"{i.opcode} does not exist", hint=f"the fields are {' '.join(tensormap.FIELDS)}")
    ordinal, count = 0, tensormap.COUNTS.get(field)
    if count is not None:
        if not isinstance(i.ops[1], Imm) or not 0 <= i.ops[1].value < count:
            raise c.fail(f"the ordinal of .{field} is an immediate below {count}")
        ordinal = int(i.ops[1].value)
    wide = "u64" if field in ("global_address", "global_stride") else "u32"
    args = [generic_place(c, i.ops[0], state_space(i)), c.use(i.ops[-1], wide)]
    c.effect(f"replace_field(S, SITE, L, {{0}}, {field!r}, {ordinal}, {{1}})", args)


@provide
def replace_field(S: Any, site: int, L: Lanes, addr: Any, field: str, ordinal: int, value: Any) -> None:
    """Each thread changes a field of the map at its address. A map of zeros becomes one of this format."""
    addr = full(addr, L.n)
    maps = load_maps(S, site, L, addr)
    started = (maps[:, :4] == 0).all(axis=1)
    maps[started, :4] = np.frombuffer(tensormap.MAGIC, np.uint8)
    if (maps[:, :4] != np.frombuffer(tensormap.MAGIC, np.uint8)).any():
        raise Fault("tensormap", "This tensor map was not made for the emulator", site, np.arange(L.n),
                    hint="maps of cuTensorMapEncodeTiled are opaque; replace all fields of one of zeros")  # fmt: skip
    start, size = tensormap.FIELDS[field]
    start += ordinal * size
    for lane, new in enumerate(full(value, L.n).tolist()):
        try:
            maps[lane, start : start + size] = np.frombuffer(tensormap.field_bytes(field, new), np.uint8)
        except ArgumentError as error:
            raise Fault("tensormap", error.message, site, np.array([lane]), error.values, error.hint) from error
    store_maps(S, site, L, addr, maps)


def load_maps(S: Any, site: int, L: Lanes, addr: Array) -> Array:
    """The bytes of the map at each thread's generic address, (threads, 128)."""
    halves = [generic_load(S, site, L, addr + np.uint64(at), U8, 6, HALF) for at in (0, HALF)]
    return np.concatenate([np.broadcast_to(half, (L.n, HALF)) for half in halves], axis=1)


def store_maps(S: Any, site: int, L: Lanes, addr: Array, maps: Array) -> None:
    for at in (0, HALF):
        generic_store(S, site, L, addr + np.uint64(at), np.ascontiguousarray(maps[:, at : at + HALF]), U8, 6, HALF)


@rule("tensormap.cp_fenceproxy")
def copy_and_fence(c: BlockCoder, i: Instruction) -> None:
    """`tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [d], [s], 128`."""
    if not isinstance(i.ops[2], Imm) or i.ops[2].value != tensormap.SIZE:
        raise c.fail("tensormap.cp_fenceproxy copies 128 bytes")
    scope = next(m for m in i.mods if m in ("cta", "cluster", "gpu", "sys"))
    args = [generic_place(c, i.ops[0], "global"), generic_place(c, i.ops[1], "shared")]
    c.effect("copy_map(S, SITE, L, {0}, {1})", args)
    if c.owner.checks:
        c.effect(f"S.on.fence(L, {scope!r}, 'tensor map')", [])


@provide
def copy_map(S: Any, site: int, L: Lanes, to: Any, source: Any) -> None:
    """The warp copies one map: its first thread does."""
    first = L.subset(np.flatnonzero(np.diff(L.ids >> 5, prepend=-1)))
    at = np.flatnonzero(np.isin(L.ids, first.ids))
    store_maps(S, site, first, full(to, L.n)[at], load_maps(S, site, first, full(source, L.n)[at]))
