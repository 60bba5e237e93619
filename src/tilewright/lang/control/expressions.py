"""`and`, `or`, `not`, comparisons, conditional expressions and built-in functions on runtime values."""

from __future__ import annotations

import builtins
import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.ir.context import active
from tilewright.lang import leaves
from tilewright.lang.control import aliases
from tilewright.lang.control.branch import Branch
from tilewright.lang.control.ranges import range as Range
from tilewright.lang.control.variables import Variables
from tilewright.lang.leaves import holds_runtime, is_dynamic
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic
from tilewright.lang.numbers.numeric import (
    Boolean,
    Float,
    Float32,
    Float64,
    Int32,
    Integer,
    Numeric,
    as_numeric,
    common_type,
)

_CONTAINERS: tuple[type, ...] = (tuple, list, set, frozenset, dict, deque, type({}.keys()), type({}.values()))
Thunk = Callable[[None], Any]
Names = tuple[str, ...]
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "is_": operator.is_, "is_not": operator.is_not,
}  # fmt: skip


def truth(value: Any) -> Boolean:
    """The truth value of a number, dynamic or not."""
    return Boolean(as_numeric(value))


def here() -> SourceLocation:
    """The user's line that is running, for an error about it."""
    return user_location() or SourceLocation("<unknown>", 0)


def and_(host: Names, simple: tuple[bool, ...], first: Any, *rest: Thunk) -> Any:
    """`first and rest...`: Python's value while operands are constants, a Boolean from the first runtime one on."""
    return _short_circuit(host, False, simple, first, rest)


def or_(host: Names, simple: tuple[bool, ...], first: Any, *rest: Thunk) -> Any:
    """`first or rest...`."""
    return _short_circuit(host, True, simple, first, rest)


def _short_circuit(host: Names, decisive: bool, simple: Sequence[bool], value: Any, rest: Sequence[Thunk]) -> Any:
    for index, thunk in enumerate(rest):
        if is_dynamic(value):
            return _dynamic(host, decisive, simple[index:], value, rest[index:])
        if builtins.bool(value) is decisive:
            return value
        value = thunk(None)
    return value


def _dynamic(host: Names, decisive: bool, simple: Sequence[bool], left: Any, rest: Sequence[Thunk]) -> Any:
    left = truth(left)

    def right() -> Any:
        return _short_circuit(host, decisive, simple[1:], rest[0](None), rest[1:])

    if all(simple):
        return _combine(decisive, left, right())
    if decisive:
        return truth(run_branch(host, left, lambda: True, lambda: _as_boolean(right()), rest))
    return truth(run_branch(host, left, lambda: _as_boolean(right()), lambda: False, rest))


def _as_boolean(value: Any) -> Any:
    return truth(value) if is_dynamic(value) else builtins.bool(value)


def _combine(decisive: bool, left: Boolean, right: Any) -> Any:
    if not is_dynamic(right):
        return Boolean(decisive) if builtins.bool(right) is decisive else left
    return left | truth(right) if decisive else left & truth(right)


def run_branch(
    host: Names, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any], thunks: Sequence[Any]
) -> Any:
    """The value of the arm that `condition` picks at run time."""
    results: list[Any] = []
    branch = Branch(condition.ir_value(), Variables(host, *thunks), (), (), here())
    branch.run(then, otherwise, results.append)
    return results[0]


def not_(value: Any) -> Any:
    """`not value`; of a number of the language a Boolean, so that `~` of it is a Boolean too."""
    return ~truth(value) if isinstance(value, Numeric) or is_dynamic(value) else not value


def chain(
    host: Names, simple: tuple[bool, ...], operators: tuple[str, ...], left: Any, right: Any, *rest: Thunk
) -> Any:
    """`left op right op ...`: each operand is computed once, and only while the comparison may still be true."""
    result = compare(operators[0], left, right)
    if not rest:
        return result

    def following(_: None) -> Any:
        return chain(host, simple[1:], operators[1:], right, rest[0](None), *rest[1:])

    if not is_dynamic(result):
        return following(None) if result else result
    if all(simple[1:]):
        return _combine(False, truth(result), following(None))
    return truth(run_branch(host, truth(result), lambda: _as_boolean(following(None)), lambda: False, rest))


def compare(name: str, left: Any, right: Any) -> Any:
    """One comparison of a chain."""
    if name in ("in", "not in"):
        found = contains(left, right)
        return found if name == "in" else not_(found)
    return _OPERATORS[name](left, right)


def contains(value: Any, container: Any) -> Any:
    """`value in container`; with runtime values an `or` over the items, of a range a comparison with its bounds."""
    if isinstance(container, builtins.range) and is_dynamic(value):
        return _in_range(as_numeric(value), container)
    if isinstance(container, _CONTAINERS) or not hasattr(type(container), "__contains__"):
        items = list(container)
        if holds_runtime(value) or builtins.any(map(holds_runtime, items)):
            return any_(item is value or equal(item, value) for item in items)
        return value in (items if isinstance(container, Iterator) else container)
    return type(container).__contains__(container, value) if is_dynamic(value) else value in container


def equal(left: Any, right: Any) -> Any:
    """`left == right`, of tuples and lists item by item."""
    if not (isinstance(left, tuple | list) and isinstance(right, tuple | list)):
        return left == right
    if isinstance(left, tuple) is not isinstance(right, tuple) or len(left) != len(right):
        return False
    return all_(map(equal, left, right))


def not_equal(left: Any, right: Any) -> Any:
    """`left != right`, of tuples and lists item by item."""
    both = isinstance(left, tuple | list) and isinstance(right, tuple | list)
    return not_(equal(left, right)) if both else left != right


def _in_range(value: Numeric, items: builtins.range) -> Any:
    if not items:
        return False
    within = (
        (value >= items[0]) & (value <= items[-1]) if items.step > 0 else (value <= items[0]) & (value >= items[-1])
    )
    step = abs(items.step)
    if step == 1 and isinstance(value, Integer):
        return within
    return within & (value % step == items.start % step)


def contains_not(value: Any, container: Any) -> Any:
    """`value not in container`."""
    return not_(contains(value, container))


def ternary(host: Names, test: Any, then: Thunk, otherwise: Thunk, cheap: bool) -> Any:
    """`then if test else otherwise`: only the arm taken runs; arms that can't be noticed become a selection."""
    if not is_dynamic(test):
        return then(None) if test else otherwise(None)
    condition = truth(test)
    if not cheap:
        return run_branch(host, condition, lambda: then(None), lambda: otherwise(None), (then, otherwise))
    return _select(condition, then(None), otherwise(None))


def _select(condition: Boolean, then: Any, otherwise: Any) -> Any:
    try:
        structure = leaves.common(then, otherwise)
        left, right = structure.values(then), structure.values(otherwise)
    except leaves.TypeChange as change:
        raise CompileError(
            "the conditional expression has different types in its two arms",
            location=here(),
            values={"if true": change.expected, "if false": change.found},
            hint="convert the arms to one type",
        ) from None
    test = condition.ir_value()
    chosen = (arithmetic.select(test, a, b) for a, b in zip(left, right, strict=True))
    value = structure.build(chosen)
    aliases.note("the conditional expression", "if", here(), value, (then, otherwise))
    return value


def static_test(value: Any, what: str) -> Any:
    """The condition of a statement that only compile time can decide."""
    if not is_dynamic(value):
        return value
    hint = (
        "use `cute.testing.assert_` for what is checked at run time"
        if what == "assert"
        else "write it as an `if` statement"
    )
    raise CompileError(f"`{what}` on a value known only at run time", location=user_location(), hint=hint)


def _extreme(name: str, plain: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    single = len(arguments) == 1
    if single and not hasattr(type(arguments[0]), "__iter__"):
        return plain(*arguments, **keywords)
    operands = list(arguments[0]) if single else list(arguments)
    if "key" in keywords or not builtins.any(is_dynamic(item) for item in operands):
        return plain(operands, **keywords) if single else plain(*operands, **keywords)
    result, *others = operands
    for item in others:
        result = _pick(name, result, item)
    return result


def _pick(name: str, left: Any, right: Any) -> Any:
    """Python's choice: the left operand unless the right one is better; a NaN is never better."""
    if not is_dynamic(left) and not is_dynamic(right):
        return builtins.max(left, right) if name == "max" else builtins.min(left, right)
    dtype = _meeting_type(as_numeric(left), as_numeric(right), left, right)
    a, b = dtype(left), dtype(right)
    if issubclass(dtype, Integer):
        kind = dtype.facts.arithmetic_kind
        return dtype.from_ir(arithmetic.binary(name, kind, a.ir_value(), b.ir_value()))
    better = b > a if name == "max" else b < a
    return dtype.from_ir(arithmetic.select(better.ir_value(), b.ir_value(), a.ir_value()))


def _meeting_type(a: Numeric, b: Numeric, left: Any, right: Any) -> Any:
    if leaves.is_number(left) and leaves.is_number(right) and leaves.is_literal(left) != leaves.is_literal(right):
        structure = leaves.common(left, right)
        if isinstance(structure, leaves.Number):
            return structure.dtype
    return type(a) if type(a) is type(b) else common_type(type(a), type(b))


def max_(*arguments: Any, **keywords: Any) -> Any:
    """`max` that takes runtime numbers."""
    return _extreme("max", builtins.max, arguments, keywords)


def min_(*arguments: Any, **keywords: Any) -> Any:
    """`min` that takes runtime numbers."""
    return _extreme("min", builtins.min, arguments, keywords)


def any_(items: Any) -> Any:
    """`any` over values, some of which may be known only at run time."""
    return _fold(True, items)


def all_(items: Any) -> Any:
    """`all` over values, some of which may be known only at run time."""
    return _fold(False, items)


def _fold(decisive: bool, items: Any) -> Any:
    result: Any = not decisive
    for item in items:
        if not is_dynamic(item):
            if builtins.bool(item) is decisive:
                return decisive
            continue
        result = _combine(decisive, truth(item), result)
    return result


def bool_(value: Any = False) -> Any:
    """`bool` of any value."""
    return truth(value) if is_dynamic(value) else builtins.bool(value)


def int_(*arguments: Any, **keywords: Any) -> Any:
    """`int`; of a runtime float an Int32, truncated; of a runtime integer itself."""
    if len(arguments) != 1 or keywords or not is_dynamic(arguments[0]):
        return builtins.int(*arguments, **keywords)
    value = as_numeric(arguments[0])
    return value if isinstance(value, Integer) else Int32(value)


def float_(value: Any = 0.0) -> Any:
    """`float`; of a runtime number a Float32, of a Float64 itself."""
    if not is_dynamic(value):
        return builtins.float(value)
    value = as_numeric(value)
    return value if isinstance(value, Float) and type(value) in (Float32, Float64) else Float32(value)


_BUILTINS = {
    id(builtins.min): min_,
    id(builtins.max): max_,
    id(builtins.any): any_,
    id(builtins.all): all_,
    id(builtins.bool): bool_,
    id(builtins.int): int_,
    id(builtins.float): float_,
}


def builtin(function: Any) -> Any:
    """The version of a built-in function that takes runtime values; any other object is itself."""
    return _BUILTINS.get(id(function), function) if active() else function


def range_(function: Any) -> Any:
    """`range` in the head of a loop: a loop of run time while tracing."""
    return Range if function is builtins.range and active() else function
