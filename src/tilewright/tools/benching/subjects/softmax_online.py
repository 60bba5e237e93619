"""softmax_online, forward and backward."""

from __future__ import annotations

from typing import Any

from tilewright.ops.frameworks import torch
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.subjects.subject import (
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


def _inputs(make: Inputs) -> tuple[Any, ...]:
    return (make.normal(*make.case.shape),)


def _forward(x: Any) -> Any:
    return torch.softmax(x, -1)


def _backward_inputs(make: Inputs) -> tuple[Any, ...]:
    return make.normal(*make.case.shape), torch.softmax(make.normal(*make.case.shape), -1)


def _kernel_backward(grad: Any, y: Any) -> Any:
    dx = torch.empty_like(y)
    operator("_softmax_online_backward")(dx, grad, y)
    return dx


def _torch_backward(grad: Any, y: Any) -> Any:
    return torch.ops.aten._softmax_backward_data(grad, y, -1, y.dtype)


def _backward(grad: Any, y: Any) -> Any:
    return y * (grad - (grad * y).sum(-1, keepdim=True))


def _quack(name: str, case: Case) -> Any:
    return None if case.dtype == "float64" else getattr(optional("quack.softmax"), name)


SUBJECTS = {
    "softmax_online": Subject(
        inputs=_inputs,
        kernel=public("softmax_online"),
        ref=reference("softmax_online"),
        exact=_forward,
        torch=_forward,
        operator=keeping(lambda x: [torch.empty_like(x)], operator("_softmax_online")),
        peers={
            "triton": in_triton("softmax"),
            "quack": lambda case: _quack("softmax_fwd", case),
        },
    ),
    "softmax_online_backward": Subject(
        inputs=_backward_inputs,
        kernel=_kernel_backward,
        ref=reference("softmax_online", "softmax_online_backward"),
        exact=_backward,
        torch=_torch_backward,
        compiled=narrowed(_backward),
        peers={
            "triton": in_triton("softmax_backward"),
            "quack": lambda case: _quack("softmax_bwd", case),
        },
    ),
}
