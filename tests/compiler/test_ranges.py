"""NVTX ranges, by a stand-in of the library that writes what it is told."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright.base import notices, ranges
from tilewright.base.notices import IgnoredOptionWarning

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
static void say(const char* word, const char* text) {
    FILE* file = fopen(getenv("FAKE_NVTX"), "a");
    fprintf(file, "%s%s\\n", word, text);
    fclose(file);
}
int nvtxRangePushA(const char* text) { say("+", text); return 0; }
int nvtxRangePop(void) { say("-", ""); return 0; }
"""


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit with the stand-in; gives the file that it writes to."""
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    (tmp_path / "lib64").mkdir()
    (tmp_path / "nvtx.c").write_text(SOURCE)
    library = tmp_path / "lib64" / "libnvToolsExt.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "nvtx.c"), "-o", str(library)], check=True)
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(tmp_path))
    monkeypatch.setenv("FAKE_NVTX", str(tmp_path / "said"))
    ranges._library.cache_clear()
    yield tmp_path / "said"
    ranges._library.cache_clear()


@pytest.mark.parametrize("variable", ["TILEWRIGHT_NVTX", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"])
def test_ranges_surround_compilation_and_launch(toolkit, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    executor = cute.compile(double, *floats(), target="emu")
    x, out = floats()
    executor(x, out)
    assert (out == 2 * x).all()
    lines = toolkit.read_text().splitlines()
    opened = [line[1:] for line in lines if line.startswith("+")]
    stages = [f"{stage} of double" for stage in ("python", "cute", "nvvm", "llvm", "ptx")]
    assert opened == [*stages, "launch double"] and lines.count("-") == len(opened)


def test_a_range_ends_where_a_launch_fails(toolkit, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_NVTX", "1")
    executor = cute.compile(double, *floats(), target="emu")
    with pytest.raises(TypeError):
        executor(1, 2)
    assert toolkit.read_text().splitlines()[-2:] == ["+launch double", "-"]


def test_without_a_profiler_there_are_none(toolkit):
    cute.compile(double, *floats(), target="emu")(*floats())
    assert not toolkit.exists()


def test_a_missing_library_is_said_once(monkeypatch):
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(ranges, "_candidates", lambda toolkit: iter(()))
    monkeypatch.setenv("TILEWRIGHT_NVTX", "1")
    ranges._library.cache_clear()
    with pytest.warns(IgnoredOptionWarning, match="pip install nvidia-nvtx"):
        cute.compile(double, *floats(), target="emu")(*floats())
    ranges._library.cache_clear()
