"""The known faults of assemblers: which texts meet them, and who is warned."""

import os
import sys
import warnings

import numpy as np
import pytest

from tilewright import cute
from tilewright.base import notices, settings
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia import doctor
from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.mends.ptxas_faults import (
    FAULTS,
    AssemblerFaultWarning,
    faults_met,
    faults_of,
    warn_of_faults,
)
from tilewright.targets.nvidia.toolkit.assemble import assemble

MEETING = {
    "narrow": "neg.s16 \t%rs2, %rs1;",
    "absolutes": "abs.s32 \t%r2, %r1;",
    "booleans": "cvt.rn.f32.u32 \t%r2, %r1;\n neg.f32 \t%r3, %r2;",
    "compares": "abs.f32 \t%r2, %r1;\n setp.ge.f32 \t%p1, %r2, 0fBF800000;",
    "minima": "neg.s32 \t%r2, %r1;\n min.s32 \t%r3, %r1, %r2;\n min.s32 \t%r4, %r3, %r5;",
    "pairs": "cvt.rn.satfinite.e5m2x2.f32 \t%rs1, %r1, %r2;\n mov.b32 \t%r5, {%rs1, %rs2};\n st.b16 [%rd1], %rs1;",
    "sums": "mov.b32 \t%r2, 7;\n add.s16x2 \t%r3, %r2, %r1;",
    "widened": "cvt.u32.u16 \t%r2, %rs1;\n mov.b32 \t{%rs2, %rs3}, %r2;",
    "constants": "mov.b32 \t%r2, 7;\n mov.b32 \t{%rs1, %rs2}, %r2;\n cvt.rn.f16x2.e5m2x2 \t%r3, %rs2;",
    "round trip": "cvt.rzi.u32.f32 \t%r2, %r1;\n cvt.rz.f32.u32 \t%r3, %r2;",
    "rounding": "abs.ftz.f16 \t%rs2, %rs1;\n cvt.rzi.s32.f16 \t%r1, %rs2;",
    "signed vectors": ".reg .b32 \t%r<4>;\n ld.global.v2.s8 \t{%r1, %r2}, [%rd1];\n cvt.rn.f32.u32 \t%r3, %r1;",
    "guarded test": "@%p1 testp.finite.f32 \t%p2, %r1;",
    "guarded set": "@!%p1 set.lt.u32.u16 \t%r1, %rs1, %rs2;",
    "guarded saturation": "@%p1 cvt.sat.u8.s16 \t%rs1, %rs2;",
    "fields": "bfe.s32 \t%r1, %r2, 33, 4;",
    "insertion": "bfi.b32 \t%r1, %r2, %r3, 3, 40;",
    "selection": "slct.s32.s32 \t%r1, %r2, %r3, 2147483647;",
    "video": "vsub.u32.u32.s32.sat \t%r1, %r2, %r3;",
    "guarded unpack": "@!%p1 mov.b32 \t{%rs1, _}, %r1;",
}


@pytest.fixture(autouse=True)
def unsaid(monkeypatch):
    monkeypatch.setattr(notices, "_said", set())


def warned(ptx, tool, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_faults(ptx, tool, None, **options)
    return [str(warning.message) for warning in found]


def test_each_fault_has_a_text_here():
    assert {fault.name for fault in FAULTS} == set(MEETING)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_text_of_the_form_meets_the_fault_in_its_versions(fault):
    text = MEETING[fault.name]
    for version in (fault.first, fault.last):
        assert fault in faults_met(text, version)
    for version in ((fault.first[0], fault.first[1] - 1), (fault.last[0], fault.last[1] + 1)):
        assert fault not in faults_met(text, version)
    other = "bfe.s32 \t%r3, %r1, 31, 4;\n cvt.sat.u8.s16 \t%rs1, %rs2;\n testp.finite.f32 \t%p1, %r1;"
    more = "mov.b32 \t{%rs1, %rs2}, %r2;\n min.s32 \t%r3, %r2, %r1;\n bfi.b32 \t%r1, %r2, %r3, 3, 20;"
    assert not fault.meets(f"add.s32 \t%r2, %r1, 7;\n {other}\n {more}")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.mend], ids=lambda fault: fault.name)
def test_no_mended_text_meets_a_fault_that_has_a_mend(fault):
    assert not [one.name for one in FAULTS if one.mend and one.meets(mend(MEETING[fault.name]))]


def test_the_warning_names_tool_fault_and_remedy():
    assert warned(MEETING["narrow"], "ptxas 13.1", mended=False) == [
        "ptxas 13.1 assembles a form of this PTX wrongly: neg.s16 and abs.s16 of -32768 give 32768. Hint: the "
        "compiler's own PTX avoids it; write it otherwise, as docs/ptxas.md has it, or take a CUDA toolkit newer than "
        "13.2"
    ]
    assert warned(MEETING["guarded test"], "nvJitLink 13.5", mended=True) == [
        "nvJitLink 13.5 assembles a form of this PTX wrongly: a predicated testp is done whatever its predicate. "
        "Hint: write it otherwise, as docs/ptxas.md has it"
    ]
    assert warned(MEETING["narrow"], "ptxas 13.1", mended=False) == []  # once


def test_nothing_is_said_of_other_versions_nor_of_mended_texts():
    assert warned(MEETING["narrow"], "ptxas 13.3", mended=False) == []
    assert warned(MEETING["narrow"], "nvJitLink 13.0", mended=True) == []
    assert warned(MEETING["narrow"], "ptxas", mended=False) == []


def test_a_fault_without_a_mend_is_told_of_any_text():
    (said,) = warned(MEETING["guarded unpack"], "ptxas 12.4", mended=True)
    assert said.endswith(
        "one of them _. Hint: write it otherwise, as docs/ptxas.md has it, or take a CUDA toolkit newer than 12.4"
    )


@cute.kernel
def _negated(x: cute.Tensor, y: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    y[i] = -x[i]


@cute.jit
def negated(x: cute.Tensor, y: cute.Tensor):
    _negated(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def toolkit(folder, version, *, crash=False):
    """A toolkit whose ptxas says that version, and copies its input or crashes."""
    (folder / "bin").mkdir()
    answer = "os.kill(os.getpid(), 11)" if crash else "open(a[a.index('-o') + 1], 'w').write('x')"
    path = folder / "bin" / "ptxas"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\na = sys.argv[1:]\n"
        f"print('release {version}, V{version}.1') if a == ['--version'] else {answer}\n"
    )
    path.chmod(0o755)
    return os.fspath(folder)


def test_the_compiler_warns_of_a_text_given_by_the_user(tmp_path):
    x, y = np.zeros(32, np.int16), np.zeros(32, np.int16)
    made = cute.compile(negated, x, y, target="emu")
    text = made.stages["ptx"]
    assert "neg.s16" not in text
    line = next(line for line in text.splitlines() if "mul.lo.s16" in line)
    theirs = text.replace(line, line.replace("mul.lo.s16", "neg.s16").replace(", -1;", ";"))
    with settings.scope(toolkit=toolkit(tmp_path, "13.0")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", AssemblerFaultWarning)
            assert cute.compile(negated, x, y, target="emu").stages["cubin"] == b"x"
        with pytest.warns(AssemblerFaultWarning, match=r"ptxas 13\.0 assembles .* neg\.s16 and abs\.s16 of -32768"):
            assert cute.compile(negated, x, y, target="emu", override={"ptx": theirs}).stages["cubin"] == b"x"


def test_a_crash_names_the_known_fault(tmp_path):
    ptx = f".version 8.0\n.target sm_90\n{MEETING['guarded unpack']}\n"
    with settings.scope(toolkit=toolkit(tmp_path, "12.2", crash=True)), pytest.raises(CompileError) as refused:
        assemble(ptx, "sm_90")
    assert "ended by SIGSEGV, which is a fault of ptxas itself (known of 12.2: the assembler crashes on" in str(
        refused.value
    )


def test_doctor_counts_the_faults_of_the_assemblers(tmp_path):
    with settings.scope(toolkit=toolkit(tmp_path, "13.0")):
        rows = {row.name: row for row in doctor._tools()}
    row = rows["faults of ptxas"]
    known = faults_of((13, 0))
    avoided = sum(fault.mend is not None for fault in known)
    assert row.value == (
        f"{len(known)} known: {avoided} avoided in all PTX of the compiler, {len(known) - avoided} in inline PTX alone"
    )
    assert (row.ok, row.remedy) == (None, "docs/ptxas.md has them")


def test_doctor_says_nothing_where_no_fault_is_known():
    assert list(doctor._faults("ptxas", (99, 0))) == []
