"""The functions of compute nodes, by EVT's names, on `TensorSSA`s of the type in which the node computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tilewright.cute as cute

LOG2_E = math.log2(math.e)


def _maximum(a: Any, b: Any) -> Any:
    return cute.where((a > b) | (a != a), a, b) if a.dtype.is_float else cute.where(a > b, a, b)


def _minimum(a: Any, b: Any) -> Any:
    return cute.where((a < b) | (a != a), a, b) if a.dtype.is_float else cute.where(a < b, a, b)


def _relu(x: Any) -> Any:
    return _maximum(x, cute.zeros_like(x))


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + cute.exp(-x))


def _hardswish(x: Any) -> Any:
    clamped = _minimum(_maximum(x + 3.0, cute.zeros_like(x)), cute.full_like(x, 6.0))
    return x * clamped * (1 / 6)


def _abs(x: Any) -> Any:
    return cute.math.abs(x) if x.dtype.is_float or x.dtype.signed else x


def _quotient(a: Any, b: Any) -> Any:
    return a / b if a.dtype.is_float else a // b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "identity": lambda x: x,
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "multiplies": lambda a, b: a * b,
    "divides": _quotient,
    "negate": lambda x: -x,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply_add": lambda a, b, c: a * b + c,
    "abs": _abs,
    "exp": lambda x: cute.exp(x),
    "log": lambda x: cute.log(x),
    "sqrt": lambda x: cute.sqrt(x),
    "rsqrt": lambda x: cute.rsqrt(x),
    "relu": _relu,
    "tanh": lambda x: cute.tanh(x),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "hardswish": _hardswish,
    "gelu": lambda x: 0.5 * x * (1.0 + cute.erf(x * (1 / math.sqrt(2)))),
}
"""A function's number of parameters is that of its node's inputs."""


def converted(value: Any, dtype: Any) -> Any:
    """A value in the element type of what it is stored to.

    Floats become integers by rounding to the nearest, of two to the even one, and saturate at the type's limits; NaN
    becomes 0. Floats beyond the range of a narrow one become its greatest.
    """
    if value.dtype is dtype:
        return value
    if value.dtype.is_float and not dtype.is_float and dtype is not cute.Boolean:
        return cute.math.roundeven(value).to(dtype)
    return value.to(dtype)
