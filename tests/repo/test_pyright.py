"""What Pyright, and with it the common editors, knows of a user's kernel: signatures, types of values, mistakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYRIGHT = shutil.which("pyright") or shutil.which("basedpyright")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYRIGHT is None, reason="needs pyright (npm) or basedpyright (PyPI) on the path"),
]

KERNEL = """
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


@cute.kernel
def kernel(a: cute.Float32, x: cute.Tensor, threads: cutlass.Constexpr[int], op: cutlass.Constexpr) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    fragment = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    vector = fragment.load()
    layout = cute.make_layout((4, 8))
    {line}


@cute.jit
def launch(a: cute.Float32, x: cute.Tensor) -> None:
    kernel(a, x, 64, abs).launch(grid=(1, 1, 1), block=(64, 1, 1))


values = np.zeros(4, np.float32)
compiled = cute.compile(launch, 1.0, values)
{statement}
"""

TYPES = {
    "thread": "Int32",
    "block * threads + thread": "Int32",
    "(thread // 4) % 8 - 1": "Int32",
    "2 * thread << 3 | block & 7": "Int32",
    "thread < 3": "Boolean",
    "thread / 2": "Any",  # Float32, which is not Int32
    "cute.Int64(thread) * 4": "Int64",
    "a * 2 + 1.5": "Float32",
    "2.0 / a": "Float32",
    "threads // 2": "int",
    "op": "Any",
    "vector + vector": "TensorSSA",
    "2.0 * vector - a": "TensorSSA",
    "vector > 0.0": "TensorSSA",
    "x.load()": "TensorSSA",
    "cute.composition(x, layout)": "Tensor",
    "cute.composition(layout, cute.make_layout(4))": "Layout",
    "cute.zipped_divide(x, (1, 32))": "Tensor",
    "cute.zipped_divide(layout, (2, 2))": "Layout",
    "cute.local_tile(x, (8, 8), (0, block))": "Tensor",
    "cute.local_partition(x, layout, thread)": "Tensor",
    "cute.make_layout_tv(layout, layout)": "tuple[tuple[Any, ...], Layout]",
    "kernel": "KernelFunction[(a: Float32, x: Tensor, threads: int, op: Any)]",
    "launch": "JitFunction[(a: Float32, x: Tensor), None]",
    "kernel(a, x, 64, abs)": "KernelLauncher",
    "compiled": "Executor",
}

MISTAKES = {
    "kernel(1.0, values, 64, abs).lunch(grid=1)": 'Cannot access attribute "lunch" for class "KernelLauncher"',
    "compiled.stage": 'Cannot access attribute "stage" for class "Executor"',
    "cute.make_tiled_cpy": '"make_tiled_cpy" is not a known attribute of module "tilewright.cute"',
    "cute.arch.sync_thread()": '"sync_thread" is not a known attribute of module "tilewright.cute.arch"',
}
RIGHT = ("launch(1.0, values)", "launch(cute.Float32(2.0), values)", "compiled(1.0, values)")


def said(folder: Path, line: str = "pass", statement: str = "pass") -> list[dict]:
    """What Pyright reports on the kernel with a line in it, or a statement behind it."""
    (folder / "user.py").write_text(KERNEL.replace("{line}", line).replace("{statement}", statement))
    settings = {"include": ["user.py"], "extraPaths": [str(ROOT / "src")], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [PYRIGHT, "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_values_have_their_types(tmp_path):
    found = said(tmp_path, "\n    ".join(f"reveal_type({expression})" for expression in TYPES))
    assert [item["severity"] for item in found] == ["information"] * len(TYPES), found
    types = [item["message"].rsplit(' is "', 1)[1][:-1] for item in found]
    assert dict(zip(TYPES, types, strict=True)) == TYPES


def test_mistakes_are_found_and_right_calls_are_not(tmp_path):
    found = said(tmp_path, statement="\n".join([*RIGHT, *MISTAKES]))
    errors = [item["message"].split("\n")[0] for item in found if item["severity"] == "error"]
    assert errors == list(MISTAKES.values())
