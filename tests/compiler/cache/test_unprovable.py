"""What no digest covers: such functions are traced at every lookup, and what tracing does is done each time."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import re
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.cache.programs import forget
from tilewright import passes
from tilewright.base import patched
from tilewright.compiler import build, hooks
from tilewright.compiler.cache.lookup import Turn
from tilewright.lang import arch

LOG: list[str] = []
COUNTER = itertools.count(1)
SETTINGS = {"n": 1}
FILE = Path(__file__).parent / "a_number.txt"


@functools.cache
def remembered():
    return SETTINGS["n"]


class Hidden:
    """State that no attribute shows."""

    def __init__(self):
        self.state = iter([1, 2, 3, 4, 5, 6, 7, 8, 9])


HIDDEN = Hidden()


def reads_a_file():
    return json.loads(FILE.read_text())


def opens_a_file():
    with open(FILE) as file:
        return int(file.read())


def reads_the_environment():
    return int(os.environ.get("TEST_OF_THE_CACHE", "1"))


def reads_the_clock():
    return int(time.time() > 0)


def draws():
    return random.randint(1, 1)


def draws_by_numpy():
    return int(np.random.default_rng(0).integers(1, 2))


def prints():
    print("traced")
    return 1


def hands_on_a_module():
    return vars(sys.modules[__name__])["SETTINGS"]["n"]


def reads_globals():
    return globals()["SETTINGS"]["n"]


def evaluates():
    return eval("SETTINGS['n']")


def looks_up_frames():
    return sys._getframe().f_globals["SETTINGS"]["n"]


def counts():
    return min(next(COUNTER), 1)


def hidden_state():
    return min(next(HIDDEN.state), 1)


def of_this_thread():
    return 1 if threading.current_thread() else 0


def imports_late():
    import tests.compiler.cache.imported_late as late

    return late.N


def unknown_identity():
    return 1 if id(LOG) else 0


REASONS = {
    reads_a_file: "it can reach json.loads",
    opens_a_file: "it can reach _?io.open",
    reads_the_environment: "it can reach an object of os._Environ",
    reads_the_clock: "it can reach time.time",
    draws: "it can reach random.",
    draws_by_numpy: "it can reach",
    prints: "it can reach builtins.print",
    hands_on_a_module: "it hands on module|it can reach",
    reads_globals: "it can reach builtins.globals",
    evaluates: "it can reach builtins.eval",
    looks_up_frames: "it uses f_globals",
    counts: "it can reach an object of itertools.count",
    hidden_state: "it can reach an object over builtins.list_iterator",
    of_this_thread: "it can reach threading.current_thread",
    imports_late: "it imports tests.compiler.cache.imported_late, which is not loaded",
    unknown_identity: "it can reach builtins.id",
}


def program(value):
    @cute.kernel
    def kernel(x: cute.Tensor):
        x[0] = value()

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    return run


def reason(function, *args, **options) -> str:
    with Turn(build.plan(function, args, {}, **options)) as turn:
        turn.before_tracing()
        return turn.reason


@pytest.mark.parametrize("value", REASONS, ids=lambda value: value.__name__)
def test_it_is_traced_each_time_and_compiled_once(cache_dir, value):
    run, made = program(value), []
    x = np.zeros(1, np.int32)
    assert re.search(REASONS[value].replace(".", "[.]"), reason(run, x)), reason(run, x)
    with hooks.after_compile(made.append):
        for _ in range(2):
            run(x)
            cute.compile(run, x)(x)
            forget()
    assert len(made) == 1
    assert x[0] == 1


def test_printing_while_tracing_is_heard_each_time(cache_dir, capsys):
    run = program(prints)
    for _ in range(3):
        run(np.zeros(1, np.int32))
    assert capsys.readouterr().out == "traced\n" * 3


def notes():
    LOG.append("traced")
    return 1


def test_what_tracing_changes_is_changed_each_time(cache_dir):
    run = program(notes)
    LOG.clear()
    for _ in range(3):
        run(np.zeros(1, np.int32))
        forget()
        LOG.clear()  # as in a new process
        run(np.zeros(1, np.int32))
        assert LOG == ["traced"]
        LOG.clear()


def test_results_that_a_function_keeps_are_of_the_state_that_was(cache_dir):
    """A fresh process would compute them from the state that is now, so none of both may have the other's program."""
    run, x = program(remembered), np.zeros(1, np.int32)
    remembered.cache_clear()
    run(x)
    SETTINGS["n"] = 2
    run(x)
    assert x[0] == 1
    forget()
    remembered.cache_clear()  # as in a new process
    run(x)
    assert x[0] == 2
    SETTINGS["n"] = 1


class Counting(cutlass.Pass):
    """Leaves what it counted behind, as passes that look on do."""

    name = "counting"
    stage = "cute"

    def run(self, module):
        self.found = sum(op.name == "cute.store" for op in passes.operations(module))


class CountingLate(Counting):
    name = "counting-late"
    stage = "nvvm"

    def run(self, module):
        self.found = len(list(passes.operations(module)))


@pytest.mark.parametrize("cls", [Counting, CountingLate])
def test_what_passes_leave_behind_is_there_each_time(cache_dir, cls):
    run, x = program(counts), np.zeros(1, np.int32)
    for _ in range(3):
        counter = cls()
        cute.compile(run, x, passes=counter)
        assert counter.found
        forget()


def test_warnings_are_given_each_time(cache_dir):
    @cute.jit
    def unlaunched(x: cute.Tensor):
        nothing(x)

    @cute.kernel
    def nothing(x: cute.Tensor):
        x[0] = 1

    for _ in range(3):
        with pytest.warns(UserWarning, match="never launched"):
            cute.compile(unlaunched, np.zeros(1, np.int32))
        forget()


class Machine:
    """As kernels of public sources are: configured by attributes, some of them set while tracing."""

    def __init__(self, width):
        self.width = width

    @cute.jit
    def __call__(self, x: cute.Tensor):
        self.doubled = self.width * 2
        self.kernel(x).launch(grid=1, block=1)

    @cute.kernel
    def kernel(self, x: cute.Tensor):
        x[0] = self.doubled


def test_attributes_that_tracing_sets_are_set_each_time(cache_dir):
    for width in (3, 4, 3):
        machine, x = Machine(width), np.zeros(1, np.int32)
        cute.compile(machine, x)(x)
        assert (machine.doubled, x[0]) == (2 * width, 2 * width)
        forget()


def test_modules_of_ours_that_were_changed_turn_the_cache_off(cache_dir, monkeypatch):
    def first(*_, **__):
        return 1

    @cute.kernel
    def kernel(x: cute.Tensor):
        x[0] = cute.size(x)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.zeros(7, np.int32)
    assert cute.compile(run, x).cached == ""
    with monkeypatch.context() as patch:
        patch.setattr(arch, "lane_idx", first)
        assert cute.compile(run, x).cached == ""
        run(x)
    forget()
    assert cute.compile(run, x).cached == "disk"
    with monkeypatch.context() as patch:
        patch.setattr(cute.Tensor, "extra", first, raising=False)
        assert cute.compile(run, x).cached == ""  # a class of the language has a method more
    assert cute.compile(run, x).cached == "memory"


def test_a_module_imported_under_a_name_of_another_package_is_no_change(cache_dir, monkeypatch):
    before = dict(patched.PATCHED)
    monkeypatch.setitem(vars(arch), "imported_later", None)
    del vars(arch)["imported_later"]
    arch.imported_later = types.ModuleType("cutlass.imported_later")  # as the import system binds it
    assert before == patched.PATCHED
    with monkeypatch.context() as patch:
        patch.setattr(arch, "imported_later", types.ModuleType("another"))
        assert (arch.__name__, "imported_later") in patched.PATCHED
    assert before == patched.PATCHED
