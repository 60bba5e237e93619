"""Editors and type checkers see the public face: its modules list what they export, and user code type-checks."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import face

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """\
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32, s: cutlass.Constexpr[float]) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + t
    rows = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 4)))
    if i < n:
        c[i] = a[i] + b[i] * s + cute.math.sqrt(cutlass.Float32(2.0))
        rows[t % 32, 0] = 0.0
    for k in cutlass.range(4, unroll=2):
        c[k] = cutlass.Float32(k)
    cute.arch.sync_threads()


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    tile = cute.zipped_divide(a, (4,))
    add_kernel(tile, b, c, cutlass.Int32(4), 2.0).launch(grid=(1, 1, 1), block=(128, 1, 1))


x = np.zeros(4, np.float32)
compiled = cute.compile(add, from_dlpack(x), x, x, options="--opt-level 2")
compiled(x, x, x)
"""


def test_every_module_of_the_face_lists_its_exports():
    command = [sys.executable, str(ROOT / "scripts" / "list_exports.py"), "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"run scripts/list_exports.py: {found.stdout}{found.stderr}"


@pytest.mark.parametrize("module", [face, cute, cute.arch, cute.math, cute.runtime, cutlass.utils, cutlass.pipeline])
def test_what_is_listed_is_there(module):
    assert len(module.__all__) > 5
    assert set(module.__all__) <= set(dir(module))


def test_the_root_shows_all_names_of_the_face():
    assert set(face.__all__) <= set(dir(cutlass))
    assert all(hasattr(cutlass, name) for name in face.__all__)


def test_the_package_says_that_it_is_typed():
    assert resources.files("tilewright").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_a_kernel_type_checks_strictly(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text(KERNEL)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(source)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Success: no issues found in 1 source file" in found.stdout, found.stdout


@pytest.mark.slow
def test_a_misspelt_name_is_found(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text(KERNEL.replace("sync_threads", "sync_thread"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(source)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'kernel.py:19: error: Module has no attribute "sync_thread"' in found.stdout
