"""What reductions compute: neutral elements, how two numbers combine, and how they combine in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright.cute as cute
from tilewright.cute import Float32, Float64, Numeric

NAMES = ("sum", "max", "min")


@dataclass(frozen=True)
class Fold:
    """The reduction `name`, one of `NAMES`, of numbers of type `dtype`. A NaN among the numbers is the result."""

    name: str
    dtype: type[Numeric]

    @property
    def neutral(self) -> Any:
        """The number that changes no result."""
        if self.name == "sum":
            return self.dtype(0)
        lowest = self.name == "max"
        if self.dtype.is_float:
            return self.dtype(-math.inf if lowest else math.inf)
        bits = self.dtype.width - (1 if self.dtype.signed else 0)
        return self.dtype((-(1 << bits) if self.dtype.signed else 0) if lowest else (1 << bits) - 1)

    def __call__(self, a: Any, b: Any) -> Any:
        """Both numbers as one."""
        if self.name == "sum":
            return a + b
        if self.dtype is Float32:
            return (cute.arch.fmax if self.name == "max" else cute.arch.fmin)(a, b, nan=True)
        wins = a > b if self.name == "max" else a < b
        return _select(wins | (a != a) if self.dtype is Float64 else wins, a, b)

    def tree(self, numbers: Sequence[Any]) -> Any:
        """The numbers folded pairwise, in an order that is always the same."""
        items = list(numbers)
        while len(items) > 1:
            pairs = [self(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
            items = pairs + items[len(items) // 2 * 2 :]
        return items[0]

    def into_memory(self, pointer: Any, number: Any) -> None:
        """Fold a number into memory that other blocks fold into at the same time."""
        floating = {"max": cute.arch.atomic_fmax, "min": cute.arch.atomic_fmin}
        whole = {"sum": cute.arch.atomic_add, "max": cute.arch.atomic_max, "min": cute.arch.atomic_min}
        (floating if self.dtype.is_float and self.name != "sum" else whole)[self.name](pointer, number)


@cute.jit
def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b
