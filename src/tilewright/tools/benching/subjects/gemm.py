"""gemm of two matrices, with scales, and of groups of rows; shapes are (M, N, K), and K is N where it is left out."""

from __future__ import annotations

from typing import Any

from tilewright.ops.frameworks import dtype_name, torch
from tilewright.tools.benching.subjects.subject import Inputs, Subject, public, reference

GROUPS = 8
_SCALED = public("gemm_scaled")


def _extents(make: Inputs) -> tuple[int, int, int]:
    m, n, *rest = make.case.shape
    return m, n, rest[0] if rest else n


def _inputs(make: Inputs) -> tuple[Any, ...]:
    m, n, k = _extents(make)
    return make.normal(m, k), make.normal(k, n)


def _product(a: Any, b: Any) -> Any:
    return torch.mm(a, b)


def _scaled_inputs(make: Inputs) -> tuple[Any, ...]:
    m, n, k = _extents(make)
    scales = make.normal(m, 1, dtype=torch.float32), make.normal(1, n, dtype=torch.float32)
    return make.normal(m, k), make.normal(k, n), *scales


def _scaled(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    return _SCALED(a, b, scale_a, scale_b, dtype=dtype_name(a))


def _scaled_product(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    return (torch.mm(a, b) * scale_a * scale_b).to(a.dtype)


def _grouped_inputs(make: Inputs) -> tuple[Any, ...]:
    """Rows go to `GROUPS` matrices unevenly."""
    m, n, k = _extents(make)
    ends = make.integers(m + 1, GROUPS).sort().values
    ends[-1] = m
    return make.normal(m, k), make.normal(GROUPS, k, n), ends.int()


def _grouped_product(a: Any, b: Any, ends: Any) -> Any:
    stops = ends.tolist()
    starts = [0, *stops[:-1]]
    return torch.cat([a[start:stop] @ b[group] for group, (start, stop) in enumerate(zip(starts, stops, strict=True))])


SUBJECTS = {
    "gemm": Subject(
        inputs=_inputs, kernel=public("gemm"), ref=reference("gemm"), exact=_product, torch=_product,
    ),
    "gemm_scaled": Subject(
        inputs=_scaled_inputs, kernel=_scaled, ref=reference("gemm_scaled"), exact=_scaled_product,
        torch=_scaled_product,
    ),
    "gemm_grouped": Subject(
        inputs=_grouped_inputs, kernel=public("gemm_grouped"), ref=reference("gemm_grouped"), exact=_grouped_product,
        torch=_grouped_product,
    ),
}  # fmt: skip
