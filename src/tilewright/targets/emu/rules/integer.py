"""Integer arithmetic (PTX ISA 9.7.1, 9.7.2) and the scalar video instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.numerics import integers
from tilewright.targets.emu.ptx import Instruction, Reg
from tilewright.targets.emu.ptx.ir import WIDTH
from tilewright.targets.emu.runtime import provide, provide_numeric

WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
CARRY = Reg("%cc", "pred")
"""The condition code of add.cc and its kin."""

for _name in ("mul_hi", "mad_hi", "mul24", "mad24", "dot4", "dot2", "add_sat", "sub_sat", "add_carry", "sub_borrow",
              "sad", "add_halves"):  # fmt: skip
    provide_numeric(_name, getattr(integers, _name))
for _name in ("div", "rem"):
    provide_numeric(f"int_{_name}", getattr(integers, _name))
for _name in ("abs_", "min_", "max_"):
    provide_numeric(f"int_{_name}", getattr(integers, _name))


def unsigned(kind: str) -> str:
    """The type of the same width in which wrapping arithmetic is done."""
    return f"u{WIDTH[kind]}"


def is_float(i: Instruction) -> bool:
    return bool(i.type) and (i.type[0] == "f" or i.type.startswith("bf"))


def add_sub(c: BlockCoder, i: Instruction) -> None:
    """add and sub of integers, with .sat and carries."""
    kind = i.type
    if kind in ("u16x2", "s16x2"):
        a, b = (c.use(op, "u32") for op in i.ops[1:3])
        c.set(i.ops[0], "u32", f"add_halves({a}, {b}, {kind!r})")
        return
    if "cc" in i.mods:
        carry(c, i, "add_carry" if i.op == "add" else "sub_borrow", "FALSE")
        return
    if "sat" in i.mods:
        a, b = (c.use(op, kind) for op in i.ops[1:3])
        c.set(i.ops[0], kind, f"{i.op}_sat({a}, {b}, {kind!r})")
        return
    a, b = (c.use(op, unsigned(kind)) for op in i.ops[1:3])
    c.set(i.ops[0], unsigned(kind), f"{a} {'+' if i.op == 'add' else '-'} {b}")


def carry(c: BlockCoder, i: Instruction, function: str, incoming: str) -> None:
    """A sum with a carry, or a difference with a borrow.

    The hardware keeps a borrow as a carry that is not there, which `subc` behind `madc.cc` shows (recorded on an H100).
    """
    kind = unsigned(i.type)
    a, b = (c.use(op, kind) for op in i.ops[1:3])
    pair = c.let(f"{function}({a}, {b}, {incoming}, {kind!r})")
    c.set(i.ops[0], kind, f"flat({pair}[0], {a}, {b})")
    if "cc" in i.mods:
        out = f"flat({pair}[1].astype(bool), {a}, {b})"
        c.set(CARRY, "pred", f"~{out}" if function == "sub_borrow" else out)


@provide
def flat(value: Any, *operands: Any) -> Any:
    """A result as a scalar where no operand was an array."""
    return value if value.__class__ is not np.ndarray or value.ndim else value[()]


@rule("addc")
def addc(c: BlockCoder, i: Instruction) -> None:
    carry(c, i, "add_carry", c.use(CARRY, "pred"))


@rule("subc")
def subc(c: BlockCoder, i: Instruction) -> None:
    carry(c, i, "sub_borrow", c.let(f"~{c.use(CARRY, 'pred')}"))


def mul(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], product_type(i), product(c, i))


def product_type(i: Instruction) -> str:
    return WIDE[i.type] if "wide" in i.mods else unsigned(i.type) if "lo" in i.mods else i.type


def product(c: BlockCoder, i: Instruction) -> str:
    """The product that .lo, .hi or .wide picks."""
    kind = i.type
    if "wide" in i.mods:
        a, b = (c.use(op, kind) for op in i.ops[1:3])
        wide = DTYPE[WIDE[kind]]
        return f"{a}.astype({wide}) * {b}"
    if "hi" in i.mods:
        a, b = (c.use(op, kind) for op in i.ops[1:3])
        return f"mul_hi({a}, {b}, {kind!r})"
    a, b = (c.use(op, unsigned(kind)) for op in i.ops[1:3])
    return f"{a} * {b}"


def mad(c: BlockCoder, i: Instruction) -> None:
    kind = product_type(i)
    if "sat" in i.mods:
        a, b, d = (c.use(op, i.type) for op in i.ops[1:4])
        c.set(i.ops[0], i.type, f"mad_hi({a}, {b}, {d}, {i.type!r}, sat=True)")
    elif "cc" in i.mods:
        mad_carry(c, i, "FALSE")
    else:
        addend = c.use(i.ops[3], kind)
        c.set(i.ops[0], kind, f"{product(c, i)} + {addend}")


@rule("madc")
def madc(c: BlockCoder, i: Instruction) -> None:
    mad_carry(c, i, c.use(CARRY, "pred"))


def mad_carry(c: BlockCoder, i: Instruction, incoming: str) -> None:
    kind = unsigned(i.type)
    low = c.let(product(c, i))
    if DTYPE[product_type(i)] != DTYPE[kind]:
        low = c.let(f"{low}.view({DTYPE[kind]})")
    addend = c.use(i.ops[3], kind)
    pair = c.let(f"add_carry({low}, {addend}, {incoming}, {kind!r})")
    c.set(i.ops[0], kind, f"flat({pair}[0])")
    if "cc" in i.mods:
        c.set(CARRY, "pred", f"flat({pair}[1].astype(bool))")


@rule("mul24")
def mul24(c: BlockCoder, i: Instruction) -> None:
    a, b = (c.use(op, i.type) for op in i.ops[1:3])
    c.set(i.ops[0], i.type, f"mul24({a}, {b}, {i.type!r}, high={'hi' in i.mods})")


@rule("mad24")
def mad24(c: BlockCoder, i: Instruction) -> None:
    a, b, d = (c.use(op, i.type) for op in i.ops[1:4])
    c.set(i.ops[0], i.type, f"mad24({a}, {b}, {d}, {i.type!r}, high={'hi' in i.mods}, sat={'sat' in i.mods})")


def div_rem(c: BlockCoder, i: Instruction) -> None:
    a, b = (c.use(op, i.type) for op in i.ops[1:3])
    c.set(i.ops[0], i.type, f"int_{i.op}({a}, {b}, {i.type!r})")


@rule("rem")
def rem(c: BlockCoder, i: Instruction) -> None:
    div_rem(c, i)


@rule("sad")
def sad(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    a, b, d = c.use(i.ops[1], kind), c.use(i.ops[2], kind), c.use(i.ops[3], kind)
    c.set(i.ops[0], kind, f"sad({a}, {b}, {d}, {kind!r})")


def absolute(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], i.type, f"int_abs_({c.use(i.ops[1], i.type)}, {i.type!r})")


def negate(c: BlockCoder, i: Instruction) -> None:
    kind = unsigned(i.type)
    c.set(i.ops[0], kind, f"~{c.use(i.ops[1], kind)} + {c.constant(1, DTYPE[kind])}")


def extreme(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    a, b = (c.use(op, kind) for op in i.ops[1:3])
    if "relu" in i.mods or kind.endswith("x2"):
        c.set(i.ops[0], kind, f"int_{i.op}_({a}, {b}, {kind!r}, relu={'relu' in i.mods})")
    else:
        c.set(i.ops[0], kind, f"{'minimum' if i.op == 'min' else 'maximum'}({a}, {b})")


@rule("dp4a", "dp2a")
def dot(c: BlockCoder, i: Instruction) -> None:
    a_type, b_type = i.types
    a, b = c.use(i.ops[1], "u32"), c.use(i.ops[2], "u32")
    result = "s32" if "s32" in (a_type, b_type) else "u32"
    d = c.use(i.ops[3], result)
    high = f", high={'hi' in i.mods}" if i.op == "dp2a" else ""
    c.set(i.ops[0], result, f"{'dot4' if i.op == 'dp4a' else 'dot2'}({a}, {b}, {d}, {a_type!r}, {b_type!r}{high})")
