"""Cross entropy of rows of logits, by its definition: in float32, or float64 for float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch
from tilewright.ops.ref.precision import computed, numpy_computed


def cross_entropy(x: Any, target: Any, ignore_index: int, smoothing: float, smooths: bool) -> tuple[Any, Any]:
    """The loss of each row, 0 where its target is `ignore_index`, and log(sum(exp(x))) of each row.

    With s = smoothing the loss is lse - (1 - s) * x[target] - s * mean(x); NaN where the target names no column.
    """
    wide = computed(x)
    lse = wide.logsumexp(-1)
    inside = (target >= 0) & (target < x.shape[-1])
    picked = wide.gather(-1, torch.where(inside, target, 0).long()[..., None])[..., 0]
    loss = lse - (1 - smoothing) * picked - (smoothing * wide.mean(-1) if smooths else 0)
    loss = torch.where(inside, loss, float("nan"))
    return torch.where(target == ignore_index, 0.0, loss).to(lse.dtype), lse


def cross_entropy_backward(grad: Any, x: Any, target: Any, lse: Any, ignore_index: int, smoothing: float) -> Any:
    """The gradient of x, given those of the losses: (softmax(x) - (1 - s) * (column is target) - s / N) * grad."""
    wide, slope = computed(x), torch.where(target == ignore_index, 0.0, computed(grad))
    columns = torch.arange(x.shape[-1], device=x.device)
    hit = (columns == target[..., None]).to(wide.dtype)
    wanted = (1 - smoothing) * hit + smoothing / x.shape[-1]
    return (((wide - computed(lse)[..., None]).exp() - wanted) * slope[..., None]).to(x.dtype)


def numpy_cross_entropy(x: Any, target: Any, ignore_index: int, smoothing: float, smooths: bool) -> tuple[Any, Any]:
    """`cross_entropy` of arrays of NumPy."""
    wide = numpy_computed(x)
    top = wide.max(-1)
    lse = np.log(np.exp(wide - top[..., None]).sum(-1)) + top
    inside = (target >= 0) & (target < x.shape[-1])
    picked = np.take_along_axis(wide, np.where(inside, target, 0)[..., None], -1)[..., 0]
    loss = lse - (1 - smoothing) * picked - (smoothing * wide.mean(-1) if smooths else 0)
    loss = np.where(inside, loss, np.nan)
    return np.where(target == ignore_index, 0.0, loss).astype(lse.dtype), lse


def numpy_cross_entropy_backward(grad: Any, x: Any, target: Any, lse: Any, ignore_index: int, smoothing: float) -> Any:
    """`cross_entropy_backward` of arrays of NumPy."""
    wide, slope = numpy_computed(x), np.where(target == ignore_index, 0.0, numpy_computed(grad))
    hit = np.arange(x.shape[-1]) == target[..., None]
    wanted = (1 - smoothing) * hit + smoothing / x.shape[-1]
    return ((np.exp(wide - numpy_computed(lse)[..., None]) - wanted) * slope[..., None]).astype(x.dtype)
