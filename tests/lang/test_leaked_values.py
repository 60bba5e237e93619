"""Runtime values that Python objects keep beyond their region or compilation: an error, and the process lives on."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright import Int32
from tilewright.base.errors import CompileError


class Plain:
    shared = 0

    def __init__(self, n: Any = 0) -> None:
        self.n = n

    def add(self, by: Any) -> None:
        self.n = self.n + by


HELD = Plain()
LIST: list[Any] = []
TABLE: dict[str, Any] = {}


class Operator:
    """Keeps values of all kinds on `self`, as classes of kernels do."""

    @cute.jit
    def __call__(self, x: cute.Tensor):
        self.size = cute.size(x)
        self.tensor, self.pointer = x, x.iterator
        registers = cute.make_rmem_tensor(4, Int32)
        registers.fill(1)
        self.registers, self.vector, self.pair = registers, registers.load(), (x[0], {"a": x[1]})
        x[0] = self.size


USES = {
    "a number": lambda kept: kept.size + 1,
    "a condition": lambda kept: kept.size > 1,
    "inside a tuple": lambda kept: kept.pair[1]["a"] * 2,
    "an element": lambda kept: kept.tensor[0],
    "a pointer": lambda kept: kept.pointer + 1,
    "registers": lambda kept: kept.registers.load(),
    "a vector": lambda kept: kept.vector + 1,
    "an element of a vector": lambda kept: kept.vector[0],
}


@pytest.mark.parametrize("use", USES)
def test_a_value_of_an_earlier_compilation_is_refused(use):
    kept = Operator()
    x = np.array([3, 4, 5], np.int32)
    kept(x)
    assert x[0] == 3

    @cute.jit
    def later(x: cute.Tensor):
        USES[use](kept)

    with pytest.raises(CompileError, match="outlived the compilation") as caught:
        later(x)
    assert "hint: globals, classes and attributes of `self`" in str(caught.value)
    assert caught.value.location.file == __file__
    with pytest.raises(CompileError):
        USES[use](kept)
    kept(x)  # assigned anew, it works
    assert x[0] == 3


def test_values_in_globals_are_refused_later():
    LIST.clear()

    def first(x: cute.Tensor):
        HELD.n = x[2]
        LIST.append(x[1])
        x[0] = HELD.n + LIST[0]

    assert on_device(first, np.arange(4, dtype=np.int32), block=1)[0] == 3

    def second(x: cute.Tensor):
        if LIST[0] > 0:
            x[0] = HELD.n

    with pytest.raises(CompileError, match="outlived the compilation"):
        on_device(second, np.arange(4, dtype=np.int32), block=1)


def test_objects_outside_the_function_take_values_of_regions():
    """While the program is traced a global object is as good as one of the function."""

    def body(x: cute.Tensor):
        HELD.n = 0
        if x[1] > 0:
            HELD.n = x[2]
        for k in range(x[3]):
            HELD.add(k)
        x[0] = HELD.n

    assert on_device(body, np.arange(4, dtype=np.int32), block=1)[0] == 2 + 0 + 1 + 2


def leave_in_a_class(x):
    for k in range(x[3]):
        Plain.shared = k
    x[0] = Plain.shared


def leave_behind_a_class_of_self(x):
    held = Plain()
    if x[1] > 0:
        type(held).shared = x[2]
    x[0] = held.shared


@pytest.mark.parametrize("body", [leave_in_a_class, leave_behind_a_class_of_self])
def test_values_that_nothing_hands_on_are_refused(body):
    with pytest.raises(
        CompileError, match="a value of a runtime branch, loop or function is used outside it"
    ) as caught:
        on_device(body, np.arange(4, dtype=np.int32), block=1)
    Plain.shared = 0
    assert "x[0] = " in str(caught.value) and "hint: " in str(caught.value) and "operand" not in str(caught.value)


def test_a_dictionary_outside_takes_no_new_keys():
    def body(x: cute.Tensor):
        if x[1] > 0:
            TABLE["a"] = x[2]

    with pytest.raises(CompileError, match="the Python dict `TABLE` changes its length inside a runtime region"):
        on_device(body, np.arange(4, dtype=np.int32), block=1)
    TABLE.clear()


def test_partial_functions_show_their_objects():
    def body(x: cute.Tensor):
        held = Plain(x[0])
        add = functools.partial(Plain.add, held)
        for k in range(x[3]):
            add(k)
        x[1] = held.n

    assert on_device(body, np.arange(4, dtype=np.int32), block=1)[1] == 3
