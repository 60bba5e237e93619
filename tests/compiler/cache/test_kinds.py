"""Each kind of thing that a helper can read: an edit is never missed, and where nothing changed there is a hit."""

from __future__ import annotations

import builtins
import copyreg
import decimal
import importlib
import math
import sys
from types import ModuleType

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.cache.kinds import MENDED, OTHERS, Kind
from tests.compiler.cache.programs import forget
from tilewright.compiler import build, hooks
from tilewright.compiler.cache.lookup import Turn

RUN = """
import tilewright.cute as cute

@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = value()

@cute.jit
def run(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)
"""


@pytest.fixture(autouse=True)
def changes_of_python_are_undone(monkeypatch):
    """Some edits change modules of Python."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(math, "gcd", math.gcd)
    monkeypatch.setattr(builtins, "abs", abs)
    monkeypatch.setattr(copyreg, "dispatch_table", copyreg.dispatch_table)
    monkeypatch.setenv("EDITS_OF_A_TEST", "1")
    table = dict(copyreg.dispatch_table)
    copyreg.dispatch_table.clear()  # other packages register reducers that no digest covers
    with decimal.localcontext():
        yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(table)


class Program:
    """The modules of a kind on disk, imported anew by `load` as a new process would."""

    def __init__(self, folder, kind: Kind) -> None:
        self.file, self.other = folder / "number.txt", folder / "edited_other.py"
        self.source = self.named(kind.source) + RUN
        self.path = folder / "edited_helper.py"

    def named(self, text: str) -> str:
        return text.replace("OTHER", "edited_other").replace("FILE", repr(str(self.file)))

    def load(self) -> ModuleType:
        self.file.write_text("1")
        self.other.write_text("N = 1\n")
        self.path.write_text(self.source)
        importlib.invalidate_caches()
        for path in (self.other, self.path):
            sys.modules.pop(path.stem, None)
        return importlib.import_module(self.path.stem)


def directly(module: ModuleType) -> int:
    x = np.zeros(1, np.int32)
    module.run(x)
    return int(x[0])


def compiled(module: ModuleType) -> tuple[int, str]:
    x = np.zeros(1, np.int32)
    made = cute.compile(module.run, x)
    made(x)
    return int(x[0]), made.cached


def is_provable(module: ModuleType) -> bool:
    with Turn(build.plan(module.run, (np.zeros(1, np.int32),), {})) as turn:
        return turn.before_tracing() is not None


def check(folder, kind: Kind, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    program, made = Program(folder, kind), []
    for edit in kind.edits:
        module = program.load()
        assert directly(module) == 1
        made.clear()
        with hooks.after_compile(made.append):
            assert (compiled(module), directly(module)) == ((1, "memory"), 1)
            module = program.load()
            forget()
            assert (compiled(module), directly(module)) == ((1, "disk"), 1)
            assert is_provable(module) == kind.provable
        assert not made
        exec(program.named(edit), vars(module))
        assert (directly(module), compiled(module)[0], directly(module)) == (2, 2, 2), edit


@pytest.mark.parametrize("name", MENDED)
def test_what_was_mended(tmp_path, cache_dir, monkeypatch, name):
    check(tmp_path, MENDED[name], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds(tmp_path, cache_dir, monkeypatch, name):
    check(tmp_path, OTHERS[name], monkeypatch)
