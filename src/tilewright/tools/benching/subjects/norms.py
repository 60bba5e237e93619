"""rmsnorm and layernorm, forward and backward: with weight, and layernorm with bias, no residual.

A backward has what its forward keeps of a row, the mean and 1 / sqrt(variance + eps), among its inputs.
"""

from __future__ import annotations

from typing import Any

from tilewright.ops.frameworks import torch
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.subjects.subject import (
    Function,
    Inputs,
    Subject,
    in_triton,
    keeping,
    narrowed,
    operator,
    optional,
    public,
    reference,
)  # fmt: skip

EPS = 1e-6
LONGEST = 65536
"""Rows that Triton's norm takes: it holds them whole."""
LONGEST_BACKWARD = 16384
"""The same of its backward, which keeps two sums of each column besides."""


def _row(make: Inputs) -> int:
    return int(make.case.shape[-1])


def _rmsnorm_inputs(make: Inputs) -> tuple[Any, ...]:
    return make.normal(*make.case.shape), make.normal(_row(make))


def _layernorm_inputs(make: Inputs) -> tuple[Any, ...]:
    return make.normal(*make.case.shape), make.normal(_row(make)), make.normal(_row(make))


def _wide(x: Any) -> Any:
    return x if x.dtype == torch.float64 else x.float()


def _rmsnorm_backward_inputs(make: Inputs) -> tuple[Any, ...]:
    grad, (x, weight) = make.normal(*make.case.shape), _rmsnorm_inputs(make)
    return grad, x, weight, torch.rsqrt(_wide(x).square().mean(-1) + EPS)


def _layernorm_backward_inputs(make: Inputs) -> tuple[Any, ...]:
    grad, (x, weight, _) = make.normal(*make.case.shape), _layernorm_inputs(make)
    variance, mean = torch.var_mean(_wide(x), -1, correction=0)
    return grad, x, weight, mean, torch.rsqrt(variance + EPS)


def _rmsnorm(x: Any, weight: Any) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)


def _layernorm(x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def _rmsnorm_backward(grad: Any, x: Any, weight: Any, rstd: Any) -> Any:
    normal, scaled = x * rstd[:, None], grad * weight
    dx = (scaled - normal * (scaled * normal).mean(-1, keepdim=True)) * rstd[:, None]
    return dx, (grad * normal).sum(0)


def _layernorm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    normal, scaled = (x - mean[:, None]) * rstd[:, None], grad * weight
    about = scaled - scaled.mean(-1, keepdim=True) - normal * (scaled * normal).mean(-1, keepdim=True)
    return about * rstd[:, None], (grad * normal).sum(0), grad.sum(0)


def _torch_rmsnorm_backward(grad: Any, x: Any, weight: Any, rstd: Any) -> Any:
    backward = torch.ops.aten._fused_rms_norm_backward
    return tuple(backward(grad, x, x.shape[-1:], rstd[:, None], weight, [True, True]))


def _torch_layernorm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    backward, bias = torch.ops.aten.native_layer_norm_backward, weight
    return tuple(backward(grad, x, x.shape[-1:], mean[:, None], rstd[:, None], weight, bias, [True, True, True]))


def _kernel_rmsnorm_backward(grad: Any, x: Any, weight: Any, rstd: Any) -> Any:
    dx, dweight = torch.empty_like(x), torch.empty_like(weight)
    operator("_rmsnorm_backward")(dx, dweight, None, grad, None, x, weight, rstd)
    return dx, dweight


def _kernel_layernorm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    dx, dweight, dbias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
    operator("_layernorm_backward")(dx, dweight, dbias, grad, None, x, weight, mean, rstd)
    return dx, dweight, dbias


def _triton(case: Case, centred: bool) -> Function | None:
    norm = in_triton("norm")(case)
    if norm is None or case.shape[-1] > LONGEST:
        return None
    return lambda x, weight, bias=None: norm(x, weight, bias, EPS, centred)


def _triton_backward(case: Case) -> Function | None:
    backward = in_triton("norm_backward")(case)
    if backward is None or case.shape[-1] > LONGEST_BACKWARD:
        return None
    return lambda grad, x, weight, *kept: tuple(backward(grad, x, weight, kept[0] if kept[1:] else None, kept[-1]))


def _quack(case: Case) -> Any:
    """quack's module, which has no float64."""
    return None if case.dtype == "float64" else optional("quack.rmsnorm")


def _quack_rmsnorm(case: Case) -> Function | None:
    quack = _quack(case)
    return quack and (lambda x, weight: quack.rmsnorm_fwd(x, weight, eps=EPS)[0])


def _quack_rmsnorm_backward(case: Case) -> Function | None:
    quack = _quack(case)
    return quack and (lambda grad, x, weight, rstd: tuple(quack.rmsnorm_bwd(x, weight, grad, rstd)[:2]))


def _quack_layernorm(case: Case) -> Function | None:
    """Its weights are float32: they are converted once, not in what is timed."""
    quack = _quack(case)
    kept: dict[str, Any] = {}

    def call(x: Any, weight: Any, bias: Any) -> Any:
        if not kept:
            kept["weights"] = weight.float(), bias.float()
        return quack.layernorm_fwd(x, *kept["weights"], eps=EPS)

    return quack and call


def _quack_layernorm_backward(case: Case) -> Function | None:
    quack = _quack(case)
    kept: dict[str, Any] = {}

    def call(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> Any:
        if not kept:
            kept["weight"] = weight.float()
        return tuple(quack.layernorm_bwd(x, kept["weight"], grad, rstd, mean))

    return quack and call


SUBJECTS = {
    "rmsnorm": Subject(
        inputs=_rmsnorm_inputs,
        kernel=lambda x, weight: public("rmsnorm")(x, weight, eps=EPS),
        ref=lambda x, weight: reference("rmsnorm")(x, weight, None, None, EPS)[0],
        exact=_rmsnorm,
        torch=_rmsnorm,
        operator=keeping(
            lambda x, weight: [torch.empty_like(x)],
            lambda out, x, weight: operator("_rmsnorm")(out, None, None, x, weight, None, None, EPS),
        ),
        peers={"triton": lambda case: _triton(case, False), "quack": _quack_rmsnorm},
    ),
    "rmsnorm_backward": Subject(
        inputs=_rmsnorm_backward_inputs,
        kernel=_kernel_rmsnorm_backward,
        ref=lambda grad, *kept: reference("rmsnorm", "rmsnorm_backward")(grad, None, *kept)[:2],
        exact=_rmsnorm_backward,
        torch=_torch_rmsnorm_backward,
        compiled=narrowed(_rmsnorm_backward),
        peers={"triton": _triton_backward, "quack": _quack_rmsnorm_backward},
    ),
    "layernorm": Subject(
        inputs=_layernorm_inputs,
        kernel=lambda x, weight, bias: public("layernorm")(x, weight, bias, eps=EPS),
        ref=lambda x, weight, bias: reference("layernorm")(x, weight, bias, None, EPS)[0],
        exact=_layernorm,
        torch=_layernorm,
        operator=keeping(
            lambda x, weight, bias: [torch.empty_like(x)],
            lambda out, x, weight, bias: operator("_layernorm")(out, None, None, None, x, weight, bias, None, EPS),
        ),
        peers={"triton": lambda case: _triton(case, True), "quack": _quack_layernorm},
    ),
    "layernorm_backward": Subject(
        inputs=_layernorm_backward_inputs,
        kernel=_kernel_layernorm_backward,
        ref=lambda grad, *kept: reference("layernorm", "layernorm_backward")(grad, None, *kept),
        exact=_layernorm_backward,
        torch=_torch_layernorm_backward,
        compiled=narrowed(_layernorm_backward),
        peers={"triton": _triton_backward, "quack": _quack_layernorm_backward},
    ),
}
