"""`ops.gemm` of 16 bits times 8, which threads convert, on the emulator with all checks, against NumPy."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import ops
from tilewright.base import settings
from tilewright.emulate import observe
from tilewright.kernels import gemm_mixed as kernels
from tilewright.kernels import gemm_sm90_calls

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def whole(seed, shape, dtype):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def exact(a, b, dtype):
    """The product, rounded once."""
    return (wide(a) @ wide(b)).astype(dtype)


@pytest.mark.parametrize(
    ("narrow", "side", "dtype"),
    [
        (np.int8, "left", BF16), (np.int8, "right", np.float16), (E4M3, "right", BF16), (E4M3, "left", np.float16),
        (E5M2, "right", BF16),
    ],
    ids=lambda value: value if isinstance(value, str) else np.dtype(value).name,
)  # fmt: skip
def test_gemm_mixed_correctness(narrow, side, dtype):
    a = whole(0, (72, 144), narrow if side == "left" else dtype)
    b = whole(1, (40, 144), dtype if side == "left" else narrow).T
    with on_emulator(), observe(counters=True) as reports:
        found = ops.gemm(a, b)
    assert [report.kernel for report in reports] == ["gemm_sm90_kernel"] and reports[0].bank_conflicts == 0
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, exact(a, b, dtype))
    np.testing.assert_array_equal(ops.gemm(a, b), found)  # the reference


def test_all_bytes_are_converted_as_they_should_be():
    """Each int8 and each finite float8 meets a 1."""
    bytes_ = np.arange(256, dtype=np.uint8)
    for dtype in (np.int8, E4M3, E5M2):
        values = bytes_.view(dtype)
        values = np.where(np.isfinite(wide(values)), wide(values), 0).astype(dtype)
        with on_emulator():
            found = ops.gemm(np.eye(256, dtype=BF16), np.ascontiguousarray(values[None].repeat(16, 0)).T)
        np.testing.assert_array_equal(wide(found), wide(values)[:, None].repeat(16, 1))


@pytest.mark.parametrize(
    "plan",
    [
        {"tile": (128, 64, 64), "cluster": (2, 1)},
        {"tile": (64, 128, 64), "cluster": (1, 2), "pingpong": True, "stages": 2},
        {"tile": (128, 128, 64)},
        {"tile": (64, 64, 64), "pingpong": True, "splits": 2},
    ],
    ids=str,
)
def test_plans_correctness(plan, monkeypatch):
    monkeypatch.setattr(gemm_sm90_calls, "resident_clusters", lambda gpu, size: 2)
    a, b, out = whole(0, (200, 336), np.int8), whole(1, (336, 136), BF16), np.empty((200, 136), BF16)
    chosen = dataclasses.replace(
        kernels.plans_of(out, a, b)[0], **{"pingpong": False, "stages": 3, "splits": 1, **plan}
    )
    kernels.gemm_mixed(out, a, b, plan=chosen)
    np.testing.assert_array_equal(out, exact(a, b, BF16))


@pytest.mark.parametrize("pingpong", [False, True])
def test_the_assembler_neither_serialises_nor_spills(pingpong):
    a, b, out = whole(0, (128, 64), np.int8), whole(1, (64, 128), BF16), np.empty((128, 128), BF16)
    plan = dataclasses.replace(kernels.plans_of(out, a, b)[0], tile=(128, 128, 64), stages=4, pingpong=pingpong)
    report = gemm_sm90_calls.compiled(plan, None, 2, "emu").report().kernels[0]
    assert (report.spill_stores, report.spill_loads, report.warnings) == (0, 0, ())


@pytest.mark.parametrize("case", ["a batch", "rows of K", "an odd stride", "another chip", "a result of odd strides"])
def test_other_operands(case):
    a, b, out = whole(0, (40, 64), BF16), whole(1, (64, 48), np.int8), np.empty((40, 48), np.float32)
    if case == "a batch":
        a, out = whole(0, (3, 40, 64), BF16), np.empty((3, 40, 48), np.float32)
    if case == "an odd stride":
        a = whole(0, (40, 67), BF16)[:, 3:]
    if case == "a result of odd strides":
        out = np.empty((40, 49), np.float32)[:, 1:]
    with on_emulator(), settings.scope(arch="sm_80" if case == "another chip" else "sm_90a"):
        ops.gemm(a, b, out=out)
        ops.gemm(a, b, batch_invariant=True)
    np.testing.assert_array_equal(out, exact(a, b, np.float32))


def test_tensors_of_pytorch_and_the_gradient_of_the_wide_one():
    torch = pytest.importorskip("torch")
    a = torch.randint(-2, 3, (24, 32)).bfloat16().requires_grad_()
    b = torch.randint(-2, 3, (32, 16), dtype=torch.int8)
    with on_emulator():
        found = ops.gemm(a, b)
        (grad,) = torch.autograd.grad(found, a, torch.ones_like(found))
    assert found.dtype == torch.bfloat16 and torch.equal(found.float(), a.float() @ b.float())
    assert torch.equal(grad.float(), torch.ones(24, 16) @ b.float().T)


def test_wrong_pairs():
    a, b = whole(0, (8, 8), np.float32), whole(1, (8, 8), np.int8)
    with pytest.raises(ValueError, match="a and b have different dtypes"):
        ops.gemm(a, b)
    with pytest.raises(ValueError, match="operands of different dtypes have no epilogue"):
        ops.gemm(a.astype(BF16), b, lambda accum: accum)
