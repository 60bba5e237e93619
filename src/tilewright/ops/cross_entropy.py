"""`cross_entropy`: the loss of rows of logits, reading each once; its gradient reads them once more."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import cross_entropy as kernels
from tilewright.ops.frameworks import check_alike, check_tensor, is_torch, torch
from tilewright.ops.norms import number_of_rows
from tilewright.ops.ref import cross_entropy as ref
from tilewright.ops.ref.precision import computed
from tilewright.ops.registration import define, direct, recorded, unseen

REDUCTIONS = ("mean", "sum", "none")

FORWARD = define(
    "_cross_entropy(Tensor(a!) loss, Tensor(b!)? lse, Tensor x, Tensor target, int ignore_index, "
    "float label_smoothing, bool smooths) -> ()",
    kernel=kernels.cross_entropy,
    reference=ref.cross_entropy,
    numpy_reference=ref.numpy_cross_entropy,
    rows=(0, 1, 2, 3),
)
BACKWARD = define(
    "_cross_entropy_backward(Tensor(a!) dx, Tensor grad, Tensor x, Tensor target, Tensor lse, int ignore_index, "
    "float label_smoothing) -> ()",
    kernel=kernels.cross_entropy_backward,
    reference=ref.cross_entropy_backward,
    numpy_reference=ref.numpy_cross_entropy_backward,
    rows=(0, 1, 2, 3, 4),
)


def cross_entropy(
    x: Any, target: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Any:
    """log(sum(exp(x))) - x[target] over the last dimension, computed in float32 (float64 for float64).

    Args:
        x: logits (..., N): float16, bfloat16, float32 or float64, of PyTorch or NumPy.
        target: a column for each row: int32 or int64, of shape (...). The classes are the last dimension, where
            `torch.nn.functional.cross_entropy` has the second.
        ignore_index: the loss of rows with this target is 0, and they count in no mean.
        label_smoothing: s, from 0 to 1: the loss is lse - (1 - s) * x[target] - s * mean(x).
        reduction: `mean`, `sum` or `none`.

    Returns:
        The losses, or their mean or sum, in float32 (float64 for float64). A target that names no column gives NaN.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together, or an option is out of range.
    """
    if reduction != "none":
        total = _total(x, target, ignore_index, label_smoothing, reduction)
        if total is not None:
            return total
    loss = _loss_quickly(x, target, ignore_index, label_smoothing)
    if loss is None or reduction not in REDUCTIONS:
        _check(x, target, label_smoothing, reduction)
        loss = _loss(x, target, ignore_index, label_smoothing)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / (target != ignore_index).sum()


def _total(x: Any, target: Any, ignore_index: int, smoothing: float, reduction: str) -> Any:
    """The mean or sum of the losses, by a kernel that adds them up; None where others are to do it, or to refuse."""
    if not unseen(x, target) or not FORWARD.uses_kernel(x) or reduction not in REDUCTIONS or not 0 <= smoothing <= 1:
        return None
    if x.shape[:-1] != target.shape or not 0 < target.numel() <= kernels.MOST_TOTALED or not x.shape[-1]:
        return None
    options = ignore_index, smoothing, smoothing > 0, reduction == "mean"
    if x.requires_grad and torch.is_grad_enabled():
        return recorded(_CrossEntropyTotal, x, target, *options)[0]
    loss = number_of_rows(x)
    total = loss.new_empty(())
    _run_total(total, None, loss, None, x, target, *options)
    return total


def _run_total(total: Any, count: Any, loss: Any, lse: Any, x: Any, target: Any, *options: Any) -> None:
    if not kernels.cross_entropy_total.quick(total, count, loss, lse, x, target, *options):
        _check(x, target, options[1], "mean")
        kernels.cross_entropy_total(total, count, loss, lse, x, target, *options)


def _loss_quickly(x: Any, target: Any, ignore_index: int, smoothing: float) -> Any:
    """The loss of each row; None where native code cannot tell that all is as it should be."""
    if not direct(x, target) or x.shape[:-1] != target.shape or not 0 <= smoothing <= 1:
        return None
    loss = torch.empty_like(target, dtype=torch.float64 if x.dtype is torch.float64 else torch.float32)
    return loss if FORWARD.quick(loss, None, x, target, ignore_index, smoothing, smoothing > 0) else None


def _loss(x: Any, target: Any, ignore_index: int, label_smoothing: float) -> Any:
    smooths = label_smoothing > 0
    if not is_torch(x):
        loss = np.empty(x.shape[:-1], np.float64 if x.dtype == np.float64 else np.float32)
        FORWARD.run(loss, None, x, target, ignore_index, label_smoothing, smooths)
    elif direct(x, target):
        loss = number_of_rows(x)
        FORWARD.run(loss, None, x, target, ignore_index, label_smoothing, smooths)
    else:
        loss, _ = recorded(_CrossEntropy, x, target, ignore_index, label_smoothing)
    return loss


def _check(x: Any, target: Any, label_smoothing: float, reduction: str) -> None:
    check_tensor("cross_entropy", "x", x)
    check_tensor("cross_entropy", "target", target, ("int32", "int64"))
    check_alike("cross_entropy", x=x, target=target)
    if x.ndim == 0 or x.shape[:-1] != target.shape or not x.shape[-1]:
        raise ArgumentError(
            "cross_entropy: target has one column for each row of x",
            values={"x": tuple(x.shape), "target": tuple(target.shape)}, hint="x is (..., N), target (...)",
        )  # fmt: skip
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy: label_smoothing is from 0 to 1, not {label_smoothing}")
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"cross_entropy: reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")


if torch is not None:

    class _CrossEntropy(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any, target: Any, ignore_index: int, smoothing: float) -> Any:
            loss, lse = number_of_rows(x), number_of_rows(x)
            FORWARD.way(x, target)(loss, lse, x, target, ignore_index, smoothing, smoothing > 0)
            return loss, lse

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, target, ctx.ignore_index, ctx.smoothing = inputs
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(x, target, output[1])

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            return _gradient(grad, *ctx.saved_tensors, ctx.ignore_index, ctx.smoothing)

    class _CrossEntropyTotal(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, target: Any, ignore_index: int, smoothing: float, smooths: bool, averages: bool) -> Any:
            loss, lse = number_of_rows(x), number_of_rows(x)
            total, count = lse.new_empty(()), lse.new_empty(()) if averages else None
            _run_total(total, count, loss, lse, x, target, ignore_index, smoothing, smooths, averages)
            return total, lse, count

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, target, ctx.ignore_index, ctx.smoothing, *_ = inputs
            ctx.mark_non_differentiable(*(item for item in output[1:] if item is not None))
            ctx.save_for_backward(x, target, *output[1:])

        @staticmethod
        def backward(ctx: Any, grad: Any, *_: Any) -> Any:
            x, target, lse, count = ctx.saved_tensors
            of_rows = (grad if count is None else grad / count).expand(lse.shape)
            return *_gradient(of_rows, x, target, lse, ctx.ignore_index, ctx.smoothing), None, None


def _gradient(grad: Any, x: Any, target: Any, lse: Any, *options: Any) -> Any:
    """The gradients of x, target and options, from those of the losses."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a gradient of the gradient is wanted
        lse = computed(x).logsumexp(-1)
        return ref.cross_entropy_backward(grad, x, target, lse, *options), None, None, None
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    BACKWARD.way(grad, x)(dx, grad, x, target, lse, *options)
    return dx, None, None, None
