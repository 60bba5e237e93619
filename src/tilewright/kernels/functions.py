"""The functions of `elementwise` on values of the language: vectors of the type in which they are computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tilewright.cute as cute


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + cute.exp(-x))


def _maximum(a: Any, b: Any) -> Any:
    return cute.where((a > b) | (a != a), a, b)


def _minimum(a: Any, b: Any) -> Any:
    return cute.where((a < b) | (a != a), a, b)


def _abs(x: Any) -> Any:
    return cute.math.abs(x) if x.dtype.is_float or x.dtype.signed else x


def _relu(x: Any) -> Any:
    return cute.where((x > 0) | (x != x), x, cute.zeros_like(x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "copy": lambda x: x,
    "neg": lambda x: -x,
    "abs": _abs,
    "exp": lambda x: cute.exp(x),
    "log": lambda x: cute.log(x),
    "sqrt": lambda x: cute.sqrt(x),
    "rsqrt": lambda x: cute.rsqrt(x),
    "tanh": lambda x: cute.tanh(x),
    "sigmoid": _sigmoid,
    "relu": _relu,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1.0 + cute.erf(x * (1 / math.sqrt(2)))),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "maximum": _maximum,
    "minimum": _minimum,
    "fma": lambda a, b, c: a * b + c,
}
"""By name; a function's number of parameters is that of its inputs."""

OF_FLOATS = ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "div")
"""Those that give floats of integers."""
