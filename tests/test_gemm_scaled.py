"""`ops.gemm_scaled`: scales of tensors, rows and columns. They are powers of two, so that NumPy has the same bits."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import ops
from tilewright.base import settings
from tilewright.emulate import observe
from tilewright.kernels import gemm_sm90_calls
from tilewright.kernels import gemm_sm90_scaled as kernels

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def whole(seed, shape, dtype):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def powers(seed, shape):
    return np.exp2(np.random.default_rng(seed).integers(-3, 4, shape)).astype(np.float32)


def exact(a, b, scale_a, scale_b, bias=0.0):
    return (wide(a) * scale_a) @ (wide(b) * scale_b) + wide(np.asarray(bias))


@pytest.mark.parametrize("dtype", [E4M3, E5M2, np.int8, BF16], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("kind", ["numbers", "tensors", "rows and columns"])
def test_gemm_scaled_correctness(dtype, kind):
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


def test_compiled_by_pytorch():
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-2, 3, (32, 64)).to(torch.float8_e4m3fn) for _ in range(2))

    @torch.compile(fullgraph=True, backend="aot_eager")
    def product(a, b, scale):
        return ops.gemm_scaled(a, b.T, scale, 2.0, dtype="float32") + 1

    with on_emulator():
        found = product(a, b, torch.tensor(0.5))
    assert torch.equal(found, a.float() @ b.float().T + 1)


def blocks(m, n, k, seed=4):
    """Scales of blocks, and what they are for each element."""
    deep, across = -(-k // 128), -(-n // 128)
    scale_a, scale_b = powers(seed, (m, deep)), powers(seed + 1, (deep, across))
    of_a, of_b = scale_a.repeat(128, 1)[:, :k], scale_b.repeat(128, 0).repeat(128, 1)[:k, :n]
    return (scale_a, scale_b), (of_a, of_b)


@pytest.mark.parametrize(
    ("shape", "dtype", "result"),
    [((200, 264, 400), E4M3, "float32"), ((130, 16, 128 * 3), E5M2, "bfloat16"), ((5, 300, 512), E4M3, "float16")],
    ids=str,
)
def test_scales_of_blocks(shape, dtype, result):
    m, n, k = shape
    a, b = whole(0, (m, k), dtype), whole(1, (n, k), dtype).T
    scales, spread = blocks(*shape)
    with on_emulator(), observe() as reports:
        found = ops.gemm_scaled(a, b, *scales, dtype=result)
    assert reports[0].kernel == "gemm_sm90_scaled_kernel"
    wanted = ((wide(a) * spread[0]) @ (wide(b) * spread[1])).astype(found.dtype)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(ops.gemm_scaled(a, b, *scales, dtype=result), wanted)  # the reference


def test_scales_of_blocks_of_any_strides():
    """K is contiguous in neither matrix, nor is its extent a multiple of 16; D has rows of odd strides."""
    a, b = whole(0, (203, 40), E4M3).T, whole(1, (203, 56), E4M3)
    scales, spread = blocks(40, 56, 203)
    out = np.empty((40, 57), np.float32)[:, 1:]
    with on_emulator():
        assert ops.gemm_scaled(a, b, *scales, out=out) is out
    np.testing.assert_array_equal(out, (wide(a) * spread[0]) @ (wide(b) * spread[1]))


def test_a_block_goes_through_many_scaled_tiles(monkeypatch):
    monkeypatch.setattr(gemm_sm90_calls, "resident_clusters", lambda gpu, size: 1)
    a, b = whole(0, (300, 272), E4M3), whole(1, (256, 272), E4M3).T
    scales, spread = blocks(300, 256, 272)
    out = np.empty((300, 256), np.float32)
    plan = dataclasses.replace(kernels.plans_of(out, a, b)[0], cluster=(2, 1), stages=2)
    kernels.gemm_scaled_blocks(out, a, b, *scales, plan=plan)
    np.testing.assert_array_equal(out, (wide(a) * spread[0]) @ (wide(b) * spread[1]))


def test_the_assembler_neither_serialises_nor_spills():
    a, out = whole(0, (256, 256), E4M3), np.empty((256, 256), BF16)
    report = kernels.compiled(kernels.plans_of(out, a, a.T)[0], "emu").report().kernels[0]
    assert (report.spill_stores, report.spill_loads, report.warnings) == (0, 0, ())


def test_scales_of_blocks_need_wgmma():
    a = whole(0, (32, 256), E4M3)
    with on_emulator(), settings.scope(arch="sm_80"), pytest.raises(ValueError, match="scales of blocks need wgmma"):
        ops.gemm_scaled(a, a.T, *blocks(32, 32, 256)[0])


def test_tensors_of_pytorch_with_scales_of_blocks():
    torch = pytest.importorskip("torch")
    a = torch.randint(-2, 3, (32, 256)).to(torch.float8_e4m3fn)
    scales, spread = blocks(32, 32, 256)
    with on_emulator():
        found = ops.gemm_scaled(a, a.T, *map(torch.from_numpy, scales), dtype="float32")
    wanted = (a.float().numpy() * spread[0]) @ (a.T.float().numpy() * spread[1])
    assert found.numpy().tolist() == wanted.tolist()


A = whole(0, (32, 64), E4M3)
LONG, OF_BLOCKS = whole(0, (32, 256), E4M3), blocks(32, 32, 256)[0]


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
        ((LONG, LONG.T, *OF_BLOCKS, np.ones(32, np.float32)), "scales of blocks go with one product of 8-bit floats"),
        ((LONG.astype(BF16), LONG.T.astype(BF16), *OF_BLOCKS), "scales of blocks go with one product of 8-bit floats"),
        ((LONG, LONG.T, *OF_BLOCKS, None, np.zeros((32, 31), BF16)), "out is not like the result"),
        ((LONG, LONG.T[:200], *OF_BLOCKS), "a needs as many columns as b has rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        ops.gemm_scaled(*arguments)
