"""What the norms' public functions share: checks, and the tensors that they write."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.ops.frameworks import check_alike, check_tensor, is_torch, torch
from tilewright.ops.registration import computed_dtype


def check_norm(op: str, x: Any, weight: Any, bias: Any, residual: Any) -> None:
    """Refuse arguments of a norm that do not go together.

    Raises:
        ArgumentError: a type, shape or device is not as it should be.
    """
    check_tensor(op, "x", x)
    if x.ndim == 0:
        raise ArgumentError(f"{op}: a tensor without dimensions has no rows", hint="x.reshape(1)")
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        check_tensor(op, name, value)
        if value.ndim != 1 or value.shape[0] != x.shape[-1]:
            raise ArgumentError(
                f"{op}: {name} has shape {tuple(value.shape)}",
                values={"expected": f"({x.shape[-1]},), as x has columns"},
            )
    if residual is not None:
        check_tensor(op, "residual", residual)
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise ArgumentError(
            f"{op}: residual is not like x", values={"x": _kind(x), "residual": _kind(residual)},
            hint="both have one shape and dtype",
        )  # fmt: skip
    check_alike(op, x=x, weight=weight, bias=bias, residual=residual)


def _kind(tensor: Any) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype}"


def results_of(x: Any, residual: Any) -> tuple[Any, Any]:
    """New tensors for the norm and, with a residual, for x + residual."""
    if not is_torch(x):
        return np.empty(x.shape, x.dtype), None if residual is None else np.empty(x.shape, x.dtype)
    dense = torch.contiguous_format
    out = torch.empty_like(x, dtype=computed_dtype(x), memory_format=dense)
    return out, None if residual is None else torch.empty_like(x, memory_format=dense)


def number_of_rows(x: Any) -> Any:
    """A new tensor for a number of each row, in the precision that kernels compute in."""
    return x.new_empty(x.shape[:-1], dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
