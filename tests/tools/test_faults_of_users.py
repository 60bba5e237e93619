"""What each command says when its user is wrong: the line, what disagrees, no traceback of the command itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

KERNEL = """
import tilewright.cute as cute

@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = 1.0

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)
"""


def tilewright(*arguments, cwd):
    command = [sys.executable, "-c", "from tilewright.tools.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=120)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNEL)
    (tmp_path / "broken.py").write_text("import os\nthis is (no python\n")
    (tmp_path / "raises.py").write_text("def divides():\n    return 1 / 0\n\n\ndivides()\n")
    return tmp_path


FAULTS = {
    "a kernel is compiled": (["compile", "kernels.py:kernel", "--arg", "f32[4]"], ["kernel is a kernel", "hint: "]),
    "too few arguments": (["compile", "kernels.py:launch"], ["missing a required argument: 'x'"]),
    "unknown option": (["compile", "kernels.py:launch", "--options", "--fast"], ["unknown compile option '--fast'"]),
    "folder that cannot be": (
        ["compile", "kernels.py:launch", "--arg", "f32[4]", "-o", "/proc/none"], ["/proc/none cannot be written"]
    ),
    "no Python": (["compile", "broken.py:f"], ["SyntaxError", "broken.py:2", "this is (no python"]),
    "module that raises": (["compile", "raises.py:f"], ["ZeroDivisionError", "raises.py:2", "return 1 / 0"]),
    "a folder": (["compile", ".:f"], ["is a folder"]),
    "passes that do not parse": (["passes", "--load", "broken.py"], ["SyntaxError", "broken.py:2"]),
    "chip of the passes": (["passes", "--arch", "sm_3"], ["unknown architecture 'sm_3'"]),
    "target of a script": (["run", "--target", "gpu", "kernels.py"], ["unknown target 'gpu'", "cuda, emu"]),
    "chip of a script": (["run", "--arch", "sm_1", "kernels.py"], ["unknown architecture 'sm_1'"]),
    "script that is no Python": (["run", "broken.py"], ["SyntaxError", 'File "broken.py", line 2']),
    "picture that cannot be": (["layout", "4:1", "--svg", "none/x.svg"], ["none/x.svg cannot be written"]),
    "picture without end": (
        ["layout", "(1000000,1000000):(1,1000000)", "--svg", "x.svg"], ["a picture of 1000000000000 values"]
    ),
    "bits of nothing": (["layout", "(8,64):(64,1)", "--swizzle", "3,3,3", "--bits", "0"], ["has 1 to 1024 bits"]),
    "empty tile": (["layout", "(8,64):(64,1)", "--tiler", "0,-1"], ["extents are positive"]),
    "open call": (["layout", "zipped_divide((8,8):(8,1), (3,4)"], ["its brackets do not match"]),
    "text behind a call": (["layout", "coalesce((8,8):(8,1)):2"], ["something stands behind it"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_message_of(case, folder):
    arguments, words = FAULTS[case]
    done = tilewright(*arguments, cwd=folder)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr
    for part in ("Traceback", "typer", "tilewright/tools", "site-packages"):
        assert part not in done.stderr


def test_a_script_that_raises_is_shown_as_python_shows_it(folder):
    done = tilewright("run", "raises.py", cwd=folder)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", '  File "raises.py", line 5, in <module>']
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "tilewright" not in done.stderr


def test_a_layout_too_large_to_list_is_described(folder):
    done = tilewright("layout", "(1000000,1000000):(1,1000000)", cwd=folder)
    assert done.returncode == 0
    assert "size 1000000000000" in done.stdout and "too large to look at each value" in done.stdout


def test_wrong_number_of_parameters_lists_them(folder):
    assert tilewright("compile", "kernels.py:launch", "--arg", "f32[4]", cwd=folder).returncode == 0
    done = tilewright("emulate", "launch.sm_90a.ptx", cwd=folder)
    assert done.returncode == 1
    assert "takes 1 parameters, 0 were given" in done.stderr and "kernel_param_0 (8 bytes)" in done.stderr
