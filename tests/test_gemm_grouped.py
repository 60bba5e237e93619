"""`ops.gemm_grouped`: groups of rows of any sizes, on the emulator with all checks, against NumPy on small integers."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import EmulationError, ops
from tilewright.base import settings
from tilewright.emulate import observe
from tilewright.kernels import gemm_grouped as kernels
from tilewright.kernels import gemm_sm90_calls

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def whole(seed, shape, dtype=BF16):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def exact(a, b, ends):
    """The product of each group; rows behind the last one are zeros."""
    out, start = np.zeros((a.shape[0], b.shape[2])), 0
    for group, end in enumerate(np.minimum(ends, a.shape[0])):
        out[start:end] = wide(a)[start:end] @ wide(b)[group]
        start = max(start, end)
    return out


def operands(rows=300, columns=136, depth=72, groups=4, dtype=BF16):
    return whole(0, (rows, depth), dtype), whole(1, (groups, depth, columns), dtype)


def ends_of(*rows):
    return np.array(rows, np.int32)


@pytest.mark.parametrize(
    "ends", [(5, 100, 130, 299), (0, 0, 300, 300), (64, 128, 192, 256), (100, 100, 150, 1000)],
    ids=["some rows are left", "empty groups", "whole tiles", "an end behind all rows"],
)  # fmt: skip
def test_gemm_grouped_correctness(ends):
    a, b = operands()
    with on_emulator(), observe() as reports:
        found = ops.gemm_grouped(a, b, ends_of(*ends))
    assert [report.kernel for report in reports] == ["gemm_sm90_grouped_kernel"]
    np.testing.assert_array_equal(wide(found), exact(a, b, ends))
    np.testing.assert_array_equal(ops.gemm_grouped(a, b, ends_of(*ends)), found)  # the reference


def test_ends_that_fall_are_found_by_the_emulator():
    a, b = operands()
    with on_emulator(), pytest.raises(EmulationError, match="Race"):
        ops.gemm_grouped(a, b, ends_of(100, 100, 90, 300))


@pytest.mark.parametrize(
    "plan",
    [
        {"tile": (128, 64, 64), "cluster": (2, 1)},
        {"tile": (64, 64, 64), "cluster": (1, 2), "pingpong": True},
        {"tile": (128, 128, 64), "pingpong": True},
    ],
    ids=str,
)
def test_plans_correctness(plan, monkeypatch):
    """Two clusters go through the tiles of 44 groups, most of which have no rows."""
    monkeypatch.setattr(gemm_sm90_calls, "resident_clusters", lambda gpu, size: 2)
    monkeypatch.setattr(kernels, "_calls", {})
    ends = ends_of(5, 100, 130, *[200] * 39, 299)
    a, b = operands(rows=300, groups=len(ends))
    out = np.zeros((300, 136), BF16)
    chosen = dataclasses.replace(kernels.plans_of(out, a, b)[0], **{"pingpong": False, "stages": 3, **plan})
    with on_emulator():
        kernels.gemm_grouped(out, a, b, ends, plan=chosen)
    np.testing.assert_array_equal(wide(out), exact(a, b, ends))


@pytest.mark.parametrize(
    ("dtype", "result"), [(np.float16, np.float32), (np.float32, np.float32), (E4M3, BF16)],
    ids=lambda dtype: np.dtype(dtype).name,
)  # fmt: skip
def test_types_correctness(dtype, result):
    a, b = whole(0, (100, 64), dtype), whole(1, (2, 48, 64), dtype).swapaxes(1, 2)
    out = np.zeros((100, 48), result)
    with on_emulator():
        assert ops.gemm_grouped(a, b, ends_of(37, 100), out=out) is out
    np.testing.assert_array_equal(wide(out), exact(a, b, (37, 100)))


@pytest.mark.parametrize("case", ["another chip", "an odd stride", "no rows", "no products"])
def test_elsewhere_there_is_a_product_for_each_group(case):
    a, b = operands(rows=0 if case == "no rows" else 50, columns=40, depth=0 if case == "no products" else 72, groups=2)
    if case == "an odd stride":
        a = whole(0, (50, 73))[:, 1:]
    ends = ends_of(20, 50)
    with on_emulator(), settings.scope(arch="sm_80" if case == "another chip" else "sm_90a"), observe() as reports:
        found = ops.gemm_grouped(a, b, ends)
    assert all(report.kernel == "gemm_sm80_kernel" for report in reports)
    np.testing.assert_array_equal(wide(found), exact(a, b, ends))


def test_gradients_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    a, b = (
        torch.from_numpy(wide(x)).float().requires_grad_() for x in operands(rows=40, columns=16, depth=24, groups=3)
    )
    ends, grad = torch.tensor([11, 11, 35], dtype=torch.int32), torch.from_numpy(wide(whole(3, (40, 16)))).float()
    slices = ((0, 11), (11, 11), (11, 35), (35, 40))
    wanted = torch.cat([a[start:end] @ (b[g] if g < 3 else b[0] * 0) for g, (start, end) in enumerate(slices)])
    expected = torch.autograd.grad(wanted, (a, b), grad)
    for scope in (on_emulator(), settings.scope()):
        with scope:
            found = ops.gemm_grouped(a, b, ends)
            assert torch.equal(found, wanted)
            for mine, theirs in zip(torch.autograd.grad(found, (a, b), grad), expected, strict=True):
                assert torch.equal(mine, theirs)


def test_compiled_by_pytorch():
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(wide(x)).float() for x in operands(rows=20, columns=16, depth=24, groups=2))
    ends = torch.tensor([7, 20], dtype=torch.int32)
    compiled = torch.compile(ops.gemm_grouped, backend="eager", fullgraph=True)
    assert torch.equal(compiled(a, b, ends), ops.gemm_grouped(a, b, ends))


A, B = operands(rows=20, columns=16, depth=24, groups=2)
ENDS = ends_of(7, 20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((A, B[0], ENDS), "b has 2 dimensions, not 3"),
        ((A, B, ENDS.astype(np.int64)), "ends has dtype int64"),
        ((A, B, ENDS[:1]), "ends has another number of groups than b"),
        ((A[:, :8], B, ENDS), "each matrix of b needs as many rows as a has columns"),
        ((A.astype(np.float16), B, ENDS), "a and b have different dtypes"),
        ((A.astype(np.int8), B.astype(np.int8), ENDS), "a has dtype int8"),
        ((A, B, ENDS, np.zeros((20, 17), BF16)), "out has another shape than the result"),
        ((A, B, ENDS, np.zeros((20, 16))), "out has dtype float64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        ops.gemm_grouped(*arguments)


def test_a_result_that_is_given_has_no_gradient():
    torch = pytest.importorskip("torch")
    a, b = torch.zeros(4, 8, requires_grad=True), torch.zeros(1, 8, 8)
    with pytest.raises(ValueError, match="gemm_grouped: a result in out= has no gradient"):
        ops.gemm_grouped(a, b, torch.tensor([4], dtype=torch.int32), out=torch.zeros(4, 8))
