"""What the norms share: checks, the tensors that they write, and how autograd goes through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.ops.frameworks import check_alike, check_tensor, is_torch, torch
from tilewright.ops.registration import Operator, result_like


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
        if value.shape != x.shape[-1:]:
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
    total = None if residual is None else torch.empty_like(x, memory_format=torch.contiguous_format)
    return result_like(x), total


def number_of_rows(x: Any) -> Any:
    """A new tensor for a number of each row, in the precision that kernels compute in."""
    return x.new_empty(x.shape[:-1], dtype=torch.float64 if x.dtype is torch.float64 else torch.float32)


def save_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    """What the `autograd.Function` of a norm keeps of its inputs and of its output, the numbers of each row last."""
    x, weight, bias, residual, ctx.eps = inputs
    _, total, *noted = output
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.has_residual = residual is not None
    ctx.mark_non_differentiable(*noted)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x if residual is None else total, weight, *noted)


def gradients(ctx: Any, grad: Any, grad_total: Any, backward: Operator, reference: Any, moments: Any) -> Any:
    """The gradients of x, weight, bias, residual and eps, from what `save_for_backward` kept.

    `backward` is the operator of the gradient, `reference` that in PyTorch, for a gradient of the gradient, with the
    numbers of each row that `moments(x, eps)` gives.
    """
    if grad is None:
        return grad_total, None, None, grad_total if ctx.has_residual else None, None
    x, weight, *noted = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        dx, dweight, dbias = reference(grad, grad_total, x, weight, *moments(x, ctx.eps))
        dweight = None if weight is None else dweight.to(weight.dtype)
        dbias = None if ctx.bias_dtype is None else dbias.to(ctx.bias_dtype)
    else:
        dx = torch.empty_like(x, memory_format=torch.contiguous_format)
        dweight = None if weight is None else x.new_empty(x.shape[-1:], dtype=weight.dtype)
        dbias = None if ctx.bias_dtype is None else x.new_empty(x.shape[-1:], dtype=ctx.bias_dtype)
        backward.way(grad, x)(dx, dweight, dbias, grad, grad_total, x, weight, *noted)
    return dx, dweight, dbias, dx if ctx.has_residual else None, None
