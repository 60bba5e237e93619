"""The smallest programs that show the known faults of assemblers, by the names of `nvidia/mends/ptxas_faults.py`."""

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
        _program("%r4", "neg.s32 \t%r1, %r0;", "max.s32 \t%r2, %r3, %r1;", "max.s32 \t%r4, %r2, %r5;"),
        _program("%r4", "neg.s32 \t%r1, %r0;", "min.s32 \t%r2, %r3, %r1;", "min.s32 \t%r4, %r2, -5;"),
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
    "round trip": (
        _program("%r1", "cvt.rpi.u32.f32 \t%r0, %f0;", "cvt.rn.f32.u32 \t%f1, %r0;", "cvt.rzi.u32.f32 \t%r1, %f1;"),
        _program("%r1", "cvt.rzi.u32.f32 \t%r0, %f0;", "cvt.rz.f32.u32 \t%f1, %r0;", "cvt.rzi.u32.f32 \t%r1, %f1;"),
    ),
    "rounding": (_program("%r0", "abs.ftz.f16 \t%e0, %e1;", "cvt.rzi.s32.f16 \t%r0, %e0;"),),
    "signed vectors": (
        _program("%h0", "ld.global.v4.s8 \t{%r0, %r1, %r2, %r3}, [%record+448];", "cvt.sat.u16.u32 \t%h0, %r3;"),
        _program("%f0", "ld.global.v2.s8 \t{%r0, %r1}, [%record+468];", "cvt.rn.f32.u32 \t%f0, %r0;"),
    ),
    "guarded test": (
        _program("%p1", "@%p0 testp.finite.f64 \t%p1, %g0;"),
        _program("%p0", "@!%p0 testp.number.f64 \t%p0, %g0;"),
    ),
    "guarded set": (_program("%r0", "@%p0 set.ne.u32.s16 \t%r0, %h0, 16384;"),),
    "guarded saturation": (_program("%d0", "@%p0 cvt.sat.u8.u16 \t%h0, %h1;", "cvt.u64.u8 \t%d0, %h0;"),),
    "fields": (_program("%r0", "bfe.s32 \t%r0, %r1, 32, 12;"),),
    "insertion": (_program("%r0", "bfi.b32 \t%r0, %r1, %r2, 9, 33;"),),
    "selection": (_program("%r0", "slct.s32.s32 \t%r0, %r1, %r2, 2147483647;"),),
    "video": (
        _program("%r0", "vadd.u32.u32.u32.sat \t%r0, %r1, %r2;"),
        _program("%r0", "vsub.u32.u32.s32.sat \t%r0, %r1, %r2;"),
        _program("%r0", "vabsdiff.u32.s32.u32.sat \t%r0, %r1, %r2;"),
    ),
    "guarded unpack": (_program("%h0", "@%p0 mov.b32 \t{%h0, _}, %r0;"),),
}
"""Programs by the fault's name."""
