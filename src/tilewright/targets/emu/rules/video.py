"""Video instructions (PTX ISA 9.7.16, 9.7.17): scalar ones on bytes and halves, and SIMD ones."""

from __future__ import annotations

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.numerics import video
from tilewright.targets.emu.ptx import Instruction, Operand, Part
from tilewright.targets.emu.runtime import provide_numeric

for _name in ("scalar", "simd", "mad"):
    provide_numeric(f"video_{_name}", getattr(video, _name))

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
SECOND = ("add", "min", "max")


def part_of(operand: Operand) -> str | None:
    """The selector of an operand, None for the whole register."""
    return operand.selector or None if isinstance(operand, Part) else None


def destination(c: BlockCoder, operand: Operand) -> tuple[Operand, str | None]:
    return (operand.reg, part_of(operand)) if isinstance(operand, Part) else (operand, None)


@rule("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
def scalar(c: BlockCoder, i: Instruction) -> None:
    """`vop.dtype.atype.btype{.sat}{.op2} d{.part}, a{.sel}, b{.sel}{, c}`; vset has no dtype and a comparison."""
    name = i.op[1:]
    words = []
    if name == "set":
        a_type, b_type = i.types
        name, d_type = next(m for m in i.mods if m in COMPARISONS), "u32"
    else:
        d_type, a_type, b_type = i.types
    to, part = destination(c, i.ops[0])
    words += [f"d_type={d_type!r}, a_type={a_type!r}, b_type={b_type!r}"]
    words += [f"a_part={part_of(i.ops[1])!r}, b_part={part_of(i.ops[2])!r}, d_part={part!r}"]
    words += ["sat=True"] if "sat" in i.mods else []
    words += [f"second={m!r}" for m in i.mods if m in SECOND]
    words += [f"clamp={'wrap' not in i.mods}"] if name in ("shl", "shr") else []
    operands = ", ".join(c.use(op, "u32") for op in i.ops[1:])
    c.set(to, d_type, f"video_scalar({name!r}, {operands}, {', '.join(words)})")


@rule("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2", "vadd4", "vsub4", "vavrg4", "vabsdiff4",
      "vmin4", "vmax4", "vset4")  # fmt: skip
def simd(c: BlockCoder, i: Instruction) -> None:
    """The same on two halves or four bytes; selectors and masks list the highest part first."""
    name, parts = i.op[1:-1], int(i.op[-1])
    if name == "set":
        a_type, b_type = i.types
        name, d_type = next(m for m in i.mods if m in COMPARISONS), "u32"
    else:
        d_type, a_type, b_type = i.types
    to, mask = destination(c, i.ops[0])
    words = [f"parts={parts}, d_type={d_type!r}, a_type={a_type!r}, b_type={b_type!r}"]
    for key, text in (("a_select", part_of(i.ops[1])), ("b_select", part_of(i.ops[2])), ("mask", mask)):
        words += [f"{key}={tuple(int(d) for d in reversed(text[1:]))}"] if text else []
    words += ["sat=True"] if "sat" in i.mods else []
    words += ["accumulate=True"] if "add" in i.mods else []
    operands = ", ".join(c.use(op, "u32") for op in i.ops[1:])
    c.set(to, d_type, f"video_simd({name!r}, {operands}, {', '.join(words)})")


@rule("vmad")
def mad(c: BlockCoder, i: Instruction) -> None:
    """`vmad.dtype.atype.btype{.sat}{.po}{.shr7|.shr15} d, {-}a{.sel}, {-}b{.sel}, {-}c`."""
    a, b, addend = i.ops[1:4]
    d_type, a_type, b_type = i.types
    words = [f"a_type={a_type!r}, b_type={b_type!r}, a_part={part_of(a)!r}, b_part={part_of(b)!r}"]
    negative = [isinstance(op, Part) and op.negative for op in (a, b, addend)]
    words += ["negate_product=True"] if negative[0] != negative[1] else []
    words += ["negate_c=True"] if negative[2] else []
    words += ["plus_one=True"] if "po" in i.mods else []
    words += [f"shift={m[3:]}" for m in i.mods if m in ("shr7", "shr15")]
    words += ["sat=True"] if "sat" in i.mods else []
    operands = ", ".join(c.use(op, "u32") for op in (a, b, addend))
    c.set(i.ops[0], d_type, f"video_mad({operands}, {', '.join(words)}).view({DTYPE[d_type]})")
