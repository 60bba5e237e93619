"""The smallest programs that show the known faults of assemblers, by the names of `targets/nvidia/ptxas_faults.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilewright.tools.fuzzing.program import Node, Program, Region, Step


def _program(outputs: str, *nodes: str | Node) -> Program:
    body = tuple(node if isinstance(node, Step | Region) else Step((node,)) for node in nodes)
    return Program(1, body, tuple(outputs.split()))


PROGRAMS: Final[Mapping[str, tuple[Program, ...]]] = {
    "narrow": (
        _program("%r0", "neg.s16 \t%h1, %h0;", "cvt.s32.s16 \t%r0, %h1;"),
        _program("%r0", "abs.s16 \t%h1, %h0;", "cvt.s32.s16 \t%r0, %h1;"),
    ),
    "absolutes": (
        _program("%f0", "abs.s32 \t%r1, %r0;", "cvt.rn.f32.u32 \t%f0, %r1;"),
        _program("%p0", "abs.s32 \t%r1, %r0;", "setp.lt.s32 \t%p0, %r1, 0;"),
    ),
    "booleans": (_program("%f0", "selp.b32 \t%r0, 1, 0, %p0;", "cvt.rn.f32.u32 \t%f1, %r0;", "neg.f32 \t%f0, %f1;"),),
    "compares": (
        _program("%p0", "abs.f32 \t%f1, %f0;", "setp.ge.f32 \t%p0, %f1, 0fBF800000;"),
        _program("%p0", "add.rn.sat.f32 \t%f1, %f0, %f2;", "setp.gt.f32 \t%p0, %f1, 0fBF800000;"),
    ),
    "minima": (
        _program("%r4", "neg.s32 \t%r1, %r0;", "min.s32 \t%r2, %r3, %r1;", "min.s32 \t%r4, %r2, -5;"),
        _program("%r4", "neg.s32 \t%r1, %r0;", "max.s32 \t%r2, %r3, %r1;", "max.s32 \t%r4, %r2, %r5;"),
    ),
    "pairs": (
        _program(
            "%r0 %h0",
            "cvt.rn.satfinite.e5m2x2.f32 \t%h0, %f0, %f1;",
            "cvt.rn.satfinite.e5m2x2.f32 \t%h1, %f2, %f3;",
            "mov.b32 \t%r0, {%h0, %h1};",
        ),
    ),
    "sums": (
        _program("%h0", "mov.b32 \t%r1, 458759;", "add.s16x2 \t%r2, %r1, %r0;", "mov.b32 \t{%h0, _}, %r2;"),
        _program("%h0", "mov.b32 \t%r1, 458759;", "add.s16x2 \t%r2, %r1, %r0;", "mov.b32 \t{_, %h0}, %r2;"),
    ),
    "widened": (
        _program("%h1 %h2", "cvt.u32.u16 \t%r0, %h0;", "mov.b32 \t{%h1, %h2}, %r0;"),
        _program("%h1 %h2 %h3", "cvt.u64.u16 \t%d0, %h0;", "mov.b64 \t{%h1, %h2, %h3, _}, %d0;"),
    ),
    "constants": (
        _program(
            "%x0",
            "mov.b32 \t%r0, -1203879231;",
            Region(("@%p0 bra \t$past;", (Step(("mov.b32 \t%r0, %r1;",)),), "$past:")),
            "mov.b32 \t{_, %h0}, %r0;",
            "cvt.rn.f16x2.e5m2x2 \t%x0, %h0;",
        ),
        _program("%x0", "mov.b32 \t%r0, -1203879231;", "mov.b32 \t{_, %h0}, %r0;", "cvt.rn.f16x2.e5m2x2 \t%x0, %h0;"),
    ),
    "guarded unpack": (_program("%h0", "@%p0 mov.b32 \t{%h0, _}, %r0;"),),
}
"""Programs by the fault's name."""
