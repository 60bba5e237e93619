"""`tilewright explore` and `compiled.explore()`."""

import subprocess
import sys

import pytest

from tests.tools.explorer import cases
from tilewright import ArgumentError
from tilewright.kernels import gemm
from tilewright.tools import demo_kernels
from tilewright.tools.commands import explore as command
from tilewright.tools.explorer.page import data_of

PLACE = f"{demo_kernels.__file__}:row_sum"
ARGS = ["f32[16,256]", "f32[16]"]


def test_the_command_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command.command(PLACE, arg=ARGS, arch="sm_90a")
    assert capsys.readouterr().out == "wrote row_sum.sm_90a.html\n"
    data = data_of((tmp_path / "row_sum.sm_90a.html").read_text(encoding="utf-8"))
    assert [stage["name"] for stage in data["kernels"][0]["stages"]] == [
        "python",
        "cute",
        "nvvm",
        "llvm",
        "ptx",
        "sass",
    ]
    assert data["missing"] == ""
    command.command(PLACE, arg=ARGS, arch="sm_90a")
    assert capsys.readouterr().out == "wrote row_sum.sm_90a.2.html\n"


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        (["f32[?,256]", "f32[?]"], {}, "the function was not run: give arguments with all extents"),
        (ARGS, {"run": False}, "--no-run was given"),
    ],
)
def test_a_page_without_counters_says_why(tmp_path, args, options, said):
    command.command(PLACE, arg=args, arch="sm_80", out=tmp_path / "a.html", **options)
    data = data_of((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert data["missing"] == said
    assert data["arch"] == "sm_80"


def test_a_port_that_cannot_be():
    with pytest.raises(ArgumentError, match=r"--port 70000: ports are 0 to 65535"):
        command.command(PLACE, arg=ARGS, serve_=True, port=70000)


def test_compiled_explore(tmp_path):
    executor, values = cases.row_sum(8, 64)
    path = executor.explore(*values, path=tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    assert data_of(path.read_text(encoding="utf-8"))["kernels"][0]["counts"]["python"]
    assert values[1].tolist() == [64.0] * 8


def test_a_function_for_a_gpu_is_not_run(tmp_path):
    executor, values = cases.row_sum(8, 64)
    executor.target = "cuda"
    with pytest.raises(ArgumentError, match=r"row_sum was compiled for cuda, and the explorer counts on the emulator"):
        executor.explore(*values, path=tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


PROGRAM = """
import sys
from tilewright.tools.commands import explore
explore.command(sys.argv[1], arg=sys.argv[3:], arch="sm_90a", out=sys.argv[2])
"""


@pytest.mark.slow
def test_two_processes_write_the_same_page_but_for_times(tmp_path):
    pages = []
    for name in ("a.html", "b.html"):
        command_line = [sys.executable, "-c", PROGRAM.replace("sys.argv[2]", "__import__('pathlib').Path(sys.argv[2])")]
        subprocess.run([*command_line, PLACE, str(tmp_path / name), *ARGS], check=True, capture_output=True)
        data = data_of((tmp_path / name).read_text(encoding="utf-8"))
        for program in data["programs"]:
            program["seconds"] = [name for name, _ in program["seconds"]]
            for item in program["passes"]:
                item["seconds"] = 0
        pages.append(data)
    assert pages[0] == pages[1]


OPERATOR = """
import numpy as np

from tilewright import ops


def product(a, b):
    ops.gemm(a, b)


def nothing():
    pass
"""


def test_a_plain_function_is_called_and_what_it_compiles_is_shown(tmp_path):
    gemm._executor.cache_clear()  # an earlier test may have compiled it
    (tmp_path / "case.py").write_text(OPERATOR)
    command.command(
        f"{tmp_path / 'case.py'}:product", arg=["f16[72,24]", "f16[24,40]"], arch="sm_80", out=tmp_path / "a.html"
    )
    data = data_of((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert (data["function"], data["arch"], data["missing"]) == ("product", "sm_80", "")
    assert [kernel["name"] for kernel in data["kernels"]] == ["gemm_sm80_kernel"]
    assert data["kernels"][0]["counts"]["python"]
    assert "gemm_sm80.py" in [file["name"] for file in data["files"]]


def test_a_function_that_compiles_nothing(tmp_path):
    (tmp_path / "case.py").write_text(OPERATOR)
    with pytest.raises(ArgumentError, match=r"case\.py:nothing compiled nothing"):
        command.command(f"{tmp_path / 'case.py'}:nothing", out=tmp_path / "a.html")


def test_options_for_a_plain_function(tmp_path):
    (tmp_path / "case.py").write_text(OPERATOR)
    with pytest.raises(ArgumentError, match=r"is no @cute\.jit function, so --options has nothing to apply to"):
        command.command(f"{tmp_path / 'case.py'}:nothing", options="--opt-level 1", out=tmp_path / "a.html")
