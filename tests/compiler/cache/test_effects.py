"""Attributes that tracing sets on objects: a hit sets them again, or there is none."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.cache import machines
from tests.compiler.cache.machines import Machine, Order, Plan
from tests.compiler.cache.programs import forget, run
from tests.compiler.cache.test_hits import WITHOUT_MLIR
from tilewright.compiler import build, hooks
from tilewright.compiler.cache import effects
from tilewright.compiler.cache.lookup import Turn


def traced(machine, *args) -> bool:
    """Whether a lookup has to trace."""
    with Turn(build.plan(type(machine).__call__, args, {}, bound=(machine,))) as turn:
        return turn.before_tracing() is None


def check(machine: Machine, stages: int) -> None:
    x, out = machines.arguments()
    cute.compile(machine, x, out)(x, out)
    np.testing.assert_array_equal(out, machines.expected(stages))


@pytest.mark.parametrize("stages", [2, 3])
def test_an_object_that_tracing_changes_is_found_without_tracing(cache_dir, stages):
    first, second = Machine(stages), Machine(stages)
    check(first, stages)
    forget()
    assert not traced(Machine(stages), *machines.arguments())
    assert traced(Machine(stages + 2), *machines.arguments())
    check(second, stages)
    assert machines.facts(second) == machines.facts(first)
    assert second.traced is None  # what is known at run time only is of no use after tracing


PROCESS = """
import sys
import numpy as np
import tilewright.cute as cute
from tests.compiler.cache import machines
machine = machines.Machine(3)
x, out = machines.arguments()
made = cute.compile(machine, x, out)
made(x, out)
print(made.cached, "mlir.ir" in sys.modules, *out[:2], machines.facts(machine))
"""


def test_other_processes_find_it_without_mlir(cache_dir):
    """Nor does it matter which names of the language were loaded before."""
    first = run(PROCESS)
    assert first.startswith(" True 7.0 10.0")
    expected = first.replace(" True", "disk False", 1)
    assert run(PROCESS) == expected
    assert run(WITHOUT_MLIR + PROCESS) == expected
    assert run("import tilewright; tilewright.range_constexpr, tilewright.Float64\n" + PROCESS) == expected


def test_the_same_object_again_and_again(cache_dir):
    """The second time it has attributes that it did not have at first; from then on nothing changes."""
    machine, made = Machine(2), []
    with hooks.after_compile(made.append):
        for _ in range(2):
            x, out = machines.arguments()
            cute.compile(machine, x, out)(x, out)
            np.testing.assert_array_equal(out, machines.expected(2))
    assert len(made) == 1
    assert not traced(machine, *machines.arguments())
    machine.stages = 3
    assert traced(machine, *machines.arguments())
    check(machine, 3)
    machine.stages = 2
    check(machine, 2)


def test_direct_calls_of_an_object_are_kept(cache_dir):
    """They are found by the object, as long as it holds what it did."""
    machine, known = Machine(2), Machine.__call__.direct_calls
    for _ in range(3):
        x, out = machines.arguments()
        machine(x, out)
    assert known.find((machine, x, out), {}) is not None
    assert known.find((Machine(2), x, out), {}) is None
    machine.stages = 3
    assert known.find((machine, x, out), {}) is None
    machine(x, out)
    np.testing.assert_array_equal(out, machines.expected(3))
    machine.numbers.append(1)
    assert known.find((machine, x, out), {}) is None


class Inherits(Machine):
    pass


def test_a_class_that_inherits_its_call(cache_dir):
    check(Inherits(3), 3)


def test_a_value_that_was_changed_by_hand_is_set_again(cache_dir):
    first, second = Machine(2), Machine(2)
    check(first, 2)
    check(second, 2)
    second.order = Order.COLUMNS  # tracing sets it before it reads it
    check(second, 2)
    assert second.order is Order.ROWS


class Keeps:
    """Sets one attribute to what `make` gives."""

    def __init__(self, make):
        self.make, self.kept = make, 1

    @cute.jit
    def __call__(self, x: cute.Tensor):
        self.change()
        self.kernel(x).launch(grid=1, block=1)

    def change(self):
        self.kept = self.make()

    @cute.kernel
    def kernel(self, x: cute.Tensor):
        x[0] = 1


class Deletes(Keeps):
    def change(self):
        del self.kept


@pytest.mark.parametrize(
    "machine",
    [Keeps(lambda: lambda: 1), Keeps(lambda: {1, 2}), Keeps(lambda: b"bytes"), Deletes(None)],
    ids=["function", "set", "bytes", "deleted"],
)
def test_what_cannot_be_set_again_is_traced_each_time(cache_dir, machine):
    """An attribute that was there has another value afterwards, so a hit without it would be stale."""
    x = np.zeros(1, np.int32)
    with Turn(build.plan(Keeps.__call__, (x,), {}, bound=(machine,))) as turn:
        assert turn.before_tracing() is None and not turn.reason
    for _ in range(2):
        machine.kept = 1
        cute.compile(machine, x)(x)
        assert getattr(machine, "kept", 2) != 1
        forget()


class Level(enum.IntEnum):
    HIGH = 3


class Slotted:
    __slots__ = ("n",)


def test_values_come_back_as_they_were():
    slotted, known = Slotted(), object()
    slotted.n = (1, "é\ud800")
    shared = [1]
    values = [
        None, True, 1, -(2**70), 2.5, -0.0, math.inf, "text", (1, (2,)), [shared, shared], {"a": 1, 2: [None]},
        cutlass.Float16, np.float32, len, machines.arguments, Order.ROWS, Level.HIGH, Plan(3, (1, 2)), slotted,
        cutlass.Int32(5), cute.make_layout((3, 4)), cute.make_swizzle(3, 4, 3), known,
    ]  # fmt: skip
    for value in values:
        text = effects.written(value, [known])
        found = effects.read(text, [known])
        assert type(found) is type(value)
        assert effects.written(found, [known]) == text
        if not isinstance(value, Slotted | cutlass.Int32):
            assert repr(found) == repr(value)
    assert effects.read(effects.written(known, [known]), [known]) is known
    first, second = effects.read(effects.written([shared, shared]))
    assert first is second
    assert effects.read(effects.written(slotted)).n == slotted.n
    circle: list[object] = []
    circle.append(circle)
    found = effects.read(effects.written(circle))
    assert found[0] is found


@pytest.mark.parametrize(
    "value", [lambda: 1, {1}, b"1", object(), np.zeros(1), open, iter([])], ids=lambda value: type(value).__name__
)
def test_values_that_cannot_be_written_down(value):
    if value is open:
        value = open(__file__)  # noqa: SIM115
    with pytest.raises(effects.UnwritableError, match="cannot be written down"):
        effects.written((1, value))


def test_names_that_are_not_loaded():
    text = effects.written(Order.ROWS).replace("machines", "elsewhere")
    with pytest.raises(effects.EffectsError, match=r"tests\.compiler\.cache\.elsewhere\.Order is not loaded"):
        effects.read(text)
