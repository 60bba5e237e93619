"""What an epilogue, and one order of adding, cost over the plain matrix product on a GPU, beside cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.on_device import products
from bench.runner import Row
from tilewright import ops
from tilewright.ops.frameworks import torch
from tilewright.targets.nvidia import driver as cuda

PLAIN = "ops.gemm"
SHAPES = (8192, 8192, 8192), (4096, 4096, 4096), (512, 8192, 8192), (128, 128, 16384)


def bias_gelu(accum: Any, bias: Any) -> Any:
    """gelu(accum + bias)."""
    D = gelu(accum + bias)  # type: ignore[name-defined]  # noqa: F821
    return D


def residual_peaks(accum: Any, C: Any, alpha: Any) -> Any:
    """A residual, a scale, the largest element of each row, and a second output."""
    F = alpha * accum + C
    peak = max(F, dim=2)  # type: ignore[call-overload]
    D = relu(F)  # type: ignore[name-defined]  # noqa: F821
    return D, F, peak


def rows(quick: bool) -> Iterator[Row]:
    """Rates, and times beside that of the plain product of the same run; nothing without a GPU."""
    if torch is None or not cuda.available():
        return
    for shape in SHAPES[1:2] if quick else SHAPES:
        yield from products(_calls(shape), shape, PLAIN, quick)


def _calls(shape: tuple[int, int, int]) -> dict[str, Callable[[], object]]:
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").bfloat16() for rows in (m, n))
    bias, residual = torch.randn(n, device="cuda").bfloat16(), torch.randn(m, n, device="cuda").bfloat16()
    d, f = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    right = b.T
    return {
        PLAIN: lambda: ops.gemm(a, right, out=d),
        "batch_invariant": lambda: ops.gemm(a, right, out=d, batch_invariant=True),
        "bias+gelu": lambda: ops.gemm(a, right, bias_gelu, bias=bias, D=d),
        "residual+scale+row-max+aux": lambda: ops.gemm(a, right, residual_peaks, C=residual, alpha=0.5, D=d, F=f),
        "cuBLAS": lambda: torch.mm(a, right, out=d),
        "cuBLASLt bias+gelu": lambda: torch._addmm_activation(bias, a, right, use_gelu=True),
    }
