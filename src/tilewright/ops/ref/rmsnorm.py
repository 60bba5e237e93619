"""RMSNorm over the last dimension, by its definition: in float32, or float64 for float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ops.ref.precision import computed, numpy_computed, optional


def inverse_rms(x: Any, eps: float) -> Any:
    """1 / sqrt(mean(x²) + eps) of each row."""
    return (computed(x).square().mean(-1) + eps).rsqrt()


def rmsnorm(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> tuple[Any, Any, Any]:
    """(x + residual) / rms * weight + bias; x + residual; 1 / rms. Weight, bias and residual may be None."""
    total = computed(x) + optional(residual, computed, 0)
    rstd = (total.square().mean(-1) + eps).rsqrt()
    out = total * rstd[..., None] * optional(weight, computed, 1) + optional(bias, computed, 0)
    return out.to(x.dtype), total.to(x.dtype), rstd


def rmsnorm_backward(grad: Any, grad_total: Any, x: Any, weight: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias, where x is what was normed, and grad_total a gradient that x has besides."""
    slope, factor = computed(grad), computed(rstd)[..., None]
    normal = computed(x) * factor
    scaled = slope * optional(weight, computed, 1)
    dx = factor * (scaled - normal * (scaled * normal).mean(-1, keepdim=True))
    dx = dx + optional(grad_total, computed, 0)
    rows = tuple(range(x.ndim - 1))
    return dx.to(x.dtype), (slope * normal).sum(rows) if rows else slope * normal, slope.sum(rows) if rows else slope


def numpy_rmsnorm(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> tuple[Any, Any, Any]:
    """`rmsnorm` of arrays of NumPy."""
    total = numpy_computed(x) + optional(residual, numpy_computed, 0)
    rstd = 1 / np.sqrt((total * total).mean(-1) + eps)
    out = total * rstd[..., None] * optional(weight, numpy_computed, 1) + optional(bias, numpy_computed, 0)
    return out.astype(x.dtype), total.astype(x.dtype), rstd


def numpy_rmsnorm_backward(grad: Any, grad_total: Any, x: Any, weight: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """`rmsnorm_backward` of arrays of NumPy."""
    slope, factor = numpy_computed(grad), numpy_computed(rstd)[..., None]
    normal = numpy_computed(x) * factor
    scaled = slope * optional(weight, numpy_computed, 1)
    dx = factor * (scaled - normal * (scaled * normal).mean(-1, keepdims=True))
    dx = dx + optional(grad_total, numpy_computed, 0)
    rows = tuple(range(x.ndim - 1))
    return dx.astype(x.dtype), (slope * normal).sum(rows), slope.sum(rows)
