"""The size and import rules of scripts/check_structure.py: what they find and what they let pass."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_structure", ROOT / "scripts" / "check_structure.py")
check_structure = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_structure)


def rules(source, place):
    return list(check_structure.import_rules(ast.parse(source), Path(place)))


def long_function(lines, decorator=""):
    return decorator + "def f():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("import mlir.ir", "layout/algebra.py", "1: layout may not import mlir"),
        ("from mlir import ir", "tools/cli.py", "1: tools may not import mlir"),
        ("def f():\n    import torch", "cute/runtime.py", "2: cute may not import torch"),
        ("import torch", "emulate.py", "1: emulate may not import torch"),
        ("import numpy as np", "hw/chips.py", "1: hw may not import numpy"),
        ("from tilewright.lang import nvgpu", "lang/tensors/tensor.py", "1: the neutral part of lang"),
        ("from tilewright.lang.nvgpu import warp", "lang/tensors/tensor.py", "1: the neutral part of lang"),
    ],
)
def test_forbidden_imports_are_found(source, place, message):
    assert rules(source, place)[0].startswith(message)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("from mlir import ir", "ir/mlir.py"),
        ("import torch", "ops/softmax.py"),
        ("import numpy as np", "targets/emu/memory.py"),
        ("from tilewright.lang.nvgpu import warp", "lang/nvgpu/warpgroup.py"),
        ("from tilewright.torch import as_tensor", "cute/runtime.py"),
    ],
)
def test_allowed_imports_pass(source, place):
    assert rules(source, place) == []


@pytest.mark.parametrize(
    ("lines", "decorator", "findings"),
    [(100, "", 0), (101, "", 1), (101, "@cute.kernel\n", 0), (250, "@cute.kernel()\n", 0), (251, "@cute.kernel\n", 1)],
)
def test_function_sizes(lines, decorator, findings):
    found = list(check_structure.function_sizes(ast.parse(long_function(lines, decorator))))
    assert len(found) == findings
    if found:
        assert f"function f has {lines} lines" in found[0]


def test_file_size(tmp_path, monkeypatch):
    monkeypatch.setattr(check_structure, "ROOT", tmp_path)
    path = tmp_path / "long.py"
    path.write_text("x = 1\n" * 801)
    assert list(check_structure.check_file(path)) == ["long.py: 801 lines, the limit is 800: split it by topic"]
    path.write_text("x = 1\n" * 800)
    assert list(check_structure.check_file(path)) == []
