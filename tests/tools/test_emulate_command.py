"""`tilewright emulate` on a PTX file written by hand."""

import numpy as np
import pytest
import typer

from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.tools.commands.emulate import command, extents

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %n, %t;
    .reg .b64 %x, %o;
    .reg .f32 %a, %v;
    ld.param.u64 %x, [x];
    ld.param.f32 %a, [a];
    ld.param.u32 %n, [n];
    mov.u32 %i, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mul.lo.u32 %i, %i, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    setp.ge.u32 %p, %i, %n;
    @%p bra done;
    mul.wide.u32 %o, %i, 4;
    add.u64 %x, %x, %o;
    ld.global.f32 %v, [%x];
    mul.f32 %v, %v, %a;
    st.global.f32 [%x], %v;
done:
    ret;
}
"""


@pytest.fixture
def ptx(tmp_path):
    path = tmp_path / "scale.ptx"
    path.write_text(PTX)
    return path


def test_run_and_save(ptx, tmp_path, capsys):
    command(ptx, grid="4", block="32", arg=["f32[100]=arange", "2.0", "100"], out=tmp_path / "out")
    assert np.array_equal(np.load(tmp_path / "out" / "arg0.npy"), 2 * np.arange(100, dtype=np.float32))
    printed = capsys.readouterr().out
    assert "99 of 100" in printed  # element 0 stays 0
    assert "0 2 4 6 8 10 ..." in printed
    assert "4 blocks of 32 threads, 1,908 thread instructions" in printed


def test_no_progress_bar_in_a_pipe(ptx, capsys):
    command(ptx, grid="4", block="32", arg=["f32[100]", "2.0", "100"], progress=True)
    assert capsys.readouterr().err == ""


def test_kernel_that_reads_out_of_bounds(ptx):
    with pytest.raises(EmulationError):
        command(ptx, kernel="scale", grid="4", block="32", arg=["f32[100]", "2.0", "128"])


def test_collected_findings_end_with_status_1(ptx, capsys):
    with pytest.raises(typer.Exit) as end:
        command(ptx, grid="4", block="32", arg=["f32[100]", "2.0", "128"], checks="collect")
    assert end.value.exit_code == 1
    assert "bounds" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "value"), [("7", (7, 1, 1)), ("2,3", (2, 3, 1)), ("2, 3, 4", (2, 3, 4))])
def test_extents(text, value):
    assert extents("--grid", text) == value


@pytest.mark.parametrize("text", ["", "0", "1,2,3,4", "x", "-1", "1,"])
def test_bad_extents(text):
    with pytest.raises(ArgumentError, match="is not a size"):
        extents("--grid", text)


def test_choice_of_the_kernel(tmp_path, ptx):
    two = tmp_path / "two.ptx"
    two.write_text(PTX + PTX.split("64\n", 1)[1].replace("scale", "other"))
    with pytest.raises(ArgumentError, match=r"two\.ptx has 2 kernels") as error:
        command(two)
    assert "--kernel scale | other" in str(error.value)
    none = tmp_path / "none.ptx"
    none.write_text(".version 8.0\n")
    with pytest.raises(ArgumentError, match="has no kernel"):
        command(none)


def test_missing_file(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read as PTX"):
        command(tmp_path / "no.ptx")


def test_unknown_check_mode(ptx):
    with pytest.raises(ArgumentError, match="--checks 'some' is unknown"):
        command(ptx, arg=["f32[1]", "1.0", "1"], checks="some")
