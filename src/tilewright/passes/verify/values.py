"""Verifiers of values: folds, conversions, approximate functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.ir import mlir, types
from tilewright.passes.rules.values import COMBINE
from tilewright.passes.verify.operation import Invalid, OpSummary, vector_of
from tilewright.passes.verify.table import verifies

if TYPE_CHECKING:
    from mlir import ir

_APPROX = ("rcp", "rsqrt", "sqrt", "exp2", "log2", "sin", "cos", "tanh")


@verifies("reduce")
def _reduce(op: OpSummary) -> None:
    (value,), (init,) = op.groups
    shape, folds = op.numbers("shape"), op.numbers("profile")
    element, length = vector_of(value)
    if len(shape) != len(folds) or any(fold not in (0, 1) for fold in folds):
        raise Invalid("the profile has a 1 for each mode that is folded, a 0 for others", shape=shape, profile=folds)
    if length != math.prod(shape) or any(extent < 1 for extent in shape):
        raise Invalid(f"a vector of {length} elements, and a shape of {math.prod(shape)}", value=value, shape=shape)
    if init != element:
        raise Invalid("init is of the type of the elements", value=value, init=init)
    kept = math.prod(extent for extent, fold in zip(shape, folds, strict=True) if not fold)
    result, found = vector_of(op.results[0])
    if result != element or found not in ((0, 1) if all(folds) else (kept,)):
        raise Invalid(f"the fold leaves {kept} elements of {element}", result=op.results[0], profile=folds)
    check_kind(op, element)


def check_kind(op: OpSummary, element: ir.Type) -> None:
    """The kind of a fold must be known, and be one of `element`."""
    kind = op.one_of("kind", tuple(COMBINE))
    if (kind[-1] == "f") == isinstance(element, mlir.ir.IntegerType):
        raise Invalid(f"kind {kind!r} does not fold {element}", element=element)


@verifies("join")
def _join(op: OpSummary) -> None:
    element, length = vector_of(op.results[0])
    parts = [vector_of(type_) for type_ in op.groups[0]]
    if not length:
        raise Invalid("parts join to a vector", result=op.results[0])
    if any(part != element for part, _ in parts):
        raise Invalid("the parts have elements of the result's type", result=op.results[0], parts=op.groups[0])
    if sum(max(count, 1) for _, count in parts) != length:
        raise Invalid(f"the parts have {sum(max(count, 1) for _, count in parts)} elements", result=op.results[0])


@verifies("convert")
def _convert(op: OpSummary) -> None:
    names = [op.one_of(name, tuple(types.ELEMENT)) for name in ("source", "target")]
    (value, before), (result, after) = _elements(op.groups[0][0]), _elements(op.results[0])
    if before != after:
        raise Invalid("a conversion keeps the number of elements", value=op.groups[0][0], result=op.results[0])
    for what, name, type_ in (("value", names[0], value), ("result", names[1], result)):
        if type_ != types.element(name):
            raise Invalid(f"the {what} is not a {name}", got=type_, expected=types.ELEMENT[name])


def _elements(type_: ir.Type) -> tuple[ir.Type, Sequence[int]]:
    """Element type and extents of a vector or tile; of another type itself and none."""
    if isinstance(type_, mlir.ir.RankedTensorType):
        return type_.element_type, list(type_.shape)
    element, length = vector_of(type_)
    return element, [length] if length else []


@verifies("approx")
def _approx(op: OpSummary) -> None:
    op.one_of("kind", _APPROX)
    if str(op.groups[0][0]) != "f32" or op.results[0] != op.groups[0][0]:
        raise Invalid("approximate functions take and give an f32", value=op.groups[0][0], result=op.results[0])
