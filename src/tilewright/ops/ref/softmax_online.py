"""Softmax over the last dimension, by its definition: in float32, or float64 for float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ops.ref.precision import computed, numpy_computed


def softmax_online(x: Any) -> Any:
    """exp(x - max) / sum(exp(x - max)) over the last dimension of a tensor of PyTorch."""
    wide = computed(x)
    powers = (wide - wide.amax(-1, keepdim=True)).exp()
    return (powers / powers.sum(-1, keepdim=True)).to(x.dtype)


def softmax_online_backward(grad: Any, y: Any) -> Any:
    """The gradient of x, given that of y = softmax(x): y * (grad - sum(grad * y))."""
    wide, result = computed(grad), computed(y)
    return (result * (wide - (wide * result).sum(-1, keepdim=True))).to(y.dtype)


def numpy_softmax_online(x: Any) -> Any:
    """`softmax_online` of an array of NumPy."""
    wide = numpy_computed(x)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(x.dtype)


def numpy_softmax_online_backward(grad: Any, y: Any) -> Any:
    """`softmax_online_backward` of arrays of NumPy."""
    wide, result = numpy_computed(grad), numpy_computed(y)
    return (result * (wide - (wide * result).sum(-1, keepdims=True))).astype(y.dtype)
