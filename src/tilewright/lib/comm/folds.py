"""What collectives fold with: an operation and a number type, in the type in which participants compute.

Integers of 8 and 16 bits and Booleans are folded in 32 bits, Float16 and BFloat16 in Float32, rounded once at the end.
NaN and -0.0 are NumPy's: `min` and `max` give NaN where one is, and -0.0 plus -0.0 is -0.0. Every fold commutes bit for
bit, so participants that fold in different orders of two still agree: sums and products are instructions of their own,
which no compiler joins with what stands around them, and a NaN is the same NaN everywhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.lang.collective_values import ops_of
from tilewright.lang.control.generate import select_
from tilewright.lang.math import extreme
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from tilewright.lang.nvgpu.instructions import instruction

_COMPUTING: dict[type[Numeric], type[Numeric]] = {
    Boolean: Uint32, Int8: Int32, Int16: Int32, Int32: Int32, Int64: Int64, Uint8: Uint32, Uint16: Uint32,
    Uint32: Uint32, Uint64: Uint64, Float16: Float32, BFloat16: Float32, Float32: Float32, Float64: Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Fold:
    """One operation on numbers of `dtype`."""

    op: str
    dtype: type[Numeric]

    @property
    def computing(self) -> type[Numeric]:
        """The type in which participants compute and exchange."""
        return _COMPUTING[self.dtype]

    @property
    def identity(self) -> Numeric:
        """What changes no number: for participants that have none. (Of floats -0.0 is, +0.0 is not.)"""
        cls = self.computing
        if self.op in ("min", "max"):
            return self.neutral
        if self.op == "add" and cls.is_float:
            return cls(-0.0)
        return self.neutral

    @property
    def neutral(self) -> Numeric:
        """What an exclusive scan begins with: 0, 1, the greatest or the least number, all bits."""
        cls = self.computing
        facts = self.dtype.facts
        least, most = (-math.inf, math.inf) if cls.is_float else (facts.min, facts.max)
        value = {"add": 0, "mul": 1, "min": most, "max": least, "and": -1, "or": 0, "xor": 0}[self.op]
        if self.op == "and" and not cls.facts.min:
            value = cls.facts.max
        return cls(value)

    def lift(self, number: Numeric) -> Numeric:
        """A number of `dtype` in the type in which participants compute."""
        return number if type(number) is self.computing else self.computing(number)

    def lower(self, number: Numeric) -> Numeric:
        """A result in `dtype`."""
        if self.computing is Float64:  # whose instructions keep the bits of one of two NaNs
            number = select_(number != number, Float64(math.nan), number)
        if self.dtype is Boolean:
            return Boolean(number != 0)
        return number if self.dtype is self.computing else self.dtype(number)

    def __call__(self, a: Any, b: Any) -> Any:
        """Two numbers, or what two participants have so far, as one."""
        return _FOLDS[self.op](a, b)


def _rounded(name: str) -> Callable[[Any, Any], Any]:
    """`add` or `mul`: of floats an instruction that is not fused with others."""

    def fold(a: Any, b: Any) -> Any:
        cls = type(a)
        if not cls.is_float:
            return a + b if name == "add" else a * b
        return instruction(f"{name}.rn.f{cls.width} $0, $1, $2;", (a, b), result=cls, pure=True)

    return fold


_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _rounded("add"),
    "mul": _rounded("mul"),
    "min": lambda a, b: extreme("min", a, b, True),
    "max": lambda a, b: extreme("max", a, b, True),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def folds_of(x: Any, op: Any, numbers: Sequence[Numeric]) -> list[Fold]:
    """The fold of each number; see `ops_of`."""
    return [Fold(kind, type(number)) for kind, number in zip(ops_of(x, op, numbers), numbers, strict=True)]


def tree(items: list[Any], fold: Callable[[Any, Any], Any]) -> Any:
    """The items folded pairwise."""
    while len(items) > 1:
        pairs = [fold(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        items = pairs + items[len(items) // 2 * 2 :]
    return functools.reduce(fold, items)
