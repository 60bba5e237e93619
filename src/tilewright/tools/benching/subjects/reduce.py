"""reduce with options op and dim, and reduce_sum with options dim and variant."""

from __future__ import annotations

from typing import Any

from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.subjects.subject import Function, Inputs, Subject, in_triton, public, reference

TORCH = {"max": "amax", "min": "amin"}
"""PyTorch's names where they are others."""


def _inputs(make: Inputs) -> tuple[Any, ...]:
    return (make.normal(*make.case.shape),)


def _reduce(x: Any, op: str = "sum", dim: int = -1) -> Any:
    return getattr(x, TORCH.get(op, op))(dim)


def _kernel(x: Any, op: str = "sum", dim: int = -1) -> Any:
    return public("reduce")(x, op, dim)


def _reference(x: Any, op: str = "sum", dim: int = -1) -> Any:
    return reference("reduce")(x, op, (dim,))


def _triton(case: Case) -> Function | None:
    options: dict[str, Any] = {"op": "sum", "dim": -1, **dict(case.options)}
    names = {("sum", -1): "row_sum", ("sum", 0): "column_sum", ("argmax", -1): "argmax"}
    name = names.get((options["op"], options["dim"]))
    return in_triton(name)(case) if name else None


def _sum(x: Any, dim: int = -1, variant: str = "auto") -> Any:
    return x.sum(dim)


def _sum_kernel(x: Any, dim: int = -1, variant: str = "auto") -> Any:
    return public("reduce_sum")(x, dim, variant=variant)


def _sum_reference(x: Any, dim: int = -1, variant: str = "auto") -> Any:
    return reference("reduce")(x, "sum", (dim,))


def _triton_sum(case: Case) -> Function | None:
    return in_triton("row_sum")(case) if dict(case.options).get("dim", -1) == -1 else None


SUBJECTS = {
    "reduce": Subject(
        inputs=_inputs,
        kernel=_kernel,
        ref=_reference,
        exact=_reduce,
        torch=_reduce,
        peers={"triton": _triton},
    ),
    "reduce_sum": Subject(
        inputs=_inputs,
        kernel=_sum_kernel,
        ref=_sum_reference,
        exact=_sum,
        torch=_sum,
        peers={"triton": _triton_sum},
    ),
}
