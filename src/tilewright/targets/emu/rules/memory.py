"""Loads, stores, prefetches and fences (PTX ISA 9.7.9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE, bits_of
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_END
from tilewright.targets.emu.ptx import Imm, Instruction, Mem, Operand, Reg, Sink, Sym, Vec
from tilewright.targets.emu.runtime import provide

SPACES = ("global", "shared", "local", "const", "param")
STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def state_space(i: Instruction) -> str:
    """The state space among the modifiers, `generic` without one."""
    for word in i.mods:
        space = word.split("::")[0]
        if space in SPACES:
            return space
    return "generic"


def vector_length(i: Instruction) -> int:
    return next((int(m[1:]) for m in i.mods if m in ("v2", "v4", "v8")), 1)


def address(c: BlockCoder, mem: Operand, space: str) -> str:
    """The address of a memory operand, as an unsigned NumPy value."""
    c.address = address_text(c, mem, space)
    return c.address


def address_text(c: BlockCoder, mem: Operand, space: str) -> str:
    """The expression of an address."""
    if not isinstance(mem, Mem):
        raise c.fail("expected an address in brackets")
    base = mem.base
    if not -(1 << 63) <= mem.offset < 1 << 63:
        raise c.fail(f"offset {mem.offset} does not fit in 64 bits")
    c.sink(base, "address")
    if isinstance(base, Reg):
        kind = "b64" if base.width == 64 else "b32"
        text = c.use(base, kind)
        if not mem.offset:
            return text
        return c.let(f"{text} + {c.constant(mem.offset, DTYPE[kind])}")
    if isinstance(base, Imm):
        return c.constant(int(base.value) + mem.offset, "u8")
    if not isinstance(base, Sym):
        raise c.fail("the base of an address is a register, a symbol or a number")
    place = c.place(Sym(base.name, base.offset + mem.offset))
    if space == "generic":
        window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(c.space_of(base.name), 0)
        place = place + window if isinstance(place, int) else f"{place} + {window}"
    return c.constant(place, "u8") if isinstance(place, int) else c.let(f"u8.type({place})")


def access(c: BlockCoder, space: str, verb: str) -> str:
    """The call that loads or stores, up to its address."""
    if c.owner.checks:
        watched = {"global": "g", "const": "g", "shared": "s", "local": "l"}
        return f"S.{watched[space]}_{verb}(SITE, L, " if space in watched else f"generic_{verb}(S, SITE, L, "
    if space in ("global", "const"):
        return f"S.g.{verb}(SITE, "
    if space == "shared":
        return f"S.sh.{verb}(SITE, L, "
    if space == "local":
        return f"S.lo.{verb}(SITE, L, "
    return f"generic_{verb}(S, SITE, L, "


def element(kind: str, lanes: int) -> tuple[str, int, int]:
    """(NumPy type, log2 of the bytes accessed, elements a row)."""
    if kind == "b128":
        if lanes > 1:
            return "u8", (16 * lanes).bit_length() - 1, 2 * lanes
        return "u8", 4, 2
    dtype = DTYPE[kind]
    size = bits_of(dtype) // 8 * lanes
    return dtype, size.bit_length() - 1, lanes


@rule("ld", "ldu")
def ld(c: BlockCoder, i: Instruction) -> None:
    space, kind, lanes = state_space(i), i.type, vector_length(i)
    to, mem = i.ops[0], i.ops[1]
    if space == "param":
        assert isinstance(mem, Mem)
        if isinstance(mem.base, Sym) and mem.base.name not in c.owner.code.places:
            _param(c, i, to, mem, kind, lanes)
            return
        space = "local" if isinstance(mem.base, Sym) else "generic"
    call = access(c, space, "load")
    at = address(c, mem, space)
    dtype, shift, row = element(kind, lanes)
    text = f"{call}{{0}}, {dtype}, {shift}, {row})"
    if any(m in STRONG for m in i.mods):
        c.emit("S.poll()")
    if kind == "b128" and lanes == 1:
        text = f"as_rows({text}, L.n)"
    elif lanes > 1:
        text = f"columns({text}, {lanes})"
    items = to.items if lanes > 1 and isinstance(to, Vec) else (to,)
    results = [(item, kind) for item in items]
    if c.owner.checks and space in ("shared", "local", "generic"):
        c.load(text, [at], results)
    else:
        c.effect(text, [at], results)


def _param(c: BlockCoder, i: Instruction, to: Operand, mem: Mem, kind: str, lanes: int) -> None:
    """A kernel parameter at a constant offset: uniform."""
    assert isinstance(mem.base, Sym)
    offsets = c.owner.program.param_offsets(c.owner.function)
    if mem.base.name not in offsets:
        raise c.fail(f"unknown parameter {mem.base.name}")
    start = offsets[mem.base.name] + mem.base.offset + mem.offset
    size = bits_of(DTYPE[kind]) // 8
    items = to.items if isinstance(to, Vec) else (to,)
    variable = c.owner.function.variables[mem.base.name]
    inside = start - offsets[mem.base.name]
    if inside < 0 or inside + size * lanes > variable.size:
        raise c.fail(f"read past the end of parameter {mem.base.name} ({variable.size} bytes)")
    for index, item in enumerate(items):
        offset = start + index * size
        if kind == "b128":
            c.set(item, kind, f"rows128(S.param({offset}, u8), S.param({offset + 8}, u8), L.n)")
        else:
            c.set(item, kind, f"S.param({offset}, {DTYPE[kind]})")


@provide
def columns(rows: Array, count: int) -> list[Any]:
    """The elements of vector loads, each contiguous."""
    if rows.ndim == 1:
        return list(rows) if len(rows) == count else [rows[2 * k : 2 * k + 2] for k in range(count)]
    if rows.shape[1] == count:
        return [rows[:, k].copy() for k in range(count)]
    return [rows[:, 2 * k : 2 * k + 2].copy() for k in range(count)]


@provide
def as_rows(value: Array, n: int) -> Array:
    return value if value.ndim == 2 else np.repeat(value[None], n, 0)


@rule("st")
def st(c: BlockCoder, i: Instruction) -> None:
    if "async" in i.mods or "bulk" in i.mods:
        raise c.fail(f"{i.opcode} is not emulated")
    space, kind, lanes = state_space(i), i.type, vector_length(i)
    mem, value = i.ops[0], i.ops[1]
    if space == "param":
        assert isinstance(mem, Mem)
        space = "local" if isinstance(mem.base, Sym) else "generic"
    call = access(c, space, "store")
    at = address(c, mem, space)
    dtype, shift, row = element(kind, lanes)
    items = value.items if isinstance(value, Vec) else (value,)
    values = [c.use(item, kind) if not isinstance(item, Sink) else c.constant(0, dtype) for item in items]
    stored = "{1}" if lanes == 1 else f"rows(({', '.join(f'{{{n + 1}}}' for n in range(lanes))},), L.n, {dtype})"
    if space == "global":
        c.sink(value, "value stored to global memory")
    if any(m in STRONG for m in i.mods):
        c.effect("S.progress()", [])
    c.effect(f"{call}{{0}}, {stored}, {dtype}, {shift}, {row})", [at, *values])
    if space in ("shared", "local", "generic"):
        taint_stored(c, items, space, at, shift - (lanes.bit_length() - 1))


def taint_stored(c: BlockCoder, items: Sequence[Operand], space: str, at: str, shift: int) -> None:
    """Values stored side by side that depend on memory never written: what reads them does too."""
    for place, item in enumerate(items) if c.owner.checks else ():
        mark = "FALSE" if isinstance(item, Sink) else c.taint_of(item)
        if mark != "FALSE":
            c.effect(f"S.on.unwritten_stored(SITE, L, {space!r}, {{0}}, {place << shift}, {shift}, {{1}})", [at, mark])


@provide
def rows(values: tuple[Any, ...], n: int, dtype: Any) -> Array:
    """Vector elements side by side: one row a thread."""
    if values[0].__class__ is np.ndarray and values[0].ndim == 2:
        return np.concatenate(values, axis=1)
    out = np.empty((n, len(values)), dtype)
    for k, value in enumerate(values):
        out[:, k] = value
    return out


# Generic addresses.


def by_space(addr: Any) -> list[tuple[str, Array | None]]:
    """The spaces that generic addresses lie in, with the positions of each (None: all)."""
    low, high = int(addr.min()), int(addr.max())
    if high < SHARED_WINDOW:
        return [("global", None)]
    if low >= SHARED_WINDOW and high < LOCAL_WINDOW:
        return [("shared", None)]
    if low >= LOCAL_WINDOW and high < WINDOW_END:
        return [("local", None)]
    parts: list[tuple[str, Array | None]] = []
    shared = (addr >= np.uint64(SHARED_WINDOW)) & (addr < np.uint64(LOCAL_WINDOW))
    local = (addr >= np.uint64(LOCAL_WINDOW)) & (addr < np.uint64(WINDOW_END))
    for space, where in (("global", ~(shared | local)), ("shared", shared), ("local", local)):
        at = np.flatnonzero(where)
        if len(at):
            parts.append((space, at if addr.__class__ is np.ndarray else None))
    return parts


def local_address(space: str, addr: Any) -> Any:
    """A generic address as one of its state space."""
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)
    return addr if window is None else addr - np.uint64(window)


@provide
def generic_load(S: Any, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
    parts = by_space(addr)
    if len(parts) == 1:
        return _load(S, parts[0][0], site, L, addr, dtype, shift, lanes)
    out = np.empty((L.n, lanes) if lanes > 1 else L.n, dtype)
    missing = np.zeros((L.n, 1 << shift), bool)
    for space, at in parts:
        assert at is not None
        out[at] = _load(S, space, site, L.subset(at), addr[at], dtype, shift, lanes)
        if S.unwritten.__class__ is np.ndarray:
            missing[at] = np.repeat(S.unwritten, (1 << shift) // S.unwritten.shape[1], axis=1)
    S.unwritten = missing if missing.any() else np.bool_(False)
    return out


def _load(S: Any, space: str, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int) -> Any:
    inner = local_address(space, addr)
    if space == "global":
        return S.g_load(site, L, inner, dtype, shift, lanes)
    load = S.s_load if space == "shared" else S.l_load
    return load(site, L, inner, dtype, shift, lanes)


@provide
def generic_store(S: Any, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
    for space, at in by_space(addr):
        many = value.__class__ is np.ndarray and value.ndim == (2 if lanes > 1 else 1)
        part = value[at] if at is not None and many else value
        picked = L if at is None else L.subset(at)
        inner = local_address(space, addr if at is None else addr[at])
        if space == "global":
            S.g_store(site, picked, inner, part, dtype, shift, lanes)
        elif space == "shared":
            S.s_store(site, picked, inner, part, dtype, shift, lanes)
        else:
            S.l_store(site, picked, inner, part, dtype, shift, lanes)


@provide
def in_space(addr: Any, space: str, S: Any, L: Lanes) -> Any:
    """`isspacep`."""
    head, _, reach = space.partition("::")
    shared = (addr >= np.uint64(SHARED_WINDOW)) & (addr < np.uint64(LOCAL_WINDOW))
    local = (addr >= np.uint64(LOCAL_WINDOW)) & (addr < np.uint64(WINDOW_END))
    if head == "shared":
        if reach == "cluster":
            return shared
        rank = ((addr - np.uint64(SHARED_WINDOW)) >> np.uint64(24)).astype(np.int64) - 1
        return shared & ((rank < 0) | (rank == L.cluster_rank()))
    if head == "local":
        return local
    launch = S.launch
    if head == "param":
        return within(addr, [(launch.param_address, len(launch.params))])
    const = within(addr, launch.program.program.constants)
    return const if head == "const" else ~(shared | local | const)


def within(addr: Any, ranges: list[tuple[int, int]]) -> Any:
    """Whether addresses lie in one of some ranges of memory (start, bytes)."""
    found = addr != addr
    for start, size in ranges:
        found = found | ((addr >= np.uint64(start)) & (addr < np.uint64(start + size)))
    return found


class Part(NamedTuple):
    """The threads whose addresses lie in one state space, and their positions (all of them: a slice)."""

    space: str
    at: Any
    L: Lanes
    addr: Any


def parts_of(L: Lanes, space: str, addr: Any) -> Iterator[Part]:
    """Threads by the state space that their addresses lie in."""
    if space != "generic":
        yield Part("global" if space == "const" else space, slice(None), L, addr)
        return
    for inner, at in by_space(addr):
        some = addr if at is None else addr[at]
        yield Part(
            inner, slice(None) if at is None else at, L if at is None else L.subset(at), local_address(inner, some)
        )


# Hints and order.


@rule("prefetch", "prefetchu", "discard", "applypriority", "createpolicy")
def hint(c: BlockCoder, i: Instruction) -> None:
    """No effect but for cache policies, which are opaque numbers."""
    if i.op == "createpolicy":
        c.set(i.ops[0], "b64", c.constant(0, "u8"))


@rule("fence", "membar")
def fence(c: BlockCoder, i: Instruction) -> None:
    """Memory of one device is sequentially consistent here; its fences matter to the race check only."""
    scope = next((m for m in i.mods if m in ("cta", "cluster", "sys")), "gpu")
    if scope == "sys" and fence_kind(i):
        c.effect("S.g.released()", [])
    if c.owner.checks and i.ops:  # it acquires a tensor map
        c.effect("S.on.map_acquired(SITE, L, full({0}, L.n))", [address(c, i.ops[0], "generic")])
    elif c.owner.checks:
        c.effect(f"S.on.fence(L, {scope!r}, {fence_kind(i)!r})", [])


def fence_kind(i: Instruction) -> str:
    """What a fence orders: memory, in the one order of such fences (`sc`) or not, or only as `acquire` or `release`, or
    of these only shared memory; the asynchronous proxy there; initialised mbarriers; tensor maps that threads changed;
    or nothing that an emulated kernel can tell (aliases, global memory)."""
    if "tensormap::generic" in i.mods:
        return "tensor map" if "release" in i.mods else ""
    if "proxy" in i.mods:
        return "async" if i.mods[1] in ("async", "async::generic") and "global" not in i.mods else ""
    if "mbarrier_init" in i.mods:
        return "mbarrier_init"
    order = next((m for m in i.mods if m in ("acquire", "release")), "sc" if sequential(i) else "memory")
    return f"shared {order}" if any(m.startswith("sync_restrict") for m in i.mods) else order


def sequential(i: Instruction) -> bool:
    """Whether a fence stands in the one order of all such: `fence.sc`, and `membar`, which is its older name."""
    return i.op == "membar" or "sc" in i.mods
