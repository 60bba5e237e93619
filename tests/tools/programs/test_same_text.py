"""The same source gives the same bytes at every stage in any two processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.targets.target import back_end
from tilewright.tools import demo_kernels

EXTENSIONS = {stage.name: stage.extension for stage in back_end("nvidia").stages}

SOURCE = Path(demo_kernels.__file__)
ARGUMENTS = {
    "add": ["f32[?]"] * 3,
    "row_sum": ["f32[?,4096]", "f32[?]"],
    "row_sum_layout": ["f32[?,?]", "f32[?]"],
    "block_sum": ["i32[50001]", "i32[196]"],
}


def compiled(function, folder, seed):
    arguments = [word for argument in ARGUMENTS[function] for word in ("--arg", argument)]
    command = ["compile", f"{SOURCE}:{function}", *arguments, "--arch", "sm_90a", "--emit", "all", "-o", str(folder)]
    program = "from tilewright.tools.cli import main; main()"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", program, *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}


@pytest.mark.parametrize("function", ARGUMENTS)
def test_two_processes(function, tmp_path):
    first, second = (compiled(function, tmp_path / seed, seed) for seed in ("1", "2"))
    assert len(first) == len(EXTENSIONS)
    assert first == second
