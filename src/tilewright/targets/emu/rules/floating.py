"""Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5); also where integer and float instructions share a name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.numerics import approx, floats
from tilewright.targets.emu.numerics.formats import NAN32
from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.rules import integer
from tilewright.targets.emu.runtime import provide, provide_numeric

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")

for _name in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt", "min_", "max_", "abs_", "neg", "copysign", "testp"):
    provide_numeric(f"f_{_name}", getattr(floats, _name))
for _name in ("rcp", "rsqrt", "sqrt", "sin", "cos", "lg2", "ex2", "tanh", "div", "div_full"):
    provide_numeric(f"a_{_name}", getattr(approx, _name))


@provide
def nan32(r: Any) -> Any:
    """Every NaN becomes the canonical one."""
    lost = r != r
    return r if not np.count_nonzero(lost) else np.where(lost, NAN32, r)[()]


def modifiers(i: Instruction, *names: str) -> str:
    """Keyword arguments for the modifiers that are present."""
    words = [f"type={i.type!r}"]
    rounding = next((m for m in i.mods if m in ROUNDINGS), None)
    if rounding is not None and "rnd" in names:
        words.append(f"rnd={rounding!r}")
    words += [f"{name}=True" for name in names if name in i.mods]
    return ", ".join(words)


def sources(c: BlockCoder, i: Instruction, count: int) -> list[str]:
    return [c.use(op, i.type) for op in i.ops[1 : 1 + count]]


def plain32(i: Instruction) -> bool:
    return i.type == "f32" and not any(m in i.mods for m in ("rz", "rm", "rp", "ftz", "sat"))


@rule("add", "sub")
def add(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        integer.add_sub(c, i)
        return
    mixed = len(i.types) == 2
    a = c.use(i.ops[1], i.types[-1] if mixed else i.type)
    if mixed:
        _mixed(c, i)
        return
    b = c.use(i.ops[2], i.type)
    if plain32(i):
        c.set(i.ops[0], "f32", f"nan32({a} {'+' if i.op == 'add' else '-'} {b})")
    else:
        c.set(i.ops[0], i.type, f"f_{i.op}({a}, {b}, {modifiers(i, 'rnd', 'ftz', 'sat')})")


def _mixed(c: BlockCoder, i: Instruction) -> None:
    """`add.f32.f16 d, a, c`: the 16-bit operand is widened, exactly (PTX ISA, mixed precision instructions)."""
    wide, narrow = i.types
    wanted = [narrow, wide] if i.op in ("add", "sub") else [narrow, narrow, wide]
    operands = []
    for operand, kind in zip(i.ops[1:], wanted, strict=True):
        text = c.use(operand, kind)
        operands.append(text if kind == wide else c.let(f"cvt({text}, {kind!r}, {wide!r})"))
    words = [f"type={wide!r}"]
    rounding = next((m for m in i.mods if m in ROUNDINGS), None)
    words += [f"rnd={rounding!r}"] if rounding else []
    words += ["sat=True"] if "sat" in i.mods else []
    c.set(i.ops[0], wide, f"f_{i.op}({', '.join(operands)}, {', '.join(words)})")


@rule("mul")
def mul(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        integer.mul(c, i)
        return
    a, b = sources(c, i, 2)
    if plain32(i):
        c.set(i.ops[0], "f32", f"nan32({a} * {b})")
    else:
        c.set(i.ops[0], i.type, f"f_mul({a}, {b}, {modifiers(i, 'rnd', 'ftz', 'sat')})")


@rule("fma", "mad")
def fma(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        integer.mad(c, i)
        return
    if len(i.types) == 2:
        _mixed(c, i)
        return
    a, b, d = sources(c, i, 3)
    c.set(i.ops[0], i.type, f"f_fma({a}, {b}, {d}, {modifiers(i, 'rnd', 'ftz', 'sat', 'relu', 'oob')})")


@rule("div")
def div(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        integer.div_rem(c, i)
        return
    a, b = sources(c, i, 2)
    if "approx" in i.mods or "full" in i.mods:
        name = "a_div" if "approx" in i.mods else "a_div_full"
        c.set(i.ops[0], i.type, f"{name}({a}, {b}, {modifiers(i, 'ftz')})")
    else:
        c.set(i.ops[0], i.type, f"f_div({a}, {b}, {modifiers(i, 'rnd', 'ftz')})")


@rule("rcp", "sqrt")
def root(c: BlockCoder, i: Instruction) -> None:
    a = c.use(i.ops[1], i.type)
    if "approx" in i.mods:
        c.set(i.ops[0], i.type, f"a_{i.op}({a}, {modifiers(i, 'ftz')})")
    else:
        c.set(i.ops[0], i.type, f"f_{i.op}({a}, {modifiers(i, 'rnd', 'ftz')})")


@rule("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def approximate(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], i.type, f"a_{i.op}({c.use(i.ops[1], i.type)}, {modifiers(i, 'ftz')})")


@rule("abs", "neg")
def sign(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        (integer.absolute if i.op == "abs" else integer.negate)(c, i)
        return
    name = "f_abs_" if i.op == "abs" else "f_neg"
    c.set(i.ops[0], i.type, f"{name}({c.use(i.ops[1], i.type)}, {modifiers(i, 'ftz')})")


@rule("min", "max")
def extreme(c: BlockCoder, i: Instruction) -> None:
    if not integer.is_float(i):
        integer.extreme(c, i)
        return
    operands = ", ".join(c.use(op, i.type) for op in i.ops[1:])
    words = [f"type={i.type!r}"]
    words += ["ftz=True"] if "ftz" in i.mods else []
    words += ["nan=True"] if "NaN" in i.mods else []
    if "xorsign" in i.mods:
        words.append("xorsign=True")
    elif "abs" in i.mods:
        words.append("abs_=True")
    c.set(i.ops[0], i.type, f"f_{i.op}_({operands}, {', '.join(words)})")


@rule("copysign")
def copysign(c: BlockCoder, i: Instruction) -> None:
    a, b = sources(c, i, 2)
    c.set(i.ops[0], i.type, f"f_copysign({a}, {b}, type={i.type!r})")


@rule("testp")
def testp(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], "pred", f"f_testp({c.use(i.ops[1], i.type)}, {i.mods[0]!r}, type={i.type!r})")
