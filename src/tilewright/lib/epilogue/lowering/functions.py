"""What the functions of compute nodes are in a kernel: on `TensorSSA`s of the type in which the node computes.

The names are those of `lib.epilogue.functions`, which has the references.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tilewright.cute as cute


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
    "round": lambda x: cute.math.roundeven(x) if x.dtype.is_float else x,
    "greater": lambda a, b: (a > b).to(a.dtype),
    "greater_equal": lambda a, b: (a >= b).to(a.dtype),
    "equal": lambda a, b: (a == b).to(a.dtype),
    "not_equal": lambda a, b: (a != b).to(a.dtype),
    "select": lambda c, a, b: cute.where(c != 0, a, b),
    "relu": _relu,
    "tanh": lambda x: cute.tanh(x),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "hardswish": _hardswish,
    "gelu": lambda x: 0.5 * x * (1.0 + cute.erf(x * (1 / math.sqrt(2)))),
}
"""By name; a function's number of parameters is that of its node's inputs."""


def register_device_function(name: str, function: Callable[..., Any]) -> None:
    """Let kernels compute the epilogue function `name` by a function of `TensorSSA`s."""
    FUNCTIONS[name] = function


def converted(value: Any, dtype: Any) -> Any:
    """A value in the element type of what it is stored to.

    Floats become integers by rounding to the nearest, of two to the even one, and saturate at the type's limits; NaN
    becomes 0, or sets the highest bit alone where either type has 64 bits. Floats beyond the range of an 8-bit float
    become the finite number of greatest magnitude.
    """
    if value.dtype is dtype:
        return value
    if value.dtype.is_float and not dtype.is_float and dtype is not cute.Boolean:
        return cute.math.roundeven(value).to(dtype)
    return value.to(dtype)
