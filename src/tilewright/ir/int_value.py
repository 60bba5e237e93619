"""Runtime integers inside passes: the layout algebra computes on them and leaves `arith` operations behind.

Values are extents, strides, coordinates and offsets; extents and strides are not negative, so division is unsigned.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewright.ir import build, types
from tilewright.layout.dynamic import DynamicInt

if TYPE_CHECKING:
    from mlir import ir


class IntValue(DynamicInt):
    """An i32 or i64 value of which `divisibility` is a divisor."""

    def __init__(self, value: ir.Value, divisibility: int = 1) -> None:
        self.value = value
        self._divisibility = divisibility

    @property
    def divisibility(self) -> int:
        return self._divisibility

    @property
    def width(self) -> int:
        return int(self.value.type.width)

    def same_as(self, other: object) -> bool:
        return isinstance(other, IntValue) and self.value == other.value

    def __str__(self) -> str:
        facts = ["i64"] if self.width == 64 else []
        facts += [f"div={self.divisibility}"] if self.divisibility > 1 else []
        return f"?{{{' '.join(facts)}}}" if facts else "?"

    def __add__(self, other: IntValue | int) -> IntValue:
        if isinstance(other, int) and other == 0:
            return self
        return IntValue(_emit("arith.addi", self, other), math.gcd(self.divisibility, _divisor(other)) or 1)

    __radd__ = __add__

    def __sub__(self, other: IntValue | int) -> IntValue:
        if isinstance(other, int) and other == 0:
            return self
        return IntValue(_emit("arith.subi", self, other), math.gcd(self.divisibility, _divisor(other)) or 1)

    def __rsub__(self, other: int) -> IntValue:
        return IntValue(_emit("arith.subi", other, self), math.gcd(self.divisibility, _divisor(other)) or 1)

    def __mul__(self, other: IntValue | int) -> IntValue | int:
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        return IntValue(_emit("arith.muli", self, other), self.divisibility * _divisor(other))

    __rmul__ = __mul__

    def times(self, factor: IntValue | int) -> IntValue | int:
        """The product in 64 bits: nothing is known of what it may be."""
        return widen(self) * widen(factor)

    def __floordiv__(self, other: IntValue | int) -> IntValue:
        if not isinstance(other, int):
            return IntValue(_emit("arith.divui", self, other))
        if other == 1:
            return self
        exact = self.divisibility % other == 0
        return IntValue(_emit("arith.divui", self, other), self.divisibility // other if exact else 1)

    def __rfloordiv__(self, other: int) -> IntValue:
        return IntValue(_emit("arith.divui", other, self))

    def __mod__(self, other: IntValue | int) -> IntValue | int:
        if isinstance(other, int) and self.divisibility % other == 0:
            return 0
        return IntValue(_emit("arith.remui", self, other), math.gcd(self.divisibility, _divisor(other)) or 1)

    def __rmod__(self, other: int) -> IntValue:
        return IntValue(_emit("arith.remui", other, self))

    def __and__(self, other: IntValue | int) -> IntValue:
        return IntValue(_emit("arith.andi", self, other), max(_power(self), _power(other)))

    __rand__ = __and__

    def __xor__(self, other: IntValue | int) -> IntValue:
        return IntValue(_emit("arith.xori", self, other), math.gcd(_power(self), _power(other)) or 1)

    __rxor__ = __xor__

    def __rshift__(self, other: int) -> IntValue:
        exact = self.divisibility % (1 << other) == 0
        return IntValue(_emit("arith.shrui", self, other), self.divisibility >> other if exact else 1)

    def __lshift__(self, other: int) -> IntValue:
        return IntValue(_emit("arith.shli", self, other), self.divisibility << other)


def widen(value: IntValue | int) -> IntValue | int:
    """The same number in 64 bits (sign-extended: a coordinate may lie before the view)."""
    if isinstance(value, int) or value.width == 64:
        return value
    return IntValue(build.pure("arith.extsi", types.parse("i64"), (value.value,)), value.divisibility)


def materialize(value: IntValue | int, width: int) -> ir.Value:
    """An MLIR value of `width` bits."""
    if isinstance(value, int):
        return build.constant(value, types.parse(f"i{width}"))
    if value.width < width:
        return build.pure("arith.extsi", types.parse(f"i{width}"), (value.value,))
    if value.width > width:
        return build.pure("arith.trunci", types.parse(f"i{width}"), (value.value,))
    return value.value


def whole_groups(offset: IntValue | int, bits: int) -> IntValue | int:
    """An offset of elements of `bits` bits known to fill whole bytes, written so that later passes see it."""
    group = 8 // math.gcd(bits, 8)
    if isinstance(offset, int) or group == 1 or offset.divisibility % group:
        return offset
    return offset // group * group


def _divisor(value: IntValue | int) -> int:
    return abs(value) if isinstance(value, int) else value.divisibility


def _power(value: IntValue | int) -> int:
    """The greatest power of two that is known to divide it; 0 for 0."""
    divisor = _divisor(value)
    return divisor & -divisor


def _emit(name: str, left: IntValue | int, right: IntValue | int) -> ir.Value:
    width = max(item.width for item in (left, right) if isinstance(item, IntValue))
    a, b = materialize(left, width), materialize(right, width)
    return build.pure(name, a.type, (a, b))
