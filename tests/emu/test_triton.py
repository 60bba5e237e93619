"""PTX of Triton (scripts/build_triton_ptx.py) runs, without findings, and gives what NumPy gives."""

import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.emulate import run_ptx

FOLDER = Path(__file__).parent / "data" / "triton"
KERNELS = {row["kernel"]: row for row in json.loads((FOLDER / "manifest.json").read_text())["kernels"]}
RNG = np.random.default_rng(11)


def run(name, grid, args, **options):
    """Two hidden parameters point to scratch memory, which these kernels do not use."""
    row = KERNELS[name]
    text = (FOLDER / f"{name}.ptx").read_text()
    report = run_ptx(text, name, grid, 32 * row["warps"], [*args, None, None], smem=row["shared"], **options)
    assert report.ok
    return report


MODES = pytest.mark.parametrize("options", [{}, {"seed": 2}, {"checks": False}], ids=["checked", "seeded", "unchecked"])


@MODES
def test_vector_add(options):
    a, b = RNG.standard_normal((2, 1000)).astype(np.float32)
    out = np.zeros_like(a)
    run("vector_add", 4, [a, b, out, 1000], **options)
    np.testing.assert_array_equal(out, a + b)


@MODES
def test_softmax(options):
    a = RNG.standard_normal((3, 500)).astype(np.float32)
    out = np.zeros_like(a)
    run("softmax", 3, [a, out, 500], **options)
    e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


@MODES
def test_layer_norm(options):
    a, weight, bias = RNG.standard_normal((3, 480)), *RNG.standard_normal((2, 480))
    a, weight, bias = (x.astype(np.float32) for x in (a, weight, bias))
    out = np.zeros_like(a)
    run("layer_norm", 3, [a, weight, bias, out, 480, 1e-5], **options)
    x = a.astype(np.float64)
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


@MODES
def test_matmul_is_exact_on_small_integers(options):
    a, b = RNG.integers(-4, 5, (128, 96)).astype(np.float16), RNG.integers(-4, 5, (96, 64)).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    run("matmul", (2, 1), [a, b, c, 128, 64, 96], **options)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@MODES
def test_attention(options):
    q, k, v = (0.5 * RNG.standard_normal((3, 128, 64))).astype(np.float16)
    out = np.zeros((128, 64), np.float32)
    run("attention", 2, [q, k, v, out, 128, 0.125], **options)
    s = q.astype(np.float64) @ k.T.astype(np.float64) * 0.125
    s[np.triu_indices(128, 1)] = -np.inf
    p = np.exp(s - s.max(axis=1, keepdims=True))
    wanted = p / p.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, wanted, atol=2e-3)


@MODES
def test_running_sum(options):
    a = RNG.integers(-100, 100, (2, 500)).astype(np.int32)
    out = np.zeros_like(a)
    run("running_sum", 2, [a, out, 500], **options)
    np.testing.assert_array_equal(out, a.cumsum(axis=1))


@MODES
def test_histogram(options):
    a = RNG.integers(0, 10, 900).astype(np.int32)
    counts = np.zeros(10, np.int32)
    run("histogram", 4, [a, counts, 900], **options)
    np.testing.assert_array_equal(counts, np.bincount(a, minlength=10))


@MODES
def test_sort(options):
    a = RNG.integers(-1000, 1000, (2, 128)).astype(np.int32)
    out = np.zeros_like(a)
    run("sort_rows", 2, [a, out], **options)
    np.testing.assert_array_equal(out, np.sort(a, axis=1))


@MODES
def test_transpose(options):
    a = RNG.standard_normal((40, 70)).astype(np.float32)
    out = np.zeros((70, 40), np.float32)
    run("transpose", (2, 3), [a, out, 40, 70], **options)
    np.testing.assert_array_equal(out, a.T)


@MODES
def test_argmax(options):
    a = RNG.standard_normal((3, 400)).astype(np.float32)
    a[1, [7, 300]] = 9
    out = np.zeros(3, np.int32)
    run("argmax_rows", 3, [a, out, 400], **options)
    np.testing.assert_array_equal(out, a.argmax(axis=1))


@MODES
def test_gelu_in_bf16(options):
    a = RNG.standard_normal(300).astype(ml_dtypes.bfloat16)
    out = np.zeros_like(a)
    run("gelu", 2, [a, out, 300], **options)
    x = a.astype(np.float64)
    wanted = 0.5 * x * (1 + np.array([math.erf(v / math.sqrt(2)) for v in x]))
    np.testing.assert_allclose(out.astype(np.float64), wanted, rtol=2**-8, atol=1e-6)


@MODES
def test_int8_matmul(options):
    a, b = RNG.integers(-128, 128, (2, 64, 64)).astype(np.int8)
    c = np.zeros((64, 64), np.int32)
    run("int8_matmul", (2, 2), [a, b, c, 64], **options)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.T.astype(np.int32))
