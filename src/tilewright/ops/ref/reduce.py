"""Reductions by their definition: floats in float32, or float64 for float64; sums and products of integers in int64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch

_TORCH = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}
_WIDE = ("sum", "prod")


def reduce(x: Any, op: str, dims: Sequence[int]) -> Any:
    """The reduction `op` of a tensor of PyTorch over `dims`, in the dtype in which it is computed."""
    if op == "argmax":
        return _last(x, dims).max(-1).indices if x.dtype != torch.bool else _last(x, dims).int().max(-1).indices
    wide = x
    if x.dtype.is_floating_point:
        wide = x if x.dtype == torch.float64 else x.float()
    elif op in _WIDE:
        wide = x.long()
    if op == "prod":
        return _last(wide, dims).prod(-1)
    return getattr(wide, _TORCH[op])(tuple(dims)) if dims else wide


def _last(x: Any, dims: Sequence[int]) -> Any:
    """`dims` as one last dimension."""
    moved = x.movedim(tuple(dims), tuple(range(-len(dims), 0))) if dims else x[..., None]
    shape = moved.shape[: moved.ndim - max(len(dims), 1)]
    return moved.reshape(*shape, math.prod([x.shape[dim] for dim in dims]))


def numpy_reduce(x: Any, op: str, dims: Sequence[int]) -> Any:
    """`reduce` of an array of NumPy."""
    axes = tuple(dims)
    if op == "argmax":
        return np.moveaxis(x, axes, range(-len(axes), 0)).reshape(*_kept(x, axes), -1).argmax(-1)
    wide = x
    if np.issubdtype(x.dtype, np.integer) or x.dtype == np.bool_:
        wide = x.astype(np.int64) if op in _WIDE else x
    elif x.dtype != np.float64:
        wide = x.astype(np.float32)
    return getattr(wide, op)(axis=axes)


def _kept(x: Any, axes: Sequence[int]) -> list[int]:
    return [extent for place, extent in enumerate(x.shape) if place - x.ndim not in axes]


def reduce_backward(grad: Any, x: Any, out: Any, op: str, dims: Sequence[int]) -> Any:
    """The gradient of x. `grad` and `out` have extent 1 in `dims`.

    An extreme passes its gradient on to all elements that reach it, in equal parts. A product's is the product of the
    other elements, taken from the left and from the right, so that zeros need no division.
    """
    if op == "sum":
        return grad.expand(x.shape).to(x.dtype)
    if op == "mean":
        return (grad / math.prod([x.shape[dim] for dim in dims])).expand(x.shape)
    if op in ("max", "min"):
        reached = (x == out) | ((x != x) & (out != out))
        return torch.where(reached, grad / reached.sum(tuple(dims), keepdim=True), torch.zeros_like(grad))
    wide = x if x.dtype == torch.float64 else x.float()
    return (grad * _others(wide, dims)).to(x.dtype)


def _others(x: Any, dims: Sequence[int]) -> Any:
    """For each element the product of all others of `dims`."""
    if not dims:
        return torch.ones_like(x)
    row = _last(x, dims)
    one = torch.ones_like(row[..., :1])
    before = torch.cat([one, row[..., :-1]], -1).cumprod(-1)
    after = torch.cat([row[..., 1:], one], -1).flip(-1).cumprod(-1).flip(-1)
    moved = x.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    return (before * after).reshape(moved.shape).movedim(tuple(range(-len(dims), 0)), tuple(dims))
