"""`atom` and `red` (PTX ISA 9.7.13), on all threads of a cohort as if one after another in lane order.

Global memory adds floats in units of its own: subnormal f32 are flushed, operands and results, in vectors too, and an
f64 NaN passes as it is, the operand's before the memory's (recorded on an H100, kernels atom_nan_* and red_nan_*).
Shared memory adds by the instructions that other code uses, in a loop of compare-and-swap (an f64 NaN of memory first).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE, bits_of
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import misaligned
from tilewright.targets.emu.numerics import floats
from tilewright.targets.emu.ptx import Instruction, Mem, Operand, Sink, Vec
from tilewright.targets.emu.rules.memory import address, by_space, local_address, state_space, vector_length
from tilewright.targets.emu.runtime import provide

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
PACKED = ("f16", "f16x2", "bf16", "bf16x2")


@rule("atom", "red")
def atom(c: BlockCoder, i: Instruction) -> None:
    if "async" in i.mods:
        raise c.fail(f"{i.opcode} is not emulated")
    op = next(m for m in i.mods if m in OPERATIONS)
    wants = i.op == "atom"
    operands: list[Operand] = list(i.ops)
    to = operands.pop(0) if wants else Sink()
    mem = operands.pop(0)
    space, kind, lanes = state_space(i), i.type, vector_length(i)
    check_operation(op, kind)
    count = 2 if op == "cas" else 1
    at = address(c, mem, space)
    values = operands[:count]
    c.emit("S.poll()")
    if kind == "b128":
        _wide(c, to, at, values, space, op)
        return
    if lanes > 1:
        _vector(c, to, mem, values[0], space, kind, op)
        return
    _scalar(c, to, at, values, space, kind, op, wants)


def _scalar(
    c: BlockCoder, to: Operand, at: str, values: list[Operand], space: str, kind: str, op: str, wants: bool
) -> None:
    """One element a thread; results and memory are marked as values never written are (`checks.unwritten`)."""
    third = "{2}" if op == "cas" else "None"
    text = f"atomic(S, SITE, L, {space!r}, {op!r}, {kind!r}, {DTYPE[kind]}, {{0}}, {{1}}, {third}, {wants}, MARK)"
    _write(c, text, to, at, values, space, kind)


def _write(c: BlockCoder, text: str, to: Operand, at: str, values: list[Operand], space: str, kind: str) -> None:
    """The call `text` of the address and the operands, whose last argument is the operands' mark."""
    args = [at, *(c.use(v, kind) for v in values)]
    if space == "global":
        c.sink(Vec(tuple(values)), "operand of an atomic on global memory")
    mark = operand_taint(c, values, space)
    if mark != "FALSE":
        args.append(mark)
        mark = f"{{{len(args) - 1}}}"
    results = [] if isinstance(to, Sink) else [(to, kind)]
    (c.load if results and c.owner.checks and space in WATCHED else c.effect)(text.replace("MARK", mark), args, results)


WATCHED = ("shared", "local", "generic")
"""The spaces in which memory may be unwritten."""


def operand_taint(c: BlockCoder, values: list[Operand], space: str) -> str:
    """Whether an operand of an atomic depends on memory never written."""
    if not c.owner.checks or space not in WATCHED:
        return "FALSE"
    marks = {c.taint_of(value) for value in values} - {"FALSE"}
    return c.let(" | ".join(sorted(marks))) if marks else "FALSE"


def check_operation(op: str, kind: str) -> None:
    """`EmulationError` unless an operation goes with a type: floats are added and compared only (or exchanged)."""
    if kind in (*PACKED, "f32", "f64") and op not in ("add", "min", "max", "exch"):
        raise EmulationError(f"there is no atomic .{op} of .{kind}", hint="use .b32 or .b64 on the bits")


def _vector(c: BlockCoder, to: Operand, mem: Operand, value: Operand, space: str, kind: str, op: str) -> None:
    """Vector forms are atomic by element only."""
    assert isinstance(mem, Mem) and isinstance(value, Vec)
    size = bits_of(DTYPE[kind]) // 8
    outs = to.items if isinstance(to, Vec) else (Sink(),) * len(value.items)
    whole = size * len(value.items)
    c.effect(f"aligned_vector(SITE, L, {{0}}, {whole.bit_length() - 1})", [address(c, mem, space)])
    for index, (item, out) in enumerate(zip(value.items, outs, strict=True)):
        at = address(c, Mem(mem.base, mem.offset + index * size), space)
        _scalar(c, out, at, [item], space, kind, op, not isinstance(out, Sink))


def _wide(c: BlockCoder, to: Operand, at: str, values: list[Operand], space: str, op: str) -> None:
    third = "{2}" if op == "cas" else "None"
    _write(c, f"atomic128(S, SITE, L, {space!r}, {op!r}, {{0}}, {{1}}, {third}, MARK)", to, at, values, space, "b128")


Place = tuple[Array, Array, Array | None, str]


def resolve(S: Any, site: int, L: Lanes, space: str, addr: Any, dtype: Any) -> list[Place]:
    """(view, indices, positions, space) of the memory that the threads name."""
    shift = dtype.itemsize.bit_length() - 1
    if addr.__class__ is not np.ndarray:
        addr = np.full(L.n, addr)
    if space in ("global", "const"):
        try:
            return [(*found, "global") for found in S.g.resolve(site, addr, dtype, shift, 1, True)]
        except Fault as fault:
            raise fault.of(L) from None
    if space == "shared":
        view, index = S.sh.resolve(site, L, addr, dtype, shift)
        return [(view, np.broadcast_to(index, (L.n,)), None, space)]
    if space == "local":
        return [(*S.lo.resolve(site, L, addr, dtype, shift), None, space)]
    places: list[Place] = []
    for inner, at in by_space(addr):
        part = addr if at is None else addr[at]
        picked = L if at is None else L.subset(at)
        for view, index, sub, _ in resolve(S, site, picked, inner, local_address(inner, part), dtype):
            where = at if sub is None else sub if at is None else at[sub]
            places.append((view, index, where, inner))
    return places


@provide
def aligned_vector(site: int, L: Lanes, addr: Any, shift: int) -> None:
    """A fault unless whole vectors are aligned."""
    wrong = addr & addr.dtype.type((1 << shift) - 1)
    if np.count_nonzero(wrong):
        raise misaligned(site, addr, wrong, shift, "global", L)


@provide
def atomic(
    S: Any, site: int, L: Lanes, space: str, op: str, kind: str, dtype: Any, addr: Any, b: Any, c: Any,
    wants: bool, mark: Any,
) -> Any:  # fmt: skip
    """The old values. `b` and `c` are the operands (for cas: the value compared with, and the new one), `mark` says
    whose depend on memory never written."""

    def run(L: Lanes, addr: Any, b: Any, c: Any, mark: Any) -> Any:
        out = np.empty(L.n, dtype) if wants else None
        missing = S.atomic_begins(site, L, space, addr, dtype.itemsize)
        for view, index, at, inside in resolve(S, site, L, space, addr, dtype):
            mine = b if at is None else b[at]
            other = None if c is None else c if at is None else c[at]
            old = update(view, index, op, kind, mine, other, wants, inside == "global")
            if changes(op, old, mine):
                S.progress()
            if out is not None and old is not None:
                out[slice(None) if at is None else at] = old
        swapped = replaces(op, out, b)
        S.atomic_ends(site, L, space, addr, dtype.itemsize, unit(op, kind, dtype), missing, mark, swapped,
                      swapped if op == "cas" and out is not None else np.bool_(True))  # fmt: skip
        return out

    b = np.broadcast_to(b, (L.n,))
    c = None if c is None else np.broadcast_to(c, (L.n,))
    found = S.attempt(run, L, addr, b, c, mark)
    return np.zeros(L.n, dtype) if found is None and wants else found


def replaces(op: str, old: Array | None, b: Any) -> Any:
    """Whose operand took the place of the old value."""
    if op != "cas" or old is None:
        return np.bool_(op == "exch")
    same = old == b
    return same.all(axis=1) if same.ndim > 1 else same


def unit(op: str, kind: str, dtype: Any) -> int:
    """The bytes that an operation combines as one with the old value; 0 for those that do not combine."""
    if op in ("exch", "cas"):
        return 0
    if op in ("and", "or", "xor"):
        return 1
    return 2 if kind in PACKED else int(dtype.itemsize)


def changes(op: str, old: Array | None, b: Array) -> bool:
    """Whether an atomic may have changed memory: one that did not is a poll."""
    if op in ("add", "or", "xor"):
        return bool(np.count_nonzero(b))
    if op in ("exch", "and", "min", "max") and old is not None:
        return bool((old != b).any())
    return op != "cas" or (old is not None and bool((old == b).any()))


def combine(op: str, kind: str, in_global: bool) -> Callable[[Any, Any, Any], Any]:
    """The new value from the old one and the operands, as global memory or other instructions compute it."""
    if op == "add" and kind in PACKED:
        return lambda old, b, c: floats.add(old, b, type=kind)
    if op == "add" and kind == "f32":
        return lambda old, b, c: floats.add(old, b, type="f32", ftz=in_global)
    if op == "add" and kind == "f64" and in_global:
        return lambda old, b, c: floats.add(old, b, type="f64", quiet=False)
    if op == "add" and kind == "f64":
        return lambda old, b, c: floats.add(b, old, type="f64")
    if op in ("min", "max") and (kind[0] == "f" or kind[0:2] == "bf"):
        extreme = floats.min_ if op == "min" else floats.max_
        return lambda old, b, c: extreme(old, b, type=kind)
    simple: dict[str, Callable[[Any, Any, Any], Any]] = {
        "add": lambda old, b, c: old + b,
        "min": lambda old, b, c: np.minimum(old, b),
        "max": lambda old, b, c: np.maximum(old, b),
        "and": lambda old, b, c: old & b,
        "or": lambda old, b, c: old | b,
        "xor": lambda old, b, c: old ^ b,
        "exch": lambda old, b, c: b,
        "cas": lambda old, b, c: np.where(old == b, c, old),
        "inc": lambda old, b, c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
        "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
    }
    return simple[op]


_AT = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
       "xor": np.bitwise_xor}  # fmt: skip


def update(
    view: Array, index: Array, op: str, kind: str, b: Array, c: Array | None, wants: bool, in_global: bool
) -> Array | None:
    """Apply an operation at indices that may repeat; the old values if wanted."""
    integral = view.dtype.kind in "ui" and kind not in PACKED
    if not wants and integral and op in _AT:
        _AT[op].at(view, index, b)
        return None
    change = combine(op, kind, in_global)
    order = np.argsort(index, kind="stable")
    places = index[order]
    first = np.empty(len(places), bool)
    first[0] = True
    np.not_equal(places[1:], places[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    if len(starts) == len(index):
        old = view[index]
        view[index] = change(old, b, c)
        return old
    if op == "cas" and c is not None:
        return _compare_and_swap(view, places, starts, order, b, c)
    if integral and op == "add":
        return _prefix_sums(view, places, first, starts, order, b)
    return _rounds(view, places, starts, order, change, b, c)


def _compare_and_swap(view: Array, places: Array, starts: Array, order: Array, b: Array, c: Array) -> Array:
    """Address by address: one step for each swap that succeeds."""
    out = np.empty(len(places), view.dtype)
    for start, end in zip(starts, np.append(starts[1:], len(places)), strict=True):
        lanes, place = order[start:end], places[start]
        while len(lanes):
            out[lanes] = view[place]
            hits = np.flatnonzero(b[lanes] == view[place])
            if not len(hits):
                break
            view[place] = c[lanes[hits[0]]]
            lanes = lanes[hits[0] + 1 :]
    return out


def _prefix_sums(view: Array, places: Array, first: Array, starts: Array, order: Array, b: Array) -> Array:
    """Integer sums: each thread sees the sum of those before it at its address."""
    values = b[order].astype(view.dtype)
    running = np.cumsum(values, dtype=view.dtype)
    group = np.cumsum(first) - 1
    before = running - values
    olds = view[places] + (before - before[starts][group])
    ends = np.append(starts[1:], len(places)) - 1
    view[places[ends]] = olds[ends] + values[ends]
    out = np.empty(len(places), view.dtype)
    out[order] = olds
    return out


def _rounds(
    view: Array, places: Array, starts: Array, order: Array, change: Callable[[Any, Any, Any], Any], b: Array,
    c: Array | None,
) -> Array:  # fmt: skip
    """The first thread of every address, then the second of every address, and so on."""
    out = np.empty(len(places), view.dtype)
    sizes = np.diff(np.append(starts, len(places)))
    for turn in range(int(sizes.max())):
        now = starts[sizes > turn] + turn
        lanes = order[now]
        old = view[places[now]]
        out[lanes] = old
        view[places[now]] = change(old, b[lanes], None if c is None else c[lanes])
    return out


@provide
def atomic128(
    S: Any, site: int, L: Lanes, space: str, op: str, addr: Any, b: Array, c: Array | None, mark: Any
) -> Array:
    """`atom.exch.b128` and `atom.cas.b128`, thread by thread."""
    missing = S.atomic_begins(site, L, space, addr, 16)
    out = np.empty((L.n, 2), np.uint64)
    if addr.__class__ is not np.ndarray:
        addr = np.full(L.n, addr)
    for lane in range(L.n):
        one = L.subset(np.array([lane]))
        low = resolve(S, site, one, space, addr[lane : lane + 1], np.dtype(np.uint64))[0]
        resolve(S, site, one, space, addr[lane : lane + 1] + addr.dtype.type(8), np.dtype(np.uint64))
        at = int(low[1][0])
        out[lane] = low[0][at : at + 2]
        new = b[lane] if op == "exch" else c[lane] if c is not None and (out[lane] == b[lane]).all() else out[lane]
        low[0][at : at + 2] = new
    swapped = replaces(op, out, b)
    wrote = swapped if op == "cas" else np.bool_(True)
    S.atomic_ends(site, L, space, addr, 16, 0, missing, mark, swapped, wrote)
    return out
