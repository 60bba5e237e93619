"""wmma.load, wmma.store and wmma.mma (PTX ISA 9.7.14.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.numerics import wmma
from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS, parse_shape
from tilewright.targets.emu.ptx import Instruction, Operand
from tilewright.targets.emu.rules import taint
from tilewright.targets.emu.rules.matrix import items_of, register_type, whole_warps
from tilewright.targets.emu.rules.memory import address, generic_load, generic_store, state_space
from tilewright.targets.emu.runtime import full, provide

STRIDE_BYTES = 16
"""Strides are multiples of a fragment's size (PTX ISA 9.7.14.1), but 16 bytes do (CUDA C++ Programming Guide)."""


def shape_of(i: Instruction) -> wmma.Shape:
    return parse_shape(next((m for m in i.mods if m[0] == "m" and "n" in m and "k" in m), i.opcode))


def layouts_of(i: Instruction, count: int, c: BlockCoder) -> list[str]:
    found = [m for m in i.mods if m in ("row", "col")]
    if len(found) != count:
        raise c.fail(f"{i.opcode} needs {count} of row and col")
    return found


def types_of(i: Instruction) -> list[str]:
    return [m for m in i.mods if m in ELEMENT_BITS]


@dataclass(frozen=True)
class Movement:
    """What a load or store moves: `matrix` is a, b or c (D too), `items` its registers."""

    matrix: str
    shape: wmma.Shape
    kind: str
    layout: str
    space: str
    items: tuple[Operand, ...]

    @property
    def given(self) -> str:
        """Arguments of `load_fragment` and `store_fragment`."""
        return f"{self.space!r}, {self.matrix!r}, {self.shape}, {self.kind!r}, {self.layout!r}"

    @property
    def kinds(self) -> list[tuple[Operand, str]]:
        """The registers and the PTX type of each."""
        return [(item, register_type(self.kind)) for item in self.items]


def movement(c: BlockCoder, i: Instruction, registers: Operand) -> Movement:
    """The form of a load or store; `EmulationError` unless the PTX ISA has it."""
    matrix = {"a": "a", "b": "b", "c": "c", "d": "c"}.get(i.mods[1] if len(i.mods) > 1 else "", "")
    shape, (layout,), kinds, space = shape_of(i), layouts_of(i, 1, c), types_of(i), state_space(i)
    if not matrix or len(kinds) != 1 or (i.mods[0] == "store") != (i.mods[1] == "d"):
        raise c.fail(f"{i.opcode} does not exist")
    kind = kinds[0]
    forms = [name for name, (shapes, sums) in wmma.FORMS.items() if shape in shapes and (matrix != "c" or kind in sums)]
    wmma.check(shape, kind if matrix != "c" else (forms or ["f16"])[0], *([kind] if matrix == "c" else []))
    if space not in ("global", "shared", "generic"):
        raise c.fail(f"{i.opcode}: matrices lie in global or shared memory")
    wmma.pieces(matrix, shape, kind, layout)
    items, wanted = items_of(registers), wmma.registers(matrix, shape, kind)
    if len(items) != wanted:
        raise c.fail(f"{i.opcode} moves {wanted} registers, not {len(items)}")
    return Movement(matrix, shape, kind, layout, space, items)


def stride_text(c: BlockCoder, i: Instruction, own: Movement) -> str:
    """The third operand, or what it is when it is left out."""
    if len(i.ops) > 2:
        return c.use(i.ops[2], "u32")
    return c.constant(wmma.stride_of(own.matrix, own.shape, own.layout), "u4")


@rule("wmma.load")
def wmma_load(c: BlockCoder, i: Instruction) -> None:
    """`wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`."""
    own = movement(c, i, i.ops[0])
    args = [address(c, i.ops[1], own.space), stride_text(c, i, own)]
    text = f"load_fragment(S, SITE, L, {{0}}, {{1}}, {own.given})"
    text = f"{text}[0]" if len(own.items) == 1 else text
    watched = c.owner.checks and own.space != "global"
    (c.load if watched else c.effect)(text, args, own.kinds)


@rule("wmma.store")
def wmma_store(c: BlockCoder, i: Instruction) -> None:
    """`wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}`."""
    own = movement(c, i, i.ops[1])
    args = [address(c, i.ops[0], own.space), stride_text(c, i, own)]
    values = [c.use(item, kind) for item, kind in own.kinds]
    if own.space == "global":
        c.sink(i.ops[1], "value stored to global memory")
    names = ", ".join(f"{{{n + 2}}}" for n in range(len(values)))
    taints = [c.taint_of(item) if own.space != "global" else "FALSE" for item in own.items]
    if all(mark == "FALSE" for mark in taints):
        c.effect(f"store_fragment(S, SITE, L, {{0}}, {{1}}, ({names},), (), {own.given})", [*args, *values])
        return
    tainted = ", ".join(f"{{{n + 2 + len(values)}}}" for n in range(len(taints)))
    text = f"store_fragment(S, SITE, L, {{0}}, {{1}}, ({names},), ({tainted},), {own.given})"
    c.effect(text, [*args, *values, *taints])


@rule("wmma.mma")
def wmma_mma(c: BlockCoder, i: Instruction) -> None:
    """`wmma.mma{.op.popc}.sync.aligned.layouts.shape{.rnd}.dtype{.atype.btype}.ctype{.satfinite} d, a, b, c`."""
    shape, types = shape_of(i), types_of(i)
    layouts_of(i, 2, c)  # the fragments are the same for all
    if len(types) not in (2, 4) or len(set(types[1:-1])) > 1:
        raise c.fail(f"{i.opcode} needs the types of D and C, or of D, A, B and C with A and B alike")
    d_type, kind, c_type = types[0], types[1] if len(types) == 4 else "f16", types[-1]
    wmma.check(shape, kind, d_type, c_type)
    words = ["satfinite=True"] if "satfinite" in i.mods else []
    words += [f"op={m!r}" for m in i.mods if m in ("xor", "and")]
    words += [f"rnd={m!r}" for m in i.mods if m in ("rn", "rz", "rm", "rp")]
    groups = []
    for operand, type in zip(i.ops[1:4], (kind, kind, c_type), strict=True):
        groups.append(f"({', '.join(c.use(item, register_type(type)) for item in items_of(operand))},)")
    given = ", ".join([str(shape), repr(kind), repr(d_type), repr(c_type), *groups, *words])
    results = [(item, register_type(d_type)) for item in items_of(i.ops[0])]
    places = [wmma.fragment(*which) for which in (("a", shape, kind), ("b", shape, kind), ("c", shape, c_type),
                                                  ("c", shape, d_type))]  # fmt: skip
    taint.product(c, f"whole_product(L, SITE, {given})", results, [items_of(op) for op in i.ops[1:4]], places)


@provide
def whole_product(
    L: Lanes, site: int, shape: wmma.Shape, kind: str, d_type: str, c_type: str, a: Any, b: Any, c: Any, **words: Any
) -> list[Array]:
    whole_warps(L, site)
    tables = [[full(x, L.n).reshape(-1, 32) for x in group] for group in (a, b, c)]
    return [r.reshape(-1) for r in wmma.mma(shape, kind, d_type, c_type, *tables, **words)]


def places_of(
    L: Lanes, site: int, addr: Any, stride: Any, matrix: str, shape: wmma.Shape, kind: str, layout: str
) -> tuple[list[list[Array]], int]:
    """The address of each piece of each register, by thread, and the size of a piece in bytes."""
    warps = whole_warps(L, site)
    bits, own = ELEMENT_BITS[kind], wmma.pieces(matrix, shape, kind, layout)
    base, step = full(addr, L.n), full(stride, L.n).astype(np.int64)
    unit = min(STRIDE_BYTES, wmma.registers(matrix, shape, kind) * (8 if kind == "f64" else 4))
    if ((step * bits) % (8 * unit)).any():
        raise Fault("operand", f"The stride of a matrix of {kind} is no multiple of {unit} bytes", site,
                    hint="rows (or columns) begin where a fragment may")  # fmt: skip
    major, minor = (np.tile(np.moveaxis(x, 1, 2), warps) for x in (own.major, own.minor))
    offsets = (major * step + minor) * bits >> 3  # (register, piece, thread)
    return [[base + piece.astype(base.dtype) for piece in register] for register in offsets], own.size


@provide
def load_fragment(S: Any, site: int, L: Lanes, addr: Any, stride: Any, space: str, *what: Any) -> list[Array]:
    places, size = places_of(L, site, addr, stride, *what)
    dtype, marks, found = np.dtype(f"u{size}"), [], []
    for register in places:
        words, missing = [], np.zeros(L.n, bool)
        for place in register:
            words.append(full(_load(S, space, site, L, place, dtype), L.n))
            if S.unwritten.__class__ is np.ndarray:
                missing |= S.unwritten.any(axis=1)
        joined = np.ascontiguousarray(np.stack(words, axis=-1))
        found.append(joined.view(np.uint64 if size == 8 else np.uint32)[:, 0])
        marks.append(missing)
    count = wmma.registers(what[0], what[1], what[2])
    S.unwritten = np.stack([marks[k % len(marks)] for k in range(count)], axis=1)
    return [found[k % len(found)] for k in range(count)]


def _load(S: Any, space: str, site: int, L: Lanes, place: Array, dtype: Any) -> Any:
    shift = dtype.itemsize.bit_length() - 1
    if space == "generic":
        return generic_load(S, site, L, place, dtype, shift)
    return (S.s_load if space == "shared" else S.g_load)(site, L, place, dtype, shift)


@provide
def store_fragment(
    S: Any, site: int, L: Lanes, addr: Any, stride: Any, values: tuple[Any, ...], tainted: tuple[Any, ...], space: str,
    *what: Any,
) -> None:  # fmt: skip
    """Registers to memory; `tainted` (or nothing) says whose depend on memory never written."""
    places, size = places_of(L, site, addr, stride, *what)
    dtype, shift = np.dtype(f"u{size}"), size.bit_length() - 1
    for number, (register, value) in enumerate(zip(places, values, strict=True)):
        words = np.ascontiguousarray(full(value, L.n))[:, None].view(dtype)
        for index, place in enumerate(register):
            part = np.ascontiguousarray(words[:, index])
            if space == "generic":
                generic_store(S, site, L, place, part, dtype, shift)
            else:
                (S.s_store if space == "shared" else S.g_store)(site, L, place, part, dtype, shift)
            if tainted:
                S.on.unwritten_stored(site, L, space, place, 0, shift, tainted[number])
