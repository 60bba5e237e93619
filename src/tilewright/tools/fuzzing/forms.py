"""The instructions that random programs are made of, with the kinds of their operands.

A row of `TABLE` is an opcode and `results = operands`. `(a|b)` is a choice and `{.x}` may be absent. An operand is a
letter of `KINDS`; `{hh}` is a vector of registers, `#N` a constant below N, `r&N` a register taken modulo a power of
two, `r+` one made positive and odd, for what the manual leaves open otherwise (division by zero, its overflow, fields
beyond 255). A line `@name` begins a family, from which a program takes several.

Left out, since the manual does not say what they give: bare sums and products of floats (the assembler may contract
them), `mul24.hi` and the approximations of a program that is to be compared with the emulator (`@approximate`).
Source: PTX ISA 8.0, chapter "Instructions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

KINDS: Final = {
    "p": ("pred", 4), "h": ("b16", 5), "r": ("b32", 7), "d": ("b64", 4), "e": ("b16", 4), "b": ("b16", 4),
    "x": ("b32", 4), "y": ("b32", 4), "f": ("b32", 5), "g": ("b64", 3),
}  # fmt: skip
"""Registers by the letter of their names, with type and number: predicates; integers of 16, 32 and 64 bits; f16, bf16;
pairs of f16 and of bf16; f32, f64."""

APPROXIMATE: Final = "approximate"

TABLE: Final = """
@int16
(add|sub|min|max|mul.lo|mul.hi).(s16|u16)   h = h h
mul.wide.(s16|u16)                          r = h h
mad.(lo|hi).(s16|u16)                       h = h h h
mad.wide.(s16|u16)                          r = h h r
(abs|neg).s16                               h = h
(div|rem).(s16|u16)                         h = h h+
sad.(s16|u16)                               h = h h h
(and|or|xor).b16                            h = h h
(not|cnot).b16                              h = h
shl.b16                                     h = h r&32
shr.(s16|u16|b16)                           h = h r&32
setp.(eq|ne|lt|le|gt|ge).(s16|u16)          p = h h
selp.b16                                    h = h h p
slct.b16.s32                                h = h h r
set.(lt|ge|ne).u32.(s16|u16)                r = h h
mov.b16                                     h = h
@packed
(add|min|max).(s16x2|u16x2)                 r = r r
(min|max).relu.s16x2                        r = r r
mov.b32                                     r = {hh}
mov.b32                                     {hh} = r
mov.b32                                     {_h} = r
mov.b32                                     {h_} = r
mov.b64                                     d = {rr}
mov.b64                                     {rr} = d
mov.b64                                     {hhhh} = d
mov.b64                                     {h_hh} = d
mov.b64                                     {___h} = d
mov.b64                                     d = {hhhh}
prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}    r = r r r
prmt.b32                                    r = r r #65536
cvt.pack.sat.(s16|u16).s32                  r = r r
cvt.pack.sat.(s8|u8).s32.b32                r = r r r
dp4a.(u32|s32).(u32|s32)                    r = r r r
dp2a.(lo|hi).(u32|s32).(u32|s32)            r = r r r
@int32
(add|sub|min|max|mul.lo|mul.hi).(s32|u32)   r = r r
(add|sub).sat.s32                           r = r r
(min|max).relu.s32                          r = r r
mul.wide.(s32|u32)                          d = r r
mad.(lo|hi).(s32|u32)                       r = r r r
mad.hi.sat.s32                              r = r r r
mad.wide.(s32|u32)                          d = r r d
mul24.lo.(s32|u32)                          r = r r
mad24.lo.(s32|u32)                          r = r r r
(abs|neg).s32                               r = r
(div|rem).(s32|u32)                         r = r r+
sad.(s32|u32)                               r = r r r
setp.(eq|ne|lt|le|gt|ge).s32                p = r r
setp.(lo|ls|hi|hs).u32                      p = r r
setp.(lt|ge|ne).(and|or|xor).s32            p = r r p
setp.(le|gt|eq).(and|or|xor).u32            p^p = r r p
selp.(b32|s32)                              r = r r p
slct.s32.s32                                r = r r r
set.(lt|le|eq).(u32|s32|f32).(s32|u32)      r = r r
mov.b32                                     r = r
@bits32
(and|or|xor).b32                            r = r r
(not|cnot).b32                              r = r
lop3.b32                                    r = r r r #256
shl.b32                                     r = r r
shr.(s32|u32|b32)                           r = r r
shf.(l|r).(clamp|wrap).b32                  r = r r r
(popc|clz|brev).b32                         r = r
bfind{.shiftamt}.(s32|u32)                  r = r
fns.b32                                     r = r r&32 r&8
bfe.(s32|u32)                               r = r r&256 r&256
bfi.b32                                     r = r r r&256 r&256
bmsk.(clamp|wrap).b32                       r = r r
szext.(clamp|wrap).(s32|u32)                r = r r
shl.b32                                     r = r #40
shr.(s32|u32)                               r = r #40
bfe.(s32|u32)                               r = r #34 #34
bfi.b32                                     r = r r #34 #34
@int64
(add|sub|min|max|mul.lo|mul.hi).(s64|u64)   d = d d
mad.(lo|hi).(s64|u64)                       d = d d d
(abs|neg).s64                               d = d
(div|rem).(s64|u64)                         d = d d+
sad.(s64|u64)                               d = d d d
(and|or|xor).b64                            d = d d
(not|cnot).b64                              d = d
shl.b64                                     d = d r
shr.(s64|u64|b64)                           d = d r
shl.b64                                     d = d #70
shr.(s64|u64)                               d = d #70
(popc|clz).b64                              r = d
brev.b64                                    d = d
bfind{.shiftamt}.(s64|u64)                  r = d
bfe.(s64|u64)                               d = d r&256 r&256
bfi.b64                                     d = d d r&256 r&256
setp.(eq|ne|lt|le|gt|ge).(s64|u64)          p = d d
setp.(lt|ne).(and|or|xor).s64               p^p = d d p
selp.(b64|s64)                              d = d d p
slct.b64.s32                                d = d d r
set.(lt|ge).u32.(s64|u64)                   r = d d
mov.b64                                     d = d
@widths
cvt.(u32|s32).(u8|s8|u16|s16)               r = h
cvt.(u64|s64).(u8|s8|u16|s16)               d = h
cvt.(u64|s64).(u32|s32)                     d = r
cvt.(u32|s32).(u64|s64)                     r = d
cvt.(u16|s16|u8|s8).(u32|s32)               h = r
cvt.(u16|s16|u8|s8).(u64|s64)               h = d
cvt.(u16|s16).(u8|s8)                       h = h
cvt.sat.(u16|s16|u8|s8).(u32|s32)           h = r
cvt.sat.(u32|s32).(u64|s64)                 r = d
cvt.sat.(u8|s8).(u16|s16)                   h = h
cvt.sat.s16.u16                             h = h
cvt.sat.u32.s32                             r = r
cvt.sat.u64.s64                             d = d
@predicates
(and|or|xor).pred                           p = p p
(not|mov).pred                              p = p
selp.b32                                    r = r r p
selp.b32                                    r = #2 #3 p
setp.ne.b32                                 p = r #2
@f32
(add|sub|mul).(rn|rz|rm|rp){.ftz}{.sat}.f32 f = f f
(add|sub|mul).rn.f32                        f = f f
fma.(rn|rz|rm|rp){.ftz}{.sat}.f32           f = f f f
fma.rn.f32                                  f = f f f
(min|max){.ftz}{.NaN}{.xorsign.abs}.f32     f = f f
(min|max).f32                               f = f f
(abs|neg){.ftz}.f32                         f = f
div.(rn|rz|rm|rp){.ftz}.f32                 f = f f
(rcp|sqrt).(rn|rz|rm|rp){.ftz}.f32          f = f
copysign.f32                                f = f f
testp.(finite|infinite|number|notanumber|normal|subnormal).f32 p = f
setp.(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan){.ftz}.f32 p = f f
setp.(lt|geu).(and|or|xor).f32              p^p = f f p
selp.f32                                    f = f f p
slct.f32.f32                                f = f f f
set.(lt|ltu|ge).(u32|s32).f32               r = f f
cvt.(rni|rzi|rmi|rpi){.ftz}.f32.f32         f = f
cvt.(sat|ftz.sat|ftz).f32.f32               f = f
mov.f32                                     f = f
@f64
(add|sub|mul).(rn|rz|rm|rp).f64             g = g g
fma.(rn|rz|rm|rp).f64                       g = g g g
(min|max).f64                               g = g g
(abs|neg).f64                               g = g
div.(rn|rz|rm|rp).f64                       g = g g
(rcp|sqrt).(rn|rz|rm|rp).f64                g = g
copysign.f64                                g = g g
testp.(finite|infinite|number|notanumber|normal|subnormal).f64 p = g
setp.(eq|ne|lt|le|gt|ge|ltu|geu|num|nan).f64 p = g g
selp.f64                                    g = g g p
cvt.(rn|rz|rm|rp){.ftz}.f32.f64             f = g
cvt{.ftz}.f64.f32                           g = f
cvt.(rni|rzi|rmi|rpi).f64.f64               g = g
cvt.(rn|rz|rm|rp).f64.(s64|u64)             g = d
cvt.rn.f64.(s32|u32)                        g = r
cvt.rn.f64.(s8|u8|s16|u16)                  g = h
cvt.(rni|rzi|rmi|rpi).(s64|u64).f64         d = g
cvt.(rni|rzi|rmi|rpi).(s32|u32).f64         r = g
@f16
(add|sub|mul).rn{.ftz}{.sat}.f16            e = e e
(add|sub|mul).rn{.ftz}{.sat}.f16x2          x = x x
fma.rn{.ftz}(|.sat|.relu).f16               e = e e e
fma.rn{.ftz}(|.sat|.relu).f16x2             x = x x x
(min|max){.ftz}{.NaN}{.xorsign.abs}.f16     e = e e
(min|max){.ftz}{.NaN}{.xorsign.abs}.f16x2   x = x x
(abs|neg){.ftz}.f16                         e = e
(abs|neg){.ftz}.f16x2                       x = x
setp.(eq|ne|lt|le|gt|ge|ltu|geu|nan){.ftz}.f16 p = e e
setp.(lt|geu|ne){.ftz}.f16x2                p^p = x x
set.(lt|geu).f16x2.f16x2                    x = x x
selp.b16                                    e = e e p
mov.b32                                     x = {ee}
mov.b32                                     {ee} = x
mov.b32                                     {_e} = x
cvt{.ftz}.f32.f16                           f = e
cvt.(rn|rz){.sat}.f16.f32                   e = f
cvt.(rn|rz){.relu}.f16x2.f32                x = f f
cvt.(rn|rz|rm|rp).f16.(s8|u8|s16|u16)       e = h
cvt.(rn|rz|rm|rp).f16.(s32|u32)             e = r
cvt.(rn|rz|rm|rp).f16.(s64|u64)             e = d
cvt.(rni|rzi|rmi|rpi).(s8|u8|s16|u16).f16   h = e
cvt.(rni|rzi|rmi|rpi).(s32|u32).f16         r = e
cvt.(rni|rzi|rmi|rpi).f16.f16               e = e
mov.b32                                     x = r
@bf16
(add|sub|mul).rn.bf16                       b = b b
(add|sub|mul).rn.bf16x2                     y = y y
fma.rn{.relu}.bf16                          b = b b b
fma.rn{.relu}.bf16x2                        y = y y y
(min|max){.NaN}{.xorsign.abs}.bf16          b = b b
(min|max){.NaN}{.xorsign.abs}.bf16x2        y = y y
(abs|neg).bf16                              b = b
(abs|neg).bf16x2                            y = y
setp.(eq|ne|lt|le|gt|ge|ltu|geu|nan).bf16   p = b b
setp.(lt|geu|ne).bf16x2                     p^p = y y
selp.b16                                    b = b b p
mov.b32                                     y = {bb}
mov.b32                                     {bb} = y
mov.b32                                     {b_} = y
cvt.f32.bf16                                f = b
cvt.(rn|rz){.relu}.bf16.f32                 b = f
cvt.(rn|rz){.relu}.bf16x2.f32               y = f f
cvt.(rn|rz|rm|rp).bf16.(s16|u16)            b = h
cvt.(rn|rz|rm|rp).bf16.(s32|u32)            b = r
cvt.(rni|rzi|rmi|rpi).(s16|u16).bf16        h = b
cvt.(rni|rzi|rmi|rpi).(s32|u32).bf16        r = b
mov.b32                                     y = r
@fp8
cvt.rn.satfinite{.relu}.(e4m3x2|e5m2x2).f32 h = f f
cvt.rn.satfinite{.relu}.(e4m3x2|e5m2x2).f16x2 h = x
cvt.rn{.relu}.f16x2.(e4m3x2|e5m2x2)         x = h
mov.b32                                     r = {hh}
mov.b32                                     {hh} = r
mov.b32                                     {ee} = x
cvt.f32.f16                                 f = e
cvt.rna.tf32.f32                            f = f
@numbers
cvt.(rn|rz|rm|rp).f32.(s32|u32)             f = r
cvt.(rn|rz|rm|rp).f32.(s64|u64)             f = d
cvt.(rn|rz|rm|rp).f32.(s8|u8|s16|u16)       f = h
cvt.(rni|rzi|rmi|rpi){.ftz}.(s32|u32).f32   r = f
cvt.(rni|rzi|rmi|rpi){.ftz}.(s64|u64).f32   d = f
cvt.(rni|rzi|rmi|rpi){.ftz}.(s8|u8|s16|u16).f32 h = f
mov.b32                                     f = r
mov.b64                                     g = d
@video
(vadd|vsub|vabsdiff|vmin|vmax).(s32|u32).(s32|u32).(s32|u32){.sat} r = r r
(vadd|vsub).s32.s32.s32.(add|min|max)       r = r r r
(vshl|vshr).u32.(u32|s32).u32.(clamp|wrap)  r = r r
(vadd2|vsub2|vavrg2|vabsdiff2|vmin2|vmax2).(s32|u32).(s32|u32).(s32|u32){.sat} r = r r r
(vadd4|vsub4|vavrg4|vabsdiff4|vmin4|vmax4).(s32|u32).(s32|u32).(s32|u32){.sat} r = r r r
@approximate
(ex2|lg2|sin|cos|rcp|rsqrt|sqrt).approx{.ftz}.f32 f = f
tanh.approx.f32                             f = f
div.(approx|full){.ftz}.f32                 f = f f
ex2.approx.f16                              e = e
tanh.approx.f16                             e = e
tanh.approx.bf16                            b = b
"""

_CHOICE = re.compile(r"\(([^()]*)\)|\{([^{}]*)\}")


@dataclass(frozen=True)
class Form:
    """An opcode with the kinds of what it writes and reads."""

    opcode: str
    results: tuple[str, ...]
    operands: tuple[str, ...]


@cache
def families() -> dict[str, tuple[tuple[Form, ...], ...]]:
    """Rows by family; a row is the forms that its choices give. An opcode is drawn by row first."""
    found: dict[str, list[tuple[Form, ...]]] = {}
    rows: list[tuple[Form, ...]] = []
    for line in TABLE.strip().splitlines():
        if line.startswith("@"):
            rows = found.setdefault(line[1:], [])
            continue
        opcode, rest = line.split(None, 1)
        results, operands = (tuple(part.split()) for part in rest.split("="))
        rows.append(tuple(Form(name, results, operands) for name in _expanded(opcode)))
    return {name: tuple(forms) for name, forms in found.items()}


def _expanded(opcode: str) -> list[str]:
    """All spellings of an opcode with choices."""
    parts: list[list[str]] = []
    end = 0
    for match in _CHOICE.finditer(opcode):
        parts.append([opcode[end : match.start()]])
        parts.append(match[1].split("|") if match[1] is not None else ["", *match[2].split("|")])
        end = match.end()
    parts.append([opcode[end:]])
    return ["".join(chosen) for chosen in product(*parts)]
