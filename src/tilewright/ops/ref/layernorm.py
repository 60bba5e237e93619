"""LayerNorm over the last dimension, by its definition: in float32, or float64 for float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ops.ref.precision import computed, numpy_computed, optional


def moments(x: Any, eps: float) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) of each row; the variance is that of all its elements."""
    wide = computed(x)
    return wide.mean(-1), (wide.var(-1, unbiased=False) + eps).rsqrt()


def layernorm(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> tuple[Any, Any, Any, Any]:
    """The norm of x + residual, times weight, plus bias; x + residual; mean; 1 / deviation."""
    total = computed(x) + optional(residual, computed, 0)
    mean, rstd = moments(total, eps)
    normal = (total - mean[..., None]) * rstd[..., None]
    out = normal * optional(weight, computed, 1) + optional(bias, computed, 0)
    return out.to(x.dtype), total.to(x.dtype), mean, rstd


def layernorm_backward(grad: Any, grad_total: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias, where x is what was normed, and grad_total a gradient that x has besides."""
    slope, factor = computed(grad), computed(rstd)[..., None]
    normal = (computed(x) - computed(mean)[..., None]) * factor
    scaled = slope * optional(weight, computed, 1)
    along = (scaled * normal).mean(-1, keepdim=True)
    dx = factor * (scaled - scaled.mean(-1, keepdim=True) - normal * along) + optional(grad_total, computed, 0)
    rows = tuple(range(x.ndim - 1))
    return dx.to(x.dtype), (slope * normal).sum(rows) if rows else slope * normal, slope.sum(rows) if rows else slope


def numpy_layernorm(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> tuple[Any, Any, Any, Any]:
    """`layernorm` of arrays of NumPy."""
    total = numpy_computed(x) + optional(residual, numpy_computed, 0)
    mean, rstd = total.mean(-1), 1 / np.sqrt(total.var(-1) + eps)
    normal = (total - mean[..., None]) * rstd[..., None]
    out = normal * optional(weight, numpy_computed, 1) + optional(bias, numpy_computed, 0)
    return out.astype(x.dtype), total.astype(x.dtype), mean, rstd


def numpy_layernorm_backward(
    grad: Any, grad_total: Any, x: Any, weight: Any, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """`layernorm_backward` of arrays of NumPy."""
    slope, factor = numpy_computed(grad), numpy_computed(rstd)[..., None]
    normal = (numpy_computed(x) - numpy_computed(mean)[..., None]) * factor
    scaled = slope * optional(weight, numpy_computed, 1)
    along = (scaled * normal).mean(-1, keepdims=True)
    dx = factor * (scaled - scaled.mean(-1, keepdims=True) - normal * along)
    dx = dx + optional(grad_total, numpy_computed, 0)
    rows = tuple(range(x.ndim - 1))
    return dx.astype(x.dtype), (slope * normal).sum(rows), slope.sum(rows)
