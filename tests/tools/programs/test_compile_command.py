"""`tilewright compile`: what it writes."""

import json
import subprocess
import sys

import pytest

from tilewright.base.errors import ArgumentError, CompileError
from tilewright.targets.target import back_end
from tilewright.tools.commands.compile import command, stage_names

EXTENSIONS = {stage.name: stage.extension for stage in back_end("nvidia").stages}

KERNELS = """
import {cutlass} as cutlass
import {cutlass}.cute as cute

@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = a[i] + b[i]

@cute.kernel
def twice_kernel(c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = c[i] + c[i]

@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(cute.ceil_div(cute.size(c), 64), 1, 1), block=(64, 1, 1))

@cute.jit
def add_twice(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(cute.ceil_div(cute.size(c), 64), 1, 1), block=(64, 1, 1))
    twice_kernel(c).launch(grid=(cute.ceil_div(cute.size(c), 64), 1, 1), block=(64, 1, 1))
"""
VECTORS = ["f32[1024]"] * 3


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS.format(cutlass="tilewright"))
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".json")


def test_writes_the_stages_asked_for(kernels, tmp_path, capsys):
    out = tmp_path / "out"
    command(f"{kernels}:add", arg=VECTORS, arch="sm_90a", emit="ptx,sass", out=out)
    assert names(out) == ["add.sm_90a.ptx", "add.sm_90a.sass"]
    assert ".target sm_90a" in (out / "add.sm_90a.ptx").read_text()
    assert "FADD" in (out / "add.sm_90a.sass").read_text()
    assert capsys.readouterr().out.split() == [str(out / "add.sm_90a.ptx"), str(out / "add.sm_90a.sass")]


def test_all_stages(kernels, tmp_path):
    command(f"{kernels}:add", arg=VECTORS, arch="sm_80", emit="all", out=tmp_path / "out")
    assert names(tmp_path / "out") == sorted(f"add.sm_80.{extension}" for extension in EXTENSIONS.values())
    assert (tmp_path / "out" / "add.sm_80.cubin").read_bytes().startswith(b"\x7fELF")


def test_other_arguments_options_or_kernels_overwrite_nothing(kernels, tmp_path):
    out = tmp_path / "out"
    for options, dtype, function in (
        ("", "f32", "add"),
        ("--opt-level 0", "f32", "add"),
        ("", "f16", "add"),
        ("", "f32", "add_twice"),
    ):
        command(f"{kernels}:{function}", arg=[f"{dtype}[1024]"] * 3, arch="sm_90a", options=options, out=out)
    texts = [path.read_text() for path in out.glob("*.ptx")]
    assert len(texts) == len(set(texts)) == 5  # three of add, one of each kernel of add_twice
    assert {"add.sm_90a.ptx"} < set(names(out))
    assert json.loads((out / "tilewright-files.json").read_text())


def test_runtime_extents(kernels, tmp_path):
    out = tmp_path / "out"
    command(f"{kernels}:add", arg=["f32[?]"] * 3, arch="sm_90a", out=out)
    command(f"{kernels}:add", arg=VECTORS, arch="sm_90a", out=out)
    dynamic, static = ((out / name).read_text() for name in sorted(names(out), key=len))
    assert dynamic.count(".param") > static.count(".param")


def test_file_that_imports_cutlass(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(KERNELS.format(cutlass="cutlass"))
    command(f"{path}:add", arg=VECTORS, arch="sm_90a", out=tmp_path / "out")
    assert names(tmp_path / "out") == ["add.sm_90a.ptx"]


@pytest.mark.parametrize("text", ["", "ptxx", "ptx,cuobj"])
def test_unknown_stage(text):
    with pytest.raises(ArgumentError, match="there is no stage") as error:
        stage_names(text, list(EXTENSIONS))
    assert "stages: python, cute, nvvm, llvm, ptx, cubin, sass, or all" in str(error.value)


def test_stages_come_in_order():
    assert stage_names("sass, ptx", list(EXTENSIONS)) == ["ptx", "sass"]
    assert stage_names("all", list(EXTENSIONS)) == list(EXTENSIONS)


def test_errors_leave_no_files(kernels, tmp_path):
    with pytest.raises(CompileError):
        command(f"{kernels}:add", arg=VECTORS, arch="sm_12345", out=tmp_path / "out")
    with pytest.raises(CompileError, match="kernel"):
        command(f"{kernels}:add_kernel", arg=VECTORS, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_error_on_the_command_line(kernels):
    program = "from tilewright.tools.cli import main; main()"
    arguments = ["compile", f"{kernels}:add", "--arg", "f32[4]"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "add" in done.stderr
