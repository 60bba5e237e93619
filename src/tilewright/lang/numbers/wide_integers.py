"""Shifts of integers of 128 bits by runtime amounts, for which LLVM has no code: from shifts of their halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types

if TYPE_CHECKING:
    from tilewright.ir.mlir import ir

_HALF = 64


def shift(op: str, left: ir.Value, amount: ir.Value) -> ir.Value:
    """`arith.shli`, `shrui` or `shrsi` of 128 bits, numbers or vectors, by an `amount` of 0 to 127."""
    low, high = halves(left)
    number = build.value("arith.trunci", low.type, (amount,))
    inside = _op("andi", number, _constant(_HALF - 1, low.type))
    rest = _op("subi", _constant(_HALF - 1, low.type), inside)
    sixth = _op("shrui", number, _constant(6, low.type))
    far = build.value("arith.trunci", _shaped(low.type, "i1"), (sixth,))  # 64 and more
    one, none = _constant(1, low.type), _constant(0, low.type)
    if op == "arith.shli":
        moved = _op("shli", low, inside)
        near = _op("ori", _op("shli", high, inside), _op("shrui", _op("shrui", low, one), rest))
        return join(_select(far, none, moved), _select(far, moved, near))
    moved = build.value(op, high.type, (high, inside))
    near = _op("ori", _op("shrui", low, inside), _op("shli", _op("shli", high, one), rest))
    filled = _op("shrsi", high, _constant(_HALF - 1, low.type)) if op == "arith.shrsi" else none
    return join(_select(far, moved, near), _select(far, filled, moved))


def halves(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The low and the high 64 bits."""
    half = _shaped(value.type, "i64")
    above = _op("shrui", value, _constant(_HALF, value.type))
    return build.value("arith.trunci", half, (value,)), build.value("arith.trunci", half, (above,))


def join(low: ir.Value, high: ir.Value) -> ir.Value:
    """128 bits of their halves."""
    whole = _shaped(low.type, "i128")
    above = _op("shli", build.value("arith.extui", whole, (high,)), _constant(_HALF, whole))
    return _op("ori", above, build.value("arith.extui", whole, (low,)))


def _op(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.value(f"arith.{name}", left.type, (left, right))


def _select(condition: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.value("arith.select", left.type, (condition, left, right))


def _constant(number: int, type_: ir.Type) -> ir.Value:
    return build.splat(number, type_) if isinstance(type_, mlir.ir.VectorType) else build.constant(number, type_)


def _shaped(type_: ir.Type, element: str) -> ir.Type:
    if isinstance(type_, mlir.ir.VectorType):
        return types.parse(f"vector<{'x'.join(map(str, type_.shape))}x{element}>")
    return types.parse(element)
