"""How a runtime `for` counts: Python's meaning of start, stop and step, without overflow."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.control.ranges import range as Range
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Integer, as_numeric, common_type
from tilewright.lang.printing.runtime_print import assert_

if TYPE_CHECKING:
    from mlir import ir


@dataclass
class Counter:
    """The `scf.for` runs over `bounds`; `index` gives the user's index; `trips` is the trip count where known."""

    dtype: Any
    bounds: tuple[ir.Value, ir.Value, ir.Value]
    index: Callable[[ir.Value], Any]
    trips: int | None
    unsigned: bool


def counter(loop: Range) -> Counter:
    """The counter of a range.

    A step of 1 counts from start to stop itself. Other steps count iterations, since `index + step` may overflow; the
    trip count is ceil(|stop - start| / |step|), computed without sign. A step of zero at run time is an error where
    assertions are checked (host code, and device code with `--enable-assertions`), else it makes no iteration.
    """
    dtype = index_type(loop.start, loop.stop, loop.step)
    start, stop, step = (dtype(bound) for bound in (loop.start, loop.stop, loop.step))
    if step.is_static and step.value == 0:
        raise CompileError("the step of `range` is zero", location=user_location(), hint="a loop must count up or down")
    if step.is_static and step.value == 1:
        return _count_by_one(dtype, start, stop)
    if not step.is_static and trace.tracing() and trace.current().checks:
        assert_(step != 0, "the step of `range` is zero")
    return _count_iterations(dtype, start, stop, step)


def index_type(*bounds: Any) -> Any:
    """The type of the index: that of the typed bounds, at least 32 bits; Python numbers adapt where they fit."""
    literals = [bound for bound in bounds if isinstance(bound, int)]
    dtype: Any = None
    for found in (type(as_numeric(bound)) for bound in bounds if not isinstance(bound, int)):
        if found is not Boolean and not issubclass(found, Integer):
            raise CompileError(
                f"`range` takes integers, got {found}", location=user_location(), hint="convert the bound with Int32"
            )
        dtype = found if dtype is None else common_type(dtype, found)
    if dtype is None or dtype is Boolean or dtype.width < 32:
        dtype = Int32
    if all(dtype.min <= literal <= dtype.max for literal in literals):
        return dtype
    if dtype.width > 32:
        raise CompileError(
            f"a bound of `range` does not fit {dtype}", location=user_location(), values={"bounds": bounds}
        )
    return Int64


def _trips(start: Any, stop: Any, step: Any) -> int | None:
    if start.is_static and stop.is_static and step.is_static:
        return len(builtins.range(start.value, stop.value, step.value))
    return None


def _with_facts(dtype: Any, value: ir.Value, start: Any, stop: Any, step: Any) -> Any:
    """The index with what is known about it: a divisor, and a bound when it cannot be negative."""
    divisibility = math.gcd(_divisor(start), _divisor(step))
    rises = step.is_static and step.value > 0
    bound = None
    if rises and (start.value >= 0 if start.is_static else start.bound is not None):
        highest = stop.value if stop.is_static else dtype.max if stop.bound is None else stop.bound
        bound = max(highest - 1, 0)
    return dtype.from_ir(value).assuming(divisibility=max(divisibility, 1), bound=bound)


def _divisor(number: Any) -> int:
    return int(abs(number.value) if number.is_static else number.divisibility)


def _count_by_one(dtype: Any, start: Any, stop: Any) -> Counter:
    one = dtype(1)
    return Counter(
        dtype=dtype,
        bounds=(start.ir_value(), stop.ir_value(), one.ir_value()),
        index=lambda value: _with_facts(dtype, value, start, stop, one),
        trips=_trips(start, stop, one),
        unsigned=not dtype.signed,
    )


def _count_iterations(dtype: Any, start: Any, stop: Any, step: Any) -> Counter:
    known = _trips(start, stop, step)
    low, stride = start.ir_value(), step.ir_value()
    fits = known is not None and known <= dtype.max
    iterations = dtype(known).ir_value() if fits else _trip_count(dtype, start, stop, step)

    def index(value: ir.Value) -> Any:
        offset = arithmetic.binary("mul", "i", value, stride)
        return _with_facts(dtype, arithmetic.binary("add", "i", low, offset), start, stop, step)

    bounds = (dtype(0).ir_value(), iterations, dtype(1).ir_value())
    unsigned = not (fits or _few_iterations(start, step)) or not dtype.signed
    return Counter(dtype=dtype, bounds=bounds, index=index, trips=known, unsigned=unsigned)


def _few_iterations(start: Any, step: Any) -> bool:
    """True when the trip count surely fits the signed type: 2^32 over 3 does, and so does a span from 0 up."""
    if not step.is_static:
        return False
    from_zero = start.value >= 0 if start.is_static else start.bound is not None
    return abs(step.value) >= 3 or (step.value > 0 and from_zero)


def _trip_count(dtype: Any, start: Any, stop: Any, step: Any) -> ir.Value:
    """ceil(|stop - start| / |step|) where start lies before stop in the direction of step, else 0."""
    low, high, stride = start.ir_value(), stop.ir_value(), step.ir_value()
    if not dtype.signed or (step.is_static and step.value > 0):
        return _trip_count_up(dtype, low, high, stride)
    size = dtype(-step.value).ir_value() if step.is_static else arithmetic.negate("i", stride)
    down = _trip_count_up(dtype, high, low, size)
    if step.is_static:
        return down
    rising = arithmetic.compare("gt", "i", stride, dtype(0).ir_value())
    return arithmetic.select(rising, _trip_count_up(dtype, low, high, stride), down)


def _trip_count_up(dtype: Any, low: ir.Value, high: ir.Value, stride: ir.Value) -> ir.Value:
    zero, one = dtype(0).ir_value(), dtype(1).ir_value()
    span = arithmetic.binary("sub", "i", arithmetic.binary("sub", "i", high, low), one)
    if arithmetic.constant_of(stride) is None:  # a step of zero must not divide
        stride = arithmetic.binary("max", "u", stride, one)
    iterations = arithmetic.binary("add", "i", arithmetic.binary("floordiv", "u", span, stride), one)
    return arithmetic.select(arithmetic.compare("lt", dtype.facts.arithmetic_kind, low, high), iterations, zero)
