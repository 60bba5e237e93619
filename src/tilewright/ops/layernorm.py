"""`layernorm`: rows with mean 0 and variance 1, with a residual, reading and writing each once."""

from __future__ import annotations

from typing import Any

from tilewright.kernels import layernorm as kernels
from tilewright.ops.frameworks import is_torch, torch
from tilewright.ops.norms import check_norm, gradients, number_of_rows, results_of, save_for_backward
from tilewright.ops.ref import layernorm as ref
from tilewright.ops.registration import define, direct, recorded

FORWARD = define(
    "_layernorm(Tensor(a!) out, Tensor(b!)? total, Tensor(c!)? mean, Tensor(d!)? rstd, Tensor x, Tensor? weight, "
    "Tensor? bias, Tensor? residual, float eps) -> ()",
    kernel=kernels.layernorm,
    reference=ref.layernorm,
    numpy_reference=ref.numpy_layernorm,
    rows=(0, 1, 2, 3, 4, 7),
)
BACKWARD = define(
    "_layernorm_backward(Tensor(a!) dx, Tensor(b!)? dweight, Tensor(c!)? dbias, Tensor grad, Tensor? grad_total, "
    "Tensor x, Tensor? weight, Tensor mean, Tensor rstd) -> ()",
    kernel=kernels.layernorm_backward,
    reference=ref.layernorm_backward,
    numpy_reference=ref.numpy_layernorm_backward,
    rows=(0, 3, 4, 5, 7, 8),
)


def layernorm(x: Any, weight: Any = None, bias: Any = None, residual: Any = None, eps: float = 1e-5) -> Any:
    """(h - mean(h)) / sqrt(variance(h) + eps) * weight + bias over the last dimension, where h is x + residual.

    Args:
        x: a tensor of any rank over 0: float16, bfloat16, float32 or float64, of PyTorch or NumPy.
        weight: (N,) in any of these types, or None.
        bias: as weight.
        residual: like x, or None.
        eps: added to the variance, which is that of all N elements.

    Returns:
        A new contiguous tensor like `x`; with a residual, also h, like `x`. Under autocast the first is of float32 for
        16-bit floats, as `torch.nn.functional.layer_norm` has it. h is not rounded before it is normed.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together.
    """
    straight = direct(x, weight, bias, residual)
    if straight and (residual is None or residual.shape == x.shape):
        out, total = results_of(x, residual)
        if FORWARD.quick(out, total, None, None, x, weight, bias, residual, eps):
            return out if residual is None else (out, total)
    check_norm("layernorm", x, weight, bias, residual)
    if straight or not is_torch(x):
        out, total = results_of(x, residual)
        FORWARD.run(out, total, None, None, x, weight, bias, residual, eps)
    else:
        out, total, *_ = recorded(_LayerNorm, x, weight, bias, residual, eps)
    return out if residual is None else (out, total)


if torch is not None:

    class _LayerNorm(torch.autograd.Function):
        generate_vmap_rule = True
        setup_context = staticmethod(save_for_backward)

        @staticmethod
        def forward(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
            out, total = results_of(x, residual)
            mean, rstd = number_of_rows(x), number_of_rows(x)
            FORWARD.way(x, weight, bias, residual)(out, total, mean, rstd, x, weight, bias, residual, eps)
            return out, total, mean, rstd

        @staticmethod
        def backward(ctx: Any, grad: Any, grad_total: Any, *_: Any) -> Any:
            return gradients(ctx, grad, grad_total, BACKWARD, ref.layernorm_backward, ref.moments)
