"""`cvt` (PTX ISA 9.7.9, cvt, cvt.pack)."""

from __future__ import annotations

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.numerics import convert
from tilewright.targets.emu.ptx import Instruction, Vec
from tilewright.targets.emu.runtime import provide_numeric

provide_numeric("cvt", convert.cvt)
provide_numeric("cvt_pack", convert.pack)

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "rs")
INTEGERS = {f"{k}{n}" for k in "us" for n in (8, 16, 32, 64)}


@rule("cvt")
def cvt(c: BlockCoder, i: Instruction) -> None:
    to, source = i.types[:2]
    operands = i.ops[1:]
    if to in INTEGERS and source in INTEGERS and "sat" not in i.mods:
        value = c.use(operands[0], source)
        c.set(i.ops[0], to, value if DTYPE[to] == DTYPE[source] else f"{value}.astype({DTYPE[to]})")
        return
    if to == "f32" and source == "f16" and "ftz" not in i.mods and "sat" not in i.mods:
        c.set(i.ops[0], "f32", f"nan32({c.use(operands[0], 'f16')}.astype(f4))")
        return
    rounding = next((m for m in i.mods if m in ROUNDINGS), None)
    if rounding == "rs":
        raise c.fail("cvt.rs (stochastic rounding) is not emulated")
    flags = "".join(f", {name}=True" for name in ("ftz", "sat", "relu", "satfinite") if name in i.mods)
    if len(operands) == 2:
        pair = ", ".join(bits32(c.use(op, source), source) for op in operands)
        value = f"cvt(({pair}), {source!r}, {to!r}, rnd={rounding!r}{flags})"
    elif isinstance(operands[0], Vec):
        raise c.fail("cvt from a vector is not emulated")
    else:
        value = f"cvt({bits32(c.use(operands[0], source), source)}, {source!r}, {to!r}, rnd={rounding!r}{flags})"
    if to == "tf32":
        c.set(i.ops[0], "b32", value)
    else:
        c.set(i.ops[0], to, value)


@rule("cvt.pack")
def cvt_pack(c: BlockCoder, i: Instruction) -> None:
    """`cvt.pack.sat.to.from{.b32} d, a, b{, c}`."""
    to = i.mods[2]
    a, b = (c.use(op, "s32") for op in i.ops[1:3])
    above = c.use(i.ops[3], "b32") if len(i.ops) > 3 else "None"
    c.set(i.ops[0], "b32", f"cvt_pack({a}, {b}, {above}, {to!r})")


def bits32(text: str, source: str) -> str:
    """tf32 values are passed as words."""
    return f"{text}.view(u4)" if source == "tf32" else text
