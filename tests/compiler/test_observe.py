"""`emulate.observe`: debugger, counters and checks for kernels that are launched from Python."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import EmulationError
from tilewright.base.errors import ArgumentError
from tilewright.emulate import Debugger, observe, run_ptx


@cute.kernel
def double_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    value = x[i]
    x[i] = value + value  # doubled here


@cute.jit
def double(x: cute.Tensor):
    double_kernel(x).launch(grid=1, block=cute.size(x))


@cute.kernel
def beyond_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i + 1] = 0.0


@cute.jit
def beyond(x: cute.Tensor):
    beyond_kernel(x).launch(grid=1, block=cute.size(x))


FILE = double_kernel.function.__code__.co_filename.rpartition("/")[2]
LINE = double_kernel.function.__code__.co_firstlineno + 4


@pytest.fixture
def x():
    return np.arange(64, dtype=np.float32)


def test_counters_of_every_launch(x):
    compiled = cute.compile(double, x, target="emu")
    with observe(counters=True) as reports:
        compiled(x)
        compiled(x)
    assert [report.kernel for report in reports] == ["double_kernel"] * 2
    assert [report.sectors for report in reports] == [16, 16]  # 64 floats of 4 bytes are 8 sectors, read and written
    compiled(x)
    assert len(reports) == 2
    assert reports[0].roofline("H100") is not None
    np.testing.assert_array_equal(x, 8 * np.arange(64))


def test_stop_at_a_python_line_and_read_the_registers_of_a_lane(x):
    stops = []
    compiled = cute.compile(double, x, target="emu")

    def stop(at):
        if at.instruction.op == "add":
            name = at.instruction.ops[0].name
            stops.append((at.threads[5], at.register(name).view(np.float32)[5]))

    with observe(debugger=Debugger(break_at=f"{FILE}:{LINE}", on_break=stop)):
        compiled(x)
    assert ((0, 0, 0), (5, 0, 0)) in [place for place, _ in stops]
    assert 10.0 in [value for _, value in stops]


def test_collected_findings(x):
    compiled = cute.compile(beyond, x, target="emu")
    with pytest.raises(EmulationError):
        compiled(x)
    with observe(checks="collect") as reports:
        compiled(x)
    assert [error.kind for error in reports[0].errors] == ["bounds"]
    assert reports[0].errors[0].location.line == beyond_kernel.function.__code__.co_firstlineno + 3


def test_blocks_nest_and_belong_to_a_thread(x):
    compiled = cute.compile(double, x, target="emu")
    with observe(counters=True) as outer, observe(checks=False) as inner:
        other = threading.Thread(target=compiled, args=(x.copy(),))
        other.start()
        other.join()
        compiled(x)
    assert len(outer) == len(inner) == 1 and outer[0] is inner[0]


def test_a_line_without_instructions_is_an_error_that_names_lines_near(x):
    compiled = cute.compile(double, x, target="emu")
    with pytest.raises(ArgumentError, match=f"no instruction is at line {FILE}:3") as caught:
        with observe(debugger=Debugger(break_at=[f"{FILE}:3"], on_break=print)):
            compiled(x)
    assert str(LINE) in caught.value.values["lines nearby"]


def test_break_at_needs_on_break():
    with pytest.raises(ArgumentError, match="break_at without on_break"):
        Debugger(break_at=3)


def test_an_unknown_register_is_named_with_those_that_are_there(x):
    said = []

    def stop(at):
        with pytest.raises(KeyError) as caught:
            at.register("%nothere")
        said.append(str(caught.value))

    with observe(debugger=Debugger(break_at=f"{FILE}:{LINE}", on_break=stop)):
        cute.compile(double, x, target="emu")(x)
    assert "no register %nothere" in said[0] and "%r" in said[0]


@pytest.mark.parametrize("wrong", [3, b".version 8.0", None])
def test_ptx_that_is_no_text_is_refused(wrong):
    with pytest.raises(ArgumentError, match="the PTX is a text, not"):
        run_ptx(wrong, "kernel", 1, 1, [])
