"""The fidelity statement: which forms of instructions are recorded on a GPU, which are taken from the manual."""

import numpy as np
import pytest

from scripts import list_recorded_forms
from tests.emu.numerics.test_ptx_differential import RECORDED, program
from tilewright.emulate import parse_ptx, run_ptx
from tilewright.targets.emu.fidelity import TABLE, Fidelity, form_of, level_of, recorded_forms

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
PTX = (
    HEAD
    + """
.visible .entry k(.param .u64 a)
{
  .reg .b32 %r<9>;
  .reg .f32 %f<9>;
  .reg .b64 %d<9>;
  ld.param.u64 %d1, [a];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  ld.global.nc.L1::no_allocate.f32 %f1, [%d3];
  ex2.approx.ftz.f32 %f2, %f1;
  mad.lo.s64 %d4, %d2, 1, %d1;
  st.global.cs.f32 [%d4], %f2;
  ret;
}
"""
)


def forms(body):
    text = (
        f"{HEAD}.visible .entry k() {{ .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .pred %p<3>; {body} }}"
    )
    return [form_of(i) for i in parse_ptx(text).functions["k"].body]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%r1, %r2, %r3, %r4}, [%d1];", "ld.global.v4.b32"),
        ("ld.weak.shared::cta.u32 %r1, [%r2];", "ld.shared.b32"),
        ("ld.global.s8 %r1, [%d1];", "ld.global.s8"),  # extended by its sign
        ("ld.volatile.global.u32 %r1, [%d1];", "ld.volatile.global.b32"),
        ("mov.f32 %f1, %f2;", "mov.b32"),
        ("add.rn.ftz.f32 %f1, %f2, %f3;", "add.rn.ftz.f32"),
        ("st.global.wt.u64 [%d1], %d2;", "st.global.b64"),
        ("setp.lt.s32 %p1, %r1, %r2;", "setp.lt.s32"),
    ],
)
def test_forms_leave_out_what_changes_no_result(text, form):
    assert forms(text) == [form]


def test_levels():
    assert level_of("fma.rn.f32") == "recorded"
    assert level_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == "recorded"
    assert level_of("ex2.approx.ftz.f32") == "bounds"  # recorded within bounds
    assert "ex2.approx.ftz.f16x2" not in recorded_forms() and level_of("ex2.approx.ftz.f16x2") == "bounds"
    assert level_of("frobnicate.u32") == "manual"


def test_a_report_says_what_ran():
    data = np.arange(32, dtype=np.float32)
    report = run_ptx(PTX, "k", 1, 32, [data])
    np.testing.assert_allclose(data, 2.0 ** np.arange(32), rtol=1e-6)
    found = report.fidelity
    assert dict(found.bounds) == {"ex2.approx.ftz.f32": 32} and dict(found.manual) == {"mad.lo.s64": 32}
    assert sum(found.recorded.values()) == 7 * 32 and found.recorded["ld.global.b32"] == 32
    assert sum(report.by_form.values()) == report.instructions
    assert str(found) == (
        "fidelity: of 9 forms of instructions 7 are recorded bit for bit on an H100, 77.8 % of those that ran\n"
        "  approximate, within the bounds of the PTX ISA: ex2.approx.ftz.f32\n"
        "  taken from the PTX ISA alone: mad.lo.s64"
    )
    assert report.counts()["fidelity"] == str(found)


def test_what_does_not_run_does_not_count():
    text = PTX.replace("ex2.approx", "@%p1 bra END;\n  ex2.approx").replace("  ret;", "END:\n  ret;")
    text = text.replace("  mul.wide", "  .reg .pred %p<3>;\n  setp.ge.u32 %p1, %r1, 0;\n  mul.wide")
    found = run_ptx(text, "k", 1, 32, [np.zeros(32, np.float32)]).fidelity
    assert not found.bounds and not found.manual


def test_statements_are_short():
    many = {f"made.up{number:02}": number for number in range(20)}
    text = str(Fidelity.of(many))
    assert "0.0 % of those that ran" in text and "made.up19, made.up18" in text and text.endswith("and 14 more")
    assert str(Fidelity.of({})) == "fidelity: nothing was executed"
    nearly = Fidelity.of({"fma.rn.f32": 10**6, "made.up": 1})
    assert "99.9 % of those that ran" in str(nearly)


def test_every_form_of_the_table_is_in_a_recorded_kernel():
    """Of the level at which the kernel is compared; `list_recorded_forms` also asks whether it is executed."""
    exact, bounded = set(), set()
    for kernel in RECORDED:
        functions = program(kernel.ptx).image(kernel.function, True).functions()
        found = {form_of(i) for function in functions for i in function.body}
        (bounded if kernel.compare else exact).update(found)
    levels = recorded_forms()
    assert len(levels) > 1100
    assert {form for form, level in levels.items() if level == "recorded"} <= exact
    assert {form for form, level in levels.items() if level == "bounds"} <= bounded - exact


@pytest.mark.slow
def test_the_table_is_what_the_script_writes():
    assert list_recorded_forms.text() == TABLE.read_text(encoding="utf-8")
