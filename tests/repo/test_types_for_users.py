"""What a type checker says about a user's kernel: wrong names are errors, right ones are none and have their types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
import tilewright.cute as cute

@cute.kernel
def kernel(out: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    out[thread] = cute.math.exp(out[thread])
    cute.nvgpu.warp.MmaF16BF16Op
    cute.nothere(3)
"""


TYPED = """
from typing import assert_type

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.compiler.executor import Executor
from tilewright.lang.calls.launch import KernelLauncher

@cute.kernel
def kernel(a: cute.Float32, x: cute.Tensor, op: cutlass.Constexpr, n: cutlass.Constexpr[int]) -> None:
    lane = cute.arch.lane_idx()
    tiles = cute.zipped_divide(x, (n,))
    assert_type(tiles, cute.Tensor)
    assert_type(n // 2, int)
    assert_type(half(a, n), cute.Float32)
    if lane < cute.size(x, mode=[0], loc=None):
        x[lane] = op(a * x[lane])

@cute.kernel(preprocess=False)
def traced(x: cute.Tensor) -> None:
    x[0] = 1.0

@cute.jit
def half(a: cute.Float32, n: int) -> cute.Float32:
    return cute.Float32(a / n)

@cutlass.dsl_user_op
def twice(a: cute.Float32, *, loc: object = None, ip: object = None) -> cute.Float32:
    return cute.Float32(a * 2)

@cute.jit
def launch(a: cute.Float32, x: cute.Tensor) -> None:
    assert_type(kernel(a, x, abs, 4), KernelLauncher)
    kernel(a, x, abs, 4).launch(grid=(1, 1, 1), block=(32, 1, 1))
    traced(x).launch(grid=1, block=1)
    assert_type(twice(a), cute.Float32)

class Gemm:
    @cute.jit
    def __call__(self, x: cute.Tensor) -> None:
        self.body(x).launch(grid=1, block=1)

    @cute.kernel
    def body(self, x: cute.Tensor) -> None:
        assert_type(self.part(3), int)

    @cute.jit
    def part(self, n: int) -> int:
        return n

x = np.zeros(32, np.float32)
launch(2.0, x)
compiled = cute.compile(launch, 2.0, x, options="--opt-level 2")
assert_type(compiled, Executor)
assert_type(cute.compile[cute.OptLevel(2)](Gemm(), x), Executor)
compiled(2.0, x)
Gemm()(x)
Gemm().part(3).nothere
kernel(2.0, x, abs, 4).lunch(grid=1)
launch.nothere
compiled.nothere
"""


def errors_of_mypy(text: str, folder: Path) -> list[str]:
    """What mypy objects to in a file of the user."""
    source = folder / "user.py"
    source.write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "error:" in line]


@pytest.mark.slow
def test_mypy_knows_the_names_of_cute(tmp_path):
    errors = errors_of_mypy(KERNEL, tmp_path)
    assert len(errors) == 1, errors
    assert "user.py:9" in errors[0] and '"nothere"' in errors[0]


@pytest.mark.slow
def test_decorated_functions_keep_their_types(tmp_path):
    """All is as annotated, arrays and floats may be passed, and the four wrong names at the end are found."""
    errors = errors_of_mypy(TYPED, tmp_path)
    last = len(TYPED.splitlines())
    assert [int(line.split(":")[1]) for line in errors] == [last - 3, last - 2, last - 1, last], errors
    assert all("has no attribute" in line for line in errors)
