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
from tilewright.targets.nvidia.assemble import assemble
from tilewright.targets.nvidia.mend_ptx import mend
from tilewright.targets.nvidia.ptxas_faults import FAULTS, AssemblerFaultWarning, faults_met, faults_of, warn_of_faults

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
    assert not fault.meets("add.s32 \t%r2, %r1, 7;\n mov.b32 \t{%rs1, %rs2}, %r2;\n min.s32 \t%r3, %r2, %r1;")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.mend], ids=lambda fault: fault.name)
def test_no_mended_text_meets_a_fault_that_has_a_mend(fault):
    assert not [one.name for one in FAULTS if one.mend and one.meets(mend(MEETING[fault.name]))]


def test_the_warning_names_tool_fault_and_remedy():
    assert warned(MEETING["narrow"], "ptxas 13.1", mended=False) == [
        "ptxas 13.1 assembles a form of this PTX wrongly: neg.s16 and abs.s16 of -32768 give 32768. Hint: the "
        "compiler's own PTX avoids it; write it otherwise, as docs/ptxas.md has it, or take a CUDA toolkit newer than "
        "13.2"
    ]
    assert warned(MEETING["narrow"], "ptxas 13.1", mended=False) == []  # once


def test_nothing_is_said_of_other_versions_nor_of_mended_texts():
    assert warned(MEETING["narrow"], "ptxas 13.3", mended=False) == []
    assert warned(MEETING["narrow"], "nvJitLink 13.0", mended=True) == []
    assert warned(MEETING["narrow"], "ptxas", mended=False) == []


def test_a_fault_without_a_mend_is_told_of_any_text():
    (said,) = warned(MEETING["guarded unpack"], "ptxas 12.4", mended=True)
    assert said.endswith("one of them _. Hint: take a CUDA toolkit newer than 12.4 (docs/ptxas.md)")


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
    count = len(faults_of((13, 0)))
    assert row.value == f"{count} known, {count} of them avoided in the PTX that the compiler writes"
    assert (row.ok, row.remedy) == (None, "a newer CUDA toolkit has fewer of them (docs/ptxas.md)")


def test_doctor_names_faults_that_nothing_avoids(tmp_path):
    with settings.scope(toolkit=toolkit(tmp_path, "12.4")):
        row = next(row for row in doctor._tools() if row.name == "faults of ptxas")
    assert row.value.startswith("1 known, 0 of them avoided in the PTX that the compiler writes; left: the assembler")


def test_doctor_says_nothing_where_no_fault_is_known():
    assert list(doctor._faults("ptxas", (99, 0))) == []
