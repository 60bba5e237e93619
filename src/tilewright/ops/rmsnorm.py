"""`rmsnorm`: root mean square normalisation of rows, with a residual, reading and writing each once."""

from __future__ import annotations

from typing import Any

from tilewright.kernels import rmsnorm as kernels
from tilewright.ops.frameworks import is_torch, torch
from tilewright.ops.norms import check_norm, gradients, number_of_rows, results_of, save_for_backward
from tilewright.ops.ref import rmsnorm as ref
from tilewright.ops.registration import define, direct, recorded

FORWARD = define(
    "_rmsnorm(Tensor(a!) out, Tensor(b!)? total, Tensor(c!)? rstd, Tensor x, Tensor? weight, Tensor? bias, "
    "Tensor? residual, float eps) -> ()",
    kernel=kernels.rmsnorm,
    reference=ref.rmsnorm,
    numpy_reference=ref.numpy_rmsnorm,
    rows=(0, 1, 2, 3, 6),
)
BACKWARD = define(
    "_rmsnorm_backward(Tensor(a!) dx, Tensor(b!)? dweight, Tensor(c!)? dbias, Tensor grad, Tensor? grad_total, "
    "Tensor x, Tensor? weight, Tensor rstd) -> ()",
    kernel=kernels.rmsnorm_backward,
    reference=ref.rmsnorm_backward,
    numpy_reference=ref.numpy_rmsnorm_backward,
    rows=(0, 3, 4, 5, 7),
)


def rmsnorm(x: Any, weight: Any = None, bias: Any = None, residual: Any = None, eps: float = 1e-6) -> Any:
    """h / sqrt(mean(h²) + eps) * weight + bias over the last dimension, where h is x + residual.

    Args:
        x: a tensor of any rank over 0: float16, bfloat16, float32 or float64, of PyTorch or NumPy.
        weight: (N,) in any of these types, or None.
        bias: as weight.
        residual: like x, or None.
        eps: added to the mean of the squares.

    Returns:
        A new contiguous tensor like `x`; with a residual, also h, like `x`. Under autocast the first is of float32 for
        16-bit floats, as `torch.nn.functional.rms_norm` has it. h is not rounded before it is normed.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together.
    """
    straight = direct(x, weight, bias, residual)
    if straight and (residual is None or residual.shape == x.shape):
        out, total = results_of(x, residual)
        if FORWARD.quick(out, total, None, x, weight, bias, residual, eps):
            return out if residual is None else (out, total)
    check_norm("rmsnorm", x, weight, bias, residual)
    if straight or not is_torch(x):
        out, total = results_of(x, residual)
        FORWARD.run(out, total, None, x, weight, bias, residual, eps)
    else:
        out, total, *_ = recorded(_RMSNorm, x, weight, bias, residual, eps)
    return out if residual is None else (out, total)


def _moments(x: Any, eps: float) -> tuple[Any]:
    return (ref.inverse_rms(x, eps),)


if torch is not None:

    class _RMSNorm(torch.autograd.Function):
        generate_vmap_rule = True
        setup_context = staticmethod(save_for_backward)

        @staticmethod
        def forward(x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
            out, total = results_of(x, residual)
            rstd = number_of_rows(x)
            FORWARD.way(x, weight, bias, residual)(out, total, rstd, x, weight, bias, residual, eps)
            return out, total, rstd

        @staticmethod
        def backward(ctx: Any, grad: Any, grad_total: Any, *_: Any) -> Any:
            return gradients(ctx, grad, grad_total, BACKWARD, ref.rmsnorm_backward, _moments)
