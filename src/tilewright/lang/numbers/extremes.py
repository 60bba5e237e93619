"""The least and the greatest of some numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, is_number, operate


def minimum(*values: Any) -> Any:
    """The least of some numbers (or of one iterable of them), in their common type; a NaN gives the others."""
    return functools.reduce(lambda left, right: _extreme("min", min, left, right), _several(values))


def maximum(*values: Any) -> Any:
    """The greatest of some numbers (or of one iterable of them), in their common type; a NaN gives the others."""
    return functools.reduce(lambda left, right: _extreme("max", max, left, right), _several(values))


def _several(values: tuple[Any, ...]) -> tuple[Any, ...]:
    items = tuple(values[0]) if len(values) == 1 and not is_number(values[0]) else values
    if not items:
        raise CompileError("min and max take at least one number", location=user_location(2))
    return items


def _with_sign(number: float) -> tuple[float, float]:
    """Orders numbers as `min` and `max` of IEEE 754-2019 do: -0.0 is below 0.0."""
    return number, math.copysign(1.0, number) if isinstance(number, float) else 0.0


def _extreme(name: str, fold: Callable[..., Any], left: object, right: object) -> Numeric:
    result = operate(name, lambda a, b: b if a != a else a if b != b else fold(a, b, key=_with_sign), left, right)
    if result is NotImplemented:
        raise CompileError(
            f"{name} of {type(left).__name__} and {type(right).__name__}",
            location=user_location(),
            hint="it takes numbers; of the elements of two values it is `cute.where(a > b, a, b)`",
        )
    return result
