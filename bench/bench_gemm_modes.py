"""What an epilogue, and one order of adding, cost over the plain matrix product on a GPU, beside cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.on_device import products
from bench.runner import Row
from tilewright import ops
from tilewright.ops.frameworks import torch
from tilewright.targets.nvidia.devices import driver as cuda

PLAIN, GROUPED = "ops.gemm", "ops.gemm_grouped"
SHAPES = (8192, 8192, 8192), (4096, 4096, 4096), (512, 8192, 8192), (128, 128, 16384)
FLOAT8 = (4096, 4096, 4096), (8192, 8192, 8192)
MIXED = (4096, 4096, 4096), (64, 8192, 8192)
EXPERTS, TOKENS, WIDTH, HIDDEN = 32, 16384, 2048, 4096


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
    for shape in FLOAT8[:1] if quick else FLOAT8:
        yield from products(_float8_calls(shape), shape, "float8, a scale of rows and columns", quick)
    for shape in MIXED[:1] if quick else MIXED:
        yield from products(_mixed_calls(shape), shape, PLAIN, quick)
    yield from products(_grouped_calls(), (TOKENS, HIDDEN, WIDTH), GROUPED, quick)


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


def _float8_calls(shape: tuple[int, int, int]) -> dict[str, Callable[[], object]]:
    """8-bit floats whose scales are of rows and columns, or of blocks, beside cuBLAS with those of rows and columns."""
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    rows, columns = torch.rand(m, 1, device="cuda"), torch.rand(1, n, device="cuda")
    of_a, of_b = torch.rand(m, k // 128, device="cuda"), torch.rand(k // 128, n // 128, device="cuda")
    return {
        "float8, a scale of rows and columns": lambda: ops.gemm_scaled(a, b.T, rows, columns, out=d),
        "float8, scales of blocks": lambda: ops.gemm_scaled(a, b.T, of_a, of_b, out=d),
        "cuBLAS float8": lambda: torch._scaled_mm(a, b.T, rows, columns, out_dtype=torch.bfloat16),
    }


def _mixed_calls(shape: tuple[int, int, int]) -> dict[str, Callable[[], object]]:
    """Weights of 8 bits beside the same in 16."""
    m, n, k = shape
    a, weights = torch.randn(m, k, device="cuda").bfloat16(), torch.randint(-127, 128, (n, k), device="cuda")
    d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    eight, sixteen, floats = (weights.to(dtype).T for dtype in (torch.int8, torch.bfloat16, torch.float8_e4m3fn))
    return {
        PLAIN: lambda: ops.gemm(a, sixteen, out=d),
        "bfloat16 x int8": lambda: ops.gemm(a, eight, out=d),
        "bfloat16 x float8_e4m3fn": lambda: ops.gemm(a, floats, out=d),
    }


def _grouped_calls() -> dict[str, Callable[[], object]]:
    """A layer of experts, to which rows go unevenly; `torch._grouped_mm` where there is one."""
    a = torch.randn(TOKENS, WIDTH, device="cuda").bfloat16()
    b = torch.randn(EXPERTS, HIDDEN, WIDTH, device="cuda").bfloat16().mT
    d = torch.empty(TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16)
    shares = torch.rand(EXPERTS, generator=torch.Generator().manual_seed(0)).softmax(0).cumsum(0)
    ends = (shares * TOKENS).round().int().clamp(max=TOKENS)
    starts, stops = [0, *ends.tolist()], ends.tolist()
    there = ends.cuda()

    def loop() -> None:
        for group, stop in enumerate(stops):
            torch.mm(a[starts[group] : stop], b[group], out=d[starts[group] : stop])

    calls: dict[str, Callable[[], object]] = {
        GROUPED: lambda: ops.gemm_grouped(a, b, there, out=d), "cuBLAS for each expert": loop
    }  # fmt: skip
    if hasattr(torch, "_grouped_mm"):
        calls["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b, offs=there)
    return calls
