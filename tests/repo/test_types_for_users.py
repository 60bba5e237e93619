"""What a type checker says about a user's kernel: a wrong name of the public face is an error, a right one is none."""

from __future__ import annotations

import subprocess
import sys

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


@pytest.mark.slow
def test_mypy_knows_the_names_of_cute(tmp_path):
    source = tmp_path / "user.py"
    source.write_text(KERNEL)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout + done.stderr
    assert "user.py:9" in errors[0]
    assert '"nothere"' in errors[0]
