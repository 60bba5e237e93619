"""cross_entropy of each row, forward and backward.

The backward has the logarithm of the row's sum of powers, which the forward keeps, among its inputs.
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

IGNORED = -100


def _inputs(make: Inputs) -> tuple[Any, ...]:
    rows, columns = make.case.shape
    return make.normal(rows, columns), make.integers(columns, rows)


def _backward_inputs(make: Inputs) -> tuple[Any, ...]:
    x, target = _inputs(make)
    wide = x if x.dtype == torch.float64 else x.float()
    grad = make.normal(x.shape[0], dtype=wide.dtype)
    return grad, x, target, torch.logsumexp(wide, -1)


def _loss(x: Any, target: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, target, reduction="none")


def _backward(grad: Any, x: Any, target: Any, lse: Any) -> Any:
    hits = torch.arange(x.shape[-1], device=x.device) == target[:, None]
    return ((x - lse[:, None]).exp() - hits.to(x.dtype)) * grad[:, None]


def _like_x(grad: Any, x: Any, target: Any, lse: Any) -> Any:
    return _backward(grad, x.to(grad.dtype), target, lse).to(x.dtype)


def _kernel_backward(grad: Any, x: Any, target: Any, lse: Any) -> Any:
    dx = torch.empty_like(x)
    operator("_cross_entropy_backward")(dx, grad, x, target, lse, IGNORED, 0.0)
    return dx


def _torch_backward(case: Case) -> Function:
    """What PyTorch's autograd runs: two kernels, on the logarithms of probabilities that its forward kept."""
    kept: dict[str, Any] = {}

    def call(grad: Any, x: Any, target: Any, lse: Any) -> Any:
        if not kept:
            kept["logs"] = torch.log_softmax(x, -1)
            kept["weight"] = torch.zeros((), device=x.device, dtype=x.dtype)
        given, logs = grad.to(x.dtype), kept["logs"]
        picked = torch.ops.aten.nll_loss_backward(given, logs, target, None, 0, IGNORED, kept["weight"])
        return torch.ops.aten._log_softmax_backward_data(picked, logs, -1, x.dtype)

    return call


def _quack(case: Case, name: str) -> Any:
    return None if case.dtype == "float64" else getattr(optional("quack.cross_entropy"), name)


def _quack_backward(case: Case) -> Function | None:
    backward = _quack(case, "cross_entropy_bwd")
    return backward and (lambda grad, x, target, lse: backward(x, target, grad, lse))


SUBJECTS = {
    "cross_entropy": Subject(
        inputs=_inputs,
        kernel=lambda x, target: public("cross_entropy")(x, target, reduction="none"),
        ref=lambda x, target: reference("cross_entropy")(x, target, IGNORED, 0.0, False)[0],
        exact=_loss,
        torch=_loss,
        operator=keeping(
            lambda x, target: [
                torch.empty_like(target, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)
            ],
            lambda loss, x, target: operator("_cross_entropy")(loss, None, x, target, IGNORED, 0.0, False),
        ),
        compiled=narrowed(_loss),
        peers={
            "triton": in_triton("cross_entropy"),
            "quack": lambda case: _quack(case, "cross_entropy_fwd"),
        },
    ),
    "cross_entropy_backward": Subject(
        inputs=_backward_inputs,
        kernel=_kernel_backward,
        ref=lambda *inputs: reference("cross_entropy", "cross_entropy_backward")(*inputs, IGNORED, 0.0),
        exact=_backward,
        compiled=_like_x,
        peers={
            "torch": _torch_backward,
            "triton": in_triton("cross_entropy_backward"),
            "quack": _quack_backward,
        },
    ),
}
