"""elementwise: a function of one tensor, of two of one shape, or of one with a row and a column (fma)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ops.frameworks import torch
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.subjects.subject import Function, Inputs, Subject, in_triton, narrowed, public, reference

PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum")


def _inputs(make: Inputs) -> tuple[Any, ...]:
    shape, op = make.case.shape, dict(make.case.options)["op"]
    if op == "fma":
        return make.normal(*shape), make.normal(shape[-1]), make.normal(*shape[:-1], 1)
    return tuple(make.normal(*shape) for _ in range(2 if op in PAIRS else 1))


def _function(op: str) -> Callable[..., Any]:
    """PyTorch's function of this name."""
    if op == "fma":
        return lambda a, b, c: torch.addcmul(c, a, b)
    names = {"copy": "clone"}
    return getattr(torch.nn.functional if op in ("gelu", "silu") else torch, names.get(op, op))


def _torch(*inputs: Any, op: str) -> Any:
    return _function(op)(*inputs)


def _exact(*inputs: Any, op: str) -> Any:
    return inputs[0] * inputs[1] + inputs[2] if op == "fma" else _function(op)(*inputs)


def _kernel(*inputs: Any, op: str) -> Any:
    return public("elementwise")(op, *inputs)


def _reference(*inputs: Any, op: str) -> Any:
    return reference("elementwise")(op, inputs)


def _triton(case: Case) -> Function | None:
    op = dict(case.options)["op"]
    return in_triton(op)(case) if op in ("add", "gelu", "fma") else None


SUBJECTS = {
    "elementwise": Subject(
        inputs=_inputs,
        kernel=_kernel,
        ref=narrowed(_reference),
        exact=_exact,
        torch=_torch,
        compiled=narrowed(_exact),
        peers={"triton": _triton},
    ),
}
