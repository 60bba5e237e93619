"""Elementwise functions by their definition, in PyTorch and in NumPy; both compute in the type of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch


def _torch_functions() -> dict[str, Callable[..., Any]]:
    functional = torch.nn.functional
    return {
        "copy": torch.clone, "neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log,
        "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
        "relu": torch.relu, "silu": functional.silu, "gelu": functional.gelu, "add": torch.add, "sub": torch.sub,
        "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
        "fma": lambda a, b, c: a * b + c,
    }  # fmt: skip


_TORCH: dict[str, Callable[..., Any]] = {} if torch is None else _torch_functions()
_NUMPY: dict[str, Callable[..., Any]] = {
    "copy": np.copy, "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "add": np.add,
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum,
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def elementwise(op: str, inputs: Any) -> Any:
    """The function `op` of tensors of PyTorch of one dtype, by PyTorch's own operators, which have gradients."""
    return _TORCH[op](*inputs)


def numpy_elementwise(op: str, inputs: Any) -> Any:
    """The function `op` of arrays of NumPy of one dtype."""
    return _erf_gelu(*inputs) if op == "gelu" else _NUMPY[op](*inputs)


def _erf_gelu(x: Any) -> Any:
    """x/2 (1 + erf(x / sqrt 2)), with the error function of the standard library."""
    wide = x.astype(np.float64)
    return (wide / 2 * (1 + np.vectorize(math.erf, otypes=[np.float64])(wide / math.sqrt(2)))).astype(x.dtype)
