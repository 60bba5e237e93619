"""`softmax_online`: softmax over the last dimension, reading each row once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import softmax_online as kernels
from tilewright.ops.frameworks import check_tensor, last_dim, torch
from tilewright.ops.ref import softmax_online as ref
from tilewright.ops.registration import define, direct, recorded, result_like

BACKENDS = ("ref", "kernel")

FORWARD = define(
    "_softmax_online(Tensor(a!) out, Tensor x) -> ()",
    kernel=kernels.softmax_online,
    reference=ref.softmax_online,
    numpy_reference=ref.numpy_softmax_online,
    rows=(0, 1),
)
BACKWARD = define(
    "_softmax_online_backward(Tensor(a!) dx, Tensor grad, Tensor y) -> ()",
    kernel=kernels.softmax_online_backward,
    reference=ref.softmax_online_backward,
    numpy_reference=ref.numpy_softmax_online_backward,
    rows=(0, 1, 2),
)


def softmax_online(x: Any, dim: int = -1) -> Any:
    """exp(x - max(x)) / sum(exp(x - max(x))) over the last dimension.

    A row is read once: maximum and sum come from what the threads keep of it.

    Args:
        x: a tensor of any rank over 0: float16, bfloat16, float32 or float64, of PyTorch or NumPy.
        dim: -1, or the same by its number.

    Returns:
        A new contiguous tensor like `x`; of float32 for 16-bit floats under autocast, as `torch.softmax` has it.

    Raises:
        ArgumentError: (a ValueError) `dim` is not the last dimension, or the dtype is none of these.
    """
    straight = direct(x)
    if straight and dim == -1:
        out = result_like(x)
        if FORWARD.quick(out, x):
            return out
    check_tensor("softmax_online", "x", x)
    last_dim("softmax_online", dim, x.ndim)
    if isinstance(x, np.ndarray):
        out = np.empty(x.shape, x.dtype)
        FORWARD.run(out, x)
        return out
    if straight:
        return _forward(x, FORWARD.run)
    return recorded(_SoftmaxOnline, x)


def _forward(x: Any, run: Any) -> Any:
    out = result_like(x)
    run(out, x)
    return out


def _backward(grad: Any, y: Any, dtype: Any) -> Any:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # a gradient of the gradient is wanted
        return ref.softmax_online_backward(grad, y).to(dtype)
    dx = torch.empty_like(y, dtype=dtype)
    BACKWARD.way(grad, y)(dx, grad, y)
    return dx


def set_softmax_online_backend(name: str | None) -> str | None:
    """Choose what computes `softmax_online` from now on; gives the choice before.

    `kernel` is the kernel, on the emulator for memory of the host; `ref` the reference in PyTorch; None, the state at
    the start, the kernel on a GPU and the reference elsewhere.

    Raises:
        ArgumentError: (a ValueError) there is no such backend.
    """
    if name is not None and name not in BACKENDS:
        raise ArgumentError(
            f"softmax_online has no backend {name!r}", values={"backends": ", ".join(BACKENDS)}, hint='"kernel"'
        )
    before = FORWARD.backend
    FORWARD.backend = BACKWARD.backend = name
    return before


if torch is not None:

    class _SoftmaxOnline(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return _forward(x, FORWARD.way(x))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.dtype = inputs[0].dtype
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return _backward(grad, y, ctx.dtype)
