"""Runs a step of docs/gemm.md: exact on the emulator at a small size; on a GPU, checked and timed at a large one."""

import importlib
import importlib.util

import ml_dtypes
import numpy as np

import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.emulate import observe

LARGE = 4096, 4096, 4096
WARM_UP, CALLS = 30, 50
ROWS_CHECKED = 64


def main(gemm, shape, **options):
    """Check C = A Bᵀ on the emulator, then check and time it where there is a GPU and PyTorch.

    `gemm` is a jit function of A (M, K), B (N, K) and C (M, N), all bfloat16 with contiguous rows; `shape`, (M, N, K),
    and `options` are what it is given on the emulator.
    """
    report = check(gemm, shape, **options)
    print(f"{shape}: exact on the emulator, {report}")
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            measure(gemm, torch, LARGE)


def check(gemm, shape, **options):
    """Run the step on the emulator on small integers, whose products and sums are exact in float32; what it counted."""
    m, n, k = shape
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-2, 3, (rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    c = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    tensors = as_tensors(a, b, c)
    compiled = cute.compile(gemm, *tensors, target="emu", **options)
    with observe(counters=True) as reports:
        compiled(*tensors)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(c, exact.astype(ml_dtypes.bfloat16))
    return reports[0]


def measure(gemm, torch, shape):
    """Check some rows on the GPU in float64, and print the step's rate beside that of cuBLAS."""
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").bfloat16() for rows in (m, n))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    tensors = as_tensors(a, b, c)
    compiled = cute.compile(gemm, *tensors)
    compiled(*tensors)
    exact = a[:ROWS_CHECKED].double() @ b.double().T
    error = (c[:ROWS_CHECKED].double() - exact).norm() / exact.norm()
    assert error < 8e-3, f"the relative error is {error:.1e}"
    for name, call in (("this step", lambda: compiled(*tensors)), ("cuBLAS", lambda: torch.mm(a, b.T, out=c))):
        seconds = _seconds(torch, call)
        print(f"{shape}: {name} {seconds * 1e6:.1f} µs, {2 * m * n * k / seconds * 1e-12:.0f} TFLOP/s")


def as_tensors(*matrices):
    """The matrices, with extents and strides of run time; rows are contiguous, and multiples of 16 bytes."""
    return [
        from_dlpack(matrix, assumed_align=16)
        .mark_layout_dynamic(leading_dim=1)
        .mark_compact_shape_dynamic(mode=1, divisibility=8)
        for matrix in matrices
    ]


def _seconds(torch, call):
    """The median time of a call on the device."""
    for _ in range(WARM_UP):
        call()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(CALLS)]
    for start, end in events:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return float(np.median([start.elapsed_time(end) for start, end in events])) * 1e-3
