"""Conditions of breakpoints: Python expressions that hold for some threads and not for others.

    thread == 5 and block == 2        numbers; also warp, lane, tid.x, ctaid.y
    %r3 > 17                          registers
    i == 3 and x < 0                  Python variables that are pinned

An expression is evaluated once for all threads that come by, on arrays with an element a thread: `and`, `or`, `not`
and chained comparisons are taken element by element.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.lanes import Array, Lanes

REGISTER = re.compile(r"%[A-Za-z_$][\w$]*")
_PREFIX = "register_"
_OPERATORS: dict[type[ast.boolop], type[ast.operator]] = {ast.And: ast.BitAnd, ast.Or: ast.BitOr}
_FUNCTIONS = {"abs": np.abs, "min": np.minimum, "max": np.maximum, "isnan": np.isnan, "isinf": np.isinf}
HINT = "thread == 5 and block == 2; %r3 > 17; i == 3 (a Python variable)"


class _Elementwise(ast.NodeTransformer):
    """`and`, `or`, `not` and chained comparisons as operations on arrays."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [_truth(self.visit(value)) for value in node.values]
        return _joined(values, _OPERATORS[type(node.op)]())

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Invert(), _truth(operand))
        return ast.UnaryOp(node.op, operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        terms = [self.visit(term) for term in (node.left, *node.comparators)]
        pairs: list[ast.expr] = [
            ast.Compare(left, [operator], [right])
            for left, operator, right in zip(terms[:-1], node.ops, terms[1:], strict=True)
        ]
        return _joined(pairs, ast.BitAnd())


def _truth(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("truth", ast.Load()), [node], [])


def _joined(values: list[ast.expr], operator: ast.operator) -> ast.expr:
    joined = values[0]
    for value in values[1:]:
        joined = ast.BinOp(joined, operator, value)
    return joined


@lru_cache(maxsize=256)
def compiled(text: str) -> tuple[CodeType, tuple[str, ...]]:
    """The code of an expression, and the names that it reads; registers have their percent sign.

    Raises:
        ArgumentError: it is no expression.
    """
    registers = {_PREFIX + name[1:].replace("$", "_dollar_"): name for name in REGISTER.findall(text)}
    plain = REGISTER.sub(lambda found: _PREFIX + found[0][1:].replace("$", "_dollar_"), text)
    try:
        tree = ast.parse(plain.strip(), mode="eval")
    except SyntaxError as error:
        raise ArgumentError(f"{text!r} is no condition: {error.msg}", hint=HINT) from error
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _FUNCTIONS.keys()
    code = compile(ast.fix_missing_locations(_Elementwise().visit(tree)), "<condition>", "eval")
    return code, tuple(sorted(registers.get(name, name) for name in names))


def evaluate(text: str, read: Callable[[str], Any]) -> Any:
    """The value of an expression; `read` gives the values of names.

    Raises:
        ArgumentError: it is no expression, or cannot be evaluated here.
    """
    code, names = compiled(text)
    values = {_PREFIX + n[1:].replace("$", "_dollar_") if n[0] == "%" else n: read(n) for n in names}
    scope = {"__builtins__": {}, "truth": lambda value: np.asarray(value, bool), **_FUNCTIONS, **values}
    try:
        with np.errstate(all="ignore"):
            return eval(code, scope)
    except Exception as error:  # whatever the user's expression raises
        raise ArgumentError(f"{text!r} cannot be evaluated here: {type(error).__name__}: {error}", hint=HINT) from error


class Axes:
    """`tid.x` and the like in an expression."""

    def __init__(self, lanes: Lanes, name: str) -> None:
        self._lanes, self._name = lanes, name

    def __getattr__(self, axis: str) -> Any:
        if axis not in ("x", "y", "z"):
            raise AttributeError(axis)
        return np.broadcast_to(self._lanes.special(f"{self._name}.{axis}"), (self._lanes.n,)).astype(np.int64)


NUMBERS: dict[str, Callable[[Lanes], Any]] = {
    "thread": lambda lanes: lanes.thread,
    "block": lambda lanes: lanes.block,
    "warp": lambda lanes: lanes.thread >> 5,
    "lane": lambda lanes: lanes.lane.astype(np.int64),
    "tid": lambda lanes: Axes(lanes, "tid"),
    "ctaid": lambda lanes: Axes(lanes, "ctaid"),
}
"""What every thread has."""


def widened(value: Any) -> Any:
    """Integers of registers as Python counts, so that a difference does not wrap round."""
    kind = np.asarray(value).dtype
    return np.asarray(value).astype(np.int64) if kind.kind in "iu" and kind.itemsize < 8 else value


def holds(text: str, lanes: Lanes, read: Callable[[str], Any]) -> Array:
    """For which threads a condition holds: positions among `lanes`.

    Raises:
        ArgumentError: as for `evaluate`.
    """

    def value(name: str) -> Any:
        return NUMBERS[name](lanes) if name in NUMBERS else widened(read(name))

    result = np.broadcast_to(np.asarray(evaluate(text, value), bool), (lanes.n,))
    return np.flatnonzero(result)
