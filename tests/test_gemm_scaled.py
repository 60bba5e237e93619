"""`ops.gemm_scaled`: scales of tensors, rows and columns. They are powers of two, so that NumPy has the same bits."""

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import ops
from tilewright.emulate import observe

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def whole(seed, shape, dtype):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def powers(seed, shape):
    return np.exp2(np.random.default_rng(seed).integers(-3, 4, shape)).astype(np.float32)


def exact(a, b, scale_a, scale_b, bias=0.0):
    return (wide(a) * scale_a) @ (wide(b) * scale_b) + wide(np.asarray(bias))


@pytest.mark.parametrize("dtype", [E4M3, E5M2, np.int8, BF16], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("kind", ["numbers", "tensors", "rows and columns"])
def test_scales(dtype, kind):
    a, b = whole(0, (72, 128), dtype), whole(1, (48, 128), dtype).T
    shapes = {"tensors": ((), (1,)), "rows and columns": ((72, 1), (48,))}.get(kind)
    scale_a, scale_b = (0.5, 4) if shapes is None else map(powers, (2, 3), shapes)
    with on_emulator(), observe() as reports:
        found = ops.gemm_scaled(a, b, scale_a, scale_b)
    assert [report.kernel for report in reports] == ["gemm_sm90_kernel"]
    assert found.dtype == BF16
    np.testing.assert_array_equal(found, exact(a, b, scale_a, scale_b).astype(BF16))
    np.testing.assert_array_equal(ops.gemm_scaled(a, b, scale_a, scale_b), found)  # the reference


def test_bias_result_and_batch():
    a, b = whole(0, (2, 40, 64), E4M3), whole(1, (48, 64), E4M3).T
    bias, scale_a = whole(2, (48,), np.float32), powers(3, (2, 40, 1))
    with on_emulator():
        found = ops.gemm_scaled(a, b, scale_a, 0.25, bias, dtype="float32")
        out = np.empty((2, 48, 40), np.float16).swapaxes(1, 2)
        assert ops.gemm_scaled(a, b, scale_a, 0.25, out=out) is out
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, exact(a, b, scale_a, 0.25, bias))
    np.testing.assert_array_equal(wide(out), exact(a, b, scale_a, 0.25))


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-2, 3, (32, 64)).to(torch.float8_e4m3fn) for _ in range(2))
    scale = torch.tensor(0.5)
    with on_emulator():
        found = ops.gemm_scaled(a, b.T, scale, 2.0, dtype="float32")
    assert found.dtype == torch.float32 and torch.equal(found, a.float() @ b.float().T)


A = whole(0, (32, 64), E4M3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((A, A.T, np.ones((32, 4), np.float32), 1.0), "scale_a has neither one element nor one for each row of a"),
        ((A, A.T, 1.0, np.ones(31, np.float32)), "scale_b has neither one element nor one for each column of b"),
        ((A, A.T, np.ones(32), 1.0), "scale_a has dtype float64"),
        ((A, A.T, None, 1.0), "scale_a is a tensor of PyTorch or an array of NumPy, not NoneType"),
        ((A[0], A.T, 1.0, 1.0), "a needs at least two dimensions"),
        ((A, A, 1.0, 1.0), "a needs as many columns as b has rows"),
        ((A, A.T, 1.0, 1.0, None, None, "int32"), "the result has dtype int32"),
        ((A.astype(np.float64), A.T, 1.0, 1.0), "a has dtype float64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        ops.gemm_scaled(*arguments)
