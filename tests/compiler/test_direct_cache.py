"""The cache of direct calls: one compilation for one program, and errors at the lines of what was called."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from tilewright import EmulationError
from tilewright.compiler import hooks

SOURCE = """
import tilewright.cute as cute

@cute.kernel
def kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i + SHIFT] = 1.0

@cute.jit
def fill(x: cute.Tensor):
    kernel(x).launch(grid=1, block=cute.size(x))
"""


def module(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_second_call_compiles_nothing_wherever_it_stands(tmp_path):
    fill = module(tmp_path, "plain", SOURCE.replace("SHIFT", "0")).fill
    compiled = []
    with hooks.after_compile(compiled.append):
        for _ in range(2):
            x = np.zeros(8, np.float32)
            fill(x)
            fill(x)
    assert len(compiled) == 1


def test_the_same_text_in_another_place_has_its_errors_there(tmp_path):
    """As in a notebook: a cell with a line more above the same kernel."""
    text = SOURCE.replace("SHIFT", "3")
    for name, source in (("first", text), ("moved", "\n\n" + text), ("second", text)):
        made = module(tmp_path, name, source)
        with pytest.raises(EmulationError) as caught:
            made.fill(np.zeros(8, np.float32))
        line = source.splitlines().index("    x[i + 3] = 1.0") + 1
        assert (caught.value.location.file, caught.value.location.line) == (str(tmp_path / f"{name}.py"), line)
