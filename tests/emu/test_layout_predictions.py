"""The emulator, which counts wavefronts and sectors of running kernels, confirms what the analysis predicts."""

import numpy as np
import pytest

from tilewright.emulate import run_ptx
from tilewright.layout import ComposedLayout, Swizzle, bank_conflicts, coalescing, parse, rank, size

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry access(.param .u64 table, .param .u64 data)
{{
    .shared .align 16 .b8 buffer[32768];
    .reg .u32 %t, %o, %i, %a, %s;
    .reg .u64 %p, %q, %w;
    .reg .pred %more;
    .reg .b32 %r<4>;
    mov.u32 %t, %tid.x;
    ld.param.u64 %p, [table];
    ld.param.u64 %q, [data];
    cvta.to.global.u64 %p, %p;
    cvta.to.global.u64 %q, %q;
    mov.u32 %a, buffer;
    mov.u32 %i, 0;
LOOP:
    mad.lo.u32 %s, %i, {threads}, %t;
    mul.wide.u32 %w, %s, 4;
    add.u64 %w, %p, %w;
    ld.global.u32 %o, [%w];
    {access}
    add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, {count};
    @%more bra LOOP;
    ret;
}}
"""
SHARED = "add.u32 %s, %a, %o; st.shared.{form} [%s], {registers};"
GLOBAL = "cvt.u64.u32 %w, %o; add.u64 %w, %q, %w; ld.global.{form} {registers}, [%w];"
FORMS = {4: ("b32", "%r0"), 8: ("v2.b32", "{%r0, %r1}"), 16: ("v4.b32", "{%r0, %r1, %r2, %r3}")}


def run(tv, element_bytes, vector, access):
    """The traffic of the access in a kernel where each thread moves its values, vector by vector."""
    threads = size(tv, 0) if rank(tv) > 1 else size(tv)
    values = size(tv) // threads
    form, registers = FORMS[vector * element_bytes]
    text = KERNEL.format(threads=threads, count=values // vector, access=access.format(form=form, registers=registers))
    starts = [tv(t + v * threads) * element_bytes for v in range(0, values, vector) for t in range(threads)]
    report = run_ptx(
        text, "access", 1, threads, [np.array(starts, np.uint32), np.zeros(1 << 16, np.uint32)],
        checks=False, counters=True,
    )  # fmt: skip
    space = "shared" if "shared" in access else "global"
    lines = [line for line in report.traffic if line.space == space and "%o, [" not in line.instruction]
    assert len(lines) == 1
    return lines[0]


LAYOUTS = [
    ("32:1", 4), ("32:2", 4), ("32:32", 4), ("32:33", 4), ("32:0", 4), ("64:3", 4), ("(32,4):(4,1)", 4),
    ("(32,4):(1,32)", 4), ("(32,2):(2,1)", 4), ("(32,8):(64,1)", 2), ("(32,8):(8,1)", 2), ("((4,8),4):((4,64),1)", 4),
    ("(32,4):(20,1)", 4), ("((8,4),8):((64,8),1)", 2), ("(32,2):(6,1)", 8),
]  # fmt: skip


@pytest.mark.parametrize(("text", "element_bytes"), LAYOUTS)
def test_wavefronts_and_sectors(text, element_bytes):
    tv = parse(text)
    expect = bank_conflicts(tv, 8 * element_bytes)
    got = run(tv, element_bytes, expect.vector, SHARED)
    assert (got.units, got.ideal) == (expect.wavefronts, expect.phases)
    moved = coalescing(tv, 8 * element_bytes)
    got = run(tv, element_bytes, moved.vector, GLOBAL)
    assert (got.units, got.ideal, got.requests) == (moved.sectors, moved.ideal, moved.requests)


def test_a_swizzle_removes_the_conflicts_that_were_predicted():
    plain = parse("((8,4),8):((64,8),1)")
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, plain)
    for tv, conflicts in ((plain, True), (swizzled, False)):
        expect = bank_conflicts(tv, 16)
        got = run(tv, 2, expect.vector, SHARED)
        assert got.units == expect.wavefronts and (got.units > got.ideal) == conflicts
