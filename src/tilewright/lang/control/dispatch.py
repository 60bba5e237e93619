"""What rewritten functions call. Each construct is run as Python or traced into a region, as its condition says."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from tilewright.base import notices
from tilewright.base.errors import CompileError
from tilewright.ir.context import active
from tilewright.lang.control import blocks, mutable_state
from tilewright.lang.control.branch import Branch, container_change
from tilewright.lang.control.expressions import (
    and_,
    builtin,
    chain,
    contains,
    contains_not,
    equal,
    here,
    not_,
    not_equal,
    or_,
    static_test,
    ternary,
    truth,
)
from tilewright.lang.control.expressions import range_ as range
from tilewright.lang.control.loop_carried import ChangedInPlace, InPlace, Loop, LoopState
from tilewright.lang.control.loops import run_for, run_while
from tilewright.lang.control.ranges import range as Range
from tilewright.lang.control.region import Exit, Region, break_, continue_, is_return, raise_, return_
from tilewright.lang.control.variables import Variables
from tilewright.lang.leaves import is_dynamic
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric

__all__ = [
    "ConstantConditionWarning", "and_", "break_", "builtin", "chain", "contains", "contains_not", "continue_", "equal",
    "for_", "if_", "is_return", "not_", "not_equal", "or_", "raise_", "range", "return_", "static_test",
    "ternary", "while_", "with_",
]  # fmt: skip

Body = Callable[..., Exit | None]
Names = tuple[str, ...]
Around = Region | Names
_TRACED_ITERATIONS = 10_000  # of a `while` run by Python, before it is taken for endless


class ConstantConditionWarning(UserWarning):
    """An `if` looks as if it were decided at run time, but its condition is a constant."""


def if_(around: Around, test: Any, then: Body, otherwise: Body | None, carried: Names, dead: Names) -> Exit | None:
    """`if test: then() else: otherwise()`."""
    if not is_dynamic(test):
        if isinstance(test, Numeric):
            _warn_constant()
        chosen = then if test else otherwise
        return None if chosen is None else chosen(Region("if", False, around))
    region = Region("if", True, around)
    branch = Branch(truth(test).ir_value(), Variables(region.host, then, otherwise), carried, dead, here())
    branch.run(lambda: then(region), None if otherwise is None else lambda: otherwise(region))
    return None


def _warn_constant() -> None:
    frame = sys._getframe(2)
    notices.count()
    warnings.warn_explicit(
        "this `if` is decided while the program is compiled: its condition is a constant;"
        " wrap it in `cutlass.const_expr(...)` to say so",
        ConstantConditionWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def for_(
    around: Around,
    iterable: Any,
    body: Body,
    carried: Names,
    dead: Names,
    targets: Names,
    attributes: Names,
    containers: Names,
) -> Exit | None:
    """`for item in iterable: body(item)`; the result is the signal of an early way out."""
    if isinstance(iterable, Range) and active():
        region = Region("for", True, around)
        loop = Loop("for", here(), Variables(region.host, body), carried, dead, attributes, containers)
        _trace_loop(loop, lambda state: run_for(iterable, state, targets, lambda item: body(region, item)))
        return None
    region = Region("for", False, around)
    for item in iterable:
        signal = body(region, item)
        if signal is not None and signal.kind != "continue":
            return signal
    return None


def while_(
    around: Around,
    test: Callable[[Region], Any],
    body: Body,
    carried: Names,
    dead: Names,
    attributes: Names,
    containers: Names,
) -> Exit | None:
    """`while test(): body()`: run by Python while the test is a constant, traced from then on."""
    region = Region("while", False, around)
    tracing = active()
    iterations = 0
    while True:
        probe = _Probe(region, test, body, carried, dead) if tracing else None
        condition = probe.run(region) if probe else test(region)
        if is_dynamic(condition):
            break
        if not condition:
            return None
        signal = body(region)
        if signal is not None and signal.kind != "continue":
            return signal
        iterations += 1
        if tracing and iterations > _TRACED_ITERATIONS:
            raise _endless()
    region = Region("while", True, around)
    loop = Loop("while", here(), Variables(region.host, test, body), carried, dead, attributes, containers)
    _trace_loop(loop, lambda state: run_while(state, lambda: truth(test(region)).ir_value(), lambda: body(region)))
    return None


def _trace_loop(loop: Loop, trace: Callable[[LoopState], None]) -> None:
    """Trace a loop, again as long as its body turns out to change more in place than was carried."""
    in_place = InPlace()
    while True:
        state = LoopState(loop, in_place)
        try:
            return trace(state)
        except ChangedInPlace as change:
            state.rollback()
            in_place = in_place | change.found
        except BaseException:
            state.rollback()
            raise


class _Probe:
    """Runs the test of a `while` to see whether it is a constant; if not, as if it had not been run."""

    def __init__(self, region: Region, test: Callable[[Region], Any], body: Body, carried: Names, dead: Names) -> None:
        self.test = test
        variables = Variables(region.host, test, body)
        places = variables.places((*carried, *dead))
        self.before = [(place, place.get()) for place in places]
        self.watch = mutable_state.Watch(variables, {id(variables.cells[name]) for name in (*carried, *dead)})

    def run(self, region: Region) -> Any:
        with blocks.scratch() as block:
            condition = self.test(region)
        if not is_dynamic(condition):
            blocks.splice(block)
            return condition
        blocks.discard(block)
        for place, value in self.before:
            place.set(value)
        changed = self.watch.changed(self.watch.save())
        self.watch.restore({key: self.watch.before[key] for key in changed})
        self._refuse_lost_items()
        return condition

    def _refuse_lost_items(self) -> None:
        """An iterator that the test moved on does not go back."""
        for key in self.watch.changed(self.watch.save()):
            raise container_change(*self.watch.objects[key], here(), "changes")


def _endless() -> CompileError:
    return CompileError(
        f"a `while` that Python runs while the program is compiled made {_TRACED_ITERATIONS:,} iterations",
        location=user_location(),
        hint="let its condition depend on a runtime value, for example a counter that starts as `cutlass.Int32(0)`",
    )


def with_(around: Around, manager: Any, body: Body, carried: Names, dead: Names) -> Exit | None:
    """`with manager as value: body(value)`.

    A manager with `__tw_region__ = True` stands for a runtime `if`: `__tw_predicate__()` gives its condition.
    """
    if active() and getattr(type(manager), "__tw_region__", False):
        region = Region("with", True, around)
        predicate = truth(manager.__tw_predicate__()).ir_value()
        branch = Branch(predicate, Variables(region.host, body), carried, dead, here())
        branch.run(lambda: body(region, manager), None)
        return None
    region = Region("with", False, around)
    signal = None
    with manager as value:
        signal = body(region, value)
    return signal
