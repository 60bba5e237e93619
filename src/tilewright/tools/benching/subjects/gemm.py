"""gemm of two matrices; shapes are (M, N, K), and K is N where it is left out."""

from __future__ import annotations

from typing import Any

from tilewright.ops.frameworks import torch
from tilewright.tools.benching.subjects.subject import Inputs, Subject, public, reference


def _inputs(make: Inputs) -> tuple[Any, ...]:
    m, n, *rest = make.case.shape
    k = rest[0] if rest else n
    return make.normal(m, k), make.normal(k, n)


def _product(a: Any, b: Any) -> Any:
    return torch.mm(a, b)


SUBJECTS = {
    "gemm": Subject(
        inputs=_inputs, kernel=public("gemm"), ref=reference("gemm"), exact=_product, torch=_product,
    )
}  # fmt: skip
