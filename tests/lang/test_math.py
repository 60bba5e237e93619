"""Mathematical functions in kernels, in host functions and on vectors, against NumPy in float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

N = 64
UNARY = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "acos": np.arccos, "asin": np.arcsin,
    "atan": np.arctan,
    "tanh": np.tanh, "erf": np.vectorize(math.erf), "floor": np.floor, "ceil": np.ceil, "absf": np.abs,
    "cbrt": np.cbrt, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "erfc": np.vectorize(math.erfc),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "roundeven": np.rint, "trunc": np.trunc,
    "rcp": lambda x: 1 / x, "abs": np.abs,
}  # fmt: skip
BINARY = {
    "atan2": np.arctan2, "copysign": np.copysign, "pow": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
NAMES = [*UNARY, *BINARY]
# Bits that the result may be off by, in units of the last place; CUDA's own bounds are at most 2 (pow 4).
ULPS = {np.float16: 1, ml_dtypes.bfloat16: 1, np.float32: 4, np.float64: 3}
EPSILON = {np.float16: 2.0**-10, ml_dtypes.bfloat16: 2.0**-7, np.float32: 2.0**-23, np.float64: 2.0**-52}


@cute.jit
def every_function(x, y, out: cute.Tensor, i):
    for row, name in enumerate(NAMES):
        function = getattr(cute.math, name)
        out[row, i] = function(x) if name in UNARY else function(x, y)


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    every_function(x[i], y[i], out, i)


@cute.jit
def on_device(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    kernel(x, y, out).launch(grid=1, block=N)


@cute.jit
def on_host(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    for i in range(N):
        every_function(x[i], y[i], out, i)


@pytest.mark.parametrize("place", [on_device, on_host], ids=["device", "host"])
@pytest.mark.parametrize("kind", ULPS, ids=lambda kind: np.dtype(kind).name)
def test_functions(kind, place):
    random = np.random.default_rng(3)
    x, y = (random.uniform(0.05, 0.95, N).astype(kind) for _ in range(2))
    y[::2] = -y[::2]
    out = np.zeros((len(NAMES), N), kind)
    cute.compile(place, x, y, out)(x, y, out)
    a, b = x.astype(np.float64), y.astype(np.float64)
    for row, name in enumerate(NAMES):
        exact = UNARY[name](a) if name in UNARY else BINARY[name](a, b)
        off = np.abs(out[row].astype(np.float64) - exact)
        bound = ULPS[kind] * EPSILON[kind] * np.abs(exact) + 1e-30
        assert (off <= bound).all(), (name, float((off / bound).max()))


def test_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 1e-45], np.float32)
    names = ["sqrt", "exp", "log", "floor", "rsqrt", "absf"]

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        for row, name in enumerate(names):
            out[row, i] = getattr(cute.math, name)(x[i])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=8)

    out = np.zeros((len(names), 8), np.float32)
    cute.compile(host, x, out)(x, out)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        for row, name in enumerate(names):
            np.testing.assert_allclose(out[row], UNARY[name](wide).astype(np.float32), rtol=1e-6)


def test_integers_and_python_numbers_become_floats():
    @cute.jit
    def host(out: cute.Tensor, n: cute.Int32):
        out[0] = cute.math.sqrt(n)
        out[1] = cute.math.exp2(3)
        out[2] = cute.math.pow(n, 2)
        out[3] = cute.math.atan2(1.0, n)

    out = np.zeros(4, np.float32)
    cute.compile(host, out, 16)(out, 16)
    assert np.allclose(out, [4, 8, 256, math.atan2(1, 16)], rtol=1e-6)


def test_approximate_functions_use_approximate_instructions():
    def body(x, out):
        i = cute.arch.thread_idx()[0]
        values = cute.full(4, x[i], cutlass.Float32)
        roots = cute.math.sqrt(values, fastmath=True)[3] + cute.math.sqrt(x[i], fastmath=True)
        out[i] = cute.math.exp2(x[i], fastmath=True) + cute.math.sin(x[i], fastmath=True) + roots

    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=N)

    x, out = np.linspace(0, 1, N).astype(np.float32), np.zeros(N, np.float32)
    executor = cute.compile(host, x, out)
    executor(x, out)
    assert np.allclose(out, np.exp2(x) + np.sin(x) + 2 * np.sqrt(x), rtol=1e-5)
    assert all(
        name in executor.stages["ptx"] for name in ("ex2.approx.ftz.f32", "sin.approx.ftz.f32", "sqrt.approx.ftz.f32")
    )
    assert "sqrt.rn" not in executor.stages["ptx"]


FAST = {
    "exp": "ex2.approx.ftz.f32", "exp2": "ex2.approx.ftz.f32", "log": "lg2.approx.ftz.f32",
    "log2": "lg2.approx.ftz.f32", "log10": "lg2.approx.ftz.f32", "sin": "sin.approx.ftz.f32",
    "cos": "cos.approx.ftz.f32", "rsqrt": "rsqrt.approx.ftz.f32", "sqrt": "sqrt.approx.ftz.f32",
    "tanh": "tanh.approx.f32",
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_fast_math_is_one_approximate_instruction(name):
    def body(x, out):
        i = cute.arch.thread_idx()[0]
        out[i] = getattr(cute.math, name)(x[i], fastmath=True)

    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=N)

    x, out = np.linspace(0.25, 2, N).astype(np.float32), np.zeros(N, np.float32)
    executor = cute.compile(host, x, out)
    executor(x, out)
    wanted = 1 / np.sqrt(x) if name == "rsqrt" else getattr(np, name)(x)
    np.testing.assert_allclose(out, wanted, rtol=2**-10, atol=2**-20)
    assert executor.stages["ptx"].count(FAST[name]) == executor.stages["ptx"].count("approx") == 1


def test_square_roots_are_rounded_to_nearest():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = cute.math.sqrt(x[i])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=N)

    x, out = np.linspace(0, 9, N).astype(np.float32), np.zeros(N, np.float32)
    executor = cute.compile(host, x, out)
    executor(x, out)
    assert "sqrt.rn.f32" in executor.stages["ptx"]
    np.testing.assert_array_equal(out, np.sqrt(x))


def test_vectors():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        values = x.load()
        out[0, None].store(cute.math.exp(values))
        out[1, None].store(cute.math.sqrt(values))
        out[2, None].store(cute.math.tanh(values))
        out[3, None].store(cute.math.pow(values, 3.0))
        out[4, None].store(cute.math.atan2(values, values + 1.0))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    x, out = np.linspace(0.1, 2, 8).astype(np.float32), np.zeros((5, 8), np.float32)
    arguments = from_dlpack(x), from_dlpack(out)
    cute.compile(host, *arguments)(*arguments)
    wide = x.astype(np.float64)
    wanted = [np.exp(wide), np.sqrt(wide), np.tanh(wide), wide**3, np.arctan2(wide, wide + 1)]
    assert np.allclose(out, wanted, rtol=1e-6)


def test_vectors_that_are_not_finite_with_a_number():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, n: cutlass.Float32):
        values = x.load()
        out[0, None].store(cute.math.pow(values, 0.0))
        out[1, None].store(cute.math.pow(values, n))
        out[2, None].store(cute.math.copysign(1.0, values))
        out[3, None].store(cute.math.atan2(n, values))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: cutlass.Float32):
        kernel(x, out, n).launch(grid=1, block=1)

    x, out = np.array([np.inf, -np.inf, np.nan, -2], np.float32), np.zeros((4, 4), np.float32)
    arguments = from_dlpack(x), from_dlpack(out), 2.0
    cute.compile(host, *arguments)(*arguments)
    wide = x.astype(np.float64)
    wanted = [[1, 1, 1, 1], wide**2, np.copysign(1, wide), np.arctan2(2, wide)]
    assert np.allclose(out[:2], wanted[:2], equal_nan=True) and np.allclose(out[3], wanted[3], equal_nan=True)
    assert np.array_equal(out[2], wanted[2])


@cute.jit
def more(x, y, z, out: cute.Tensor, i):
    m = cute.math
    out[0, i] = m.fma(x, y, z)
    out[1, i] = m.clamp(x, -1.0, 1.5)
    out[2, i] = m.acosh(m.abs(x) + 1.0)
    out[3, i], out[4, i] = m.sincos(x)
    out[5, i] = m.min(x, y, propagate_nan=True)
    out[6, i] = m.max(x, y)
    out[7, i] = cutlass.Float32(m.isnan(x)) + 2 * cutlass.Float32(m.isinf(x)) + 4 * cutlass.Float32(m.isfinite(x))
    out[8, i] = m.round(x)
    out[9, i] = m.roundeven(x)


@cute.kernel
def more_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    more(x[i], y[i], z[i], out, i)


@cute.jit
def more_on_device(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor):
    more_kernel(x, y, z, out).launch(grid=1, block=8)


@cute.jit
def more_on_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor):
    for i in range(8):
        more(x[i], y[i], z[i], out, i)


@pytest.mark.parametrize("place", [more_on_device, more_on_host], ids=["device", "host"])
def test_functions_of_several_numbers(place):
    x = np.array([0.5, -1.5, 2.5, 1e20, np.nan, np.inf, -np.inf, 3.3], np.float32)
    y = np.array([3, -2, np.nan, 1e20, 1, 2, 3, 4], np.float32)
    z = np.array([1, 2, 3, -1e38, 5, 6, 7, 8], np.float32)
    out = np.zeros((10, 8), np.float32)
    cute.compile(place, x, y, z, out)(x, y, z, out)
    a, b, c = (item.astype(np.float64) for item in (x, y, z))
    with np.errstate(all="ignore"):
        exact = (a * b + c).astype(np.float32)
        expected = {
            0: exact, 1: np.clip(np.where(np.isnan(a), 1.5, a), -1, 1.5), 2: np.arccosh(np.abs(a) + 1), 3: np.sin(a),
            4: np.cos(a), 5: np.minimum(a, b), 6: np.fmax(a, b),
            7: np.isnan(a) + 2 * np.isinf(a) + 4 * np.isfinite(a),
            8: np.copysign(np.floor(np.abs(a) + 0.5), a), 9: np.rint(a),
        }  # fmt: skip
    for row, values in expected.items():
        np.testing.assert_allclose(out[row], values.astype(np.float32), rtol=4e-7, atol=1e-7, err_msg=str(row))


def test_vectors_and_fast_forms():
    def body(x: cute.Tensor, out: cute.Tensor):
        v = x.load()
        m = cute.math
        out[None, 0].store(m.fma(v, v, 1.0))
        out[None, 1].store(m.max(v, 0.0))
        out[None, 2].store(m.clamp(v, -0.5, 0.5))
        out[None, 3].store(m.rcp(v, approx=True, ftz=True))
        out[None, 4].store(m.exp2(v, approx=True, ftz=True))
        out[None, 5].store(m.abs(v))
        out[0, 6] = m.rcp(x[0], approx=True)
        out[1, 6] = cutlass.Float32(m.abs(cutlass.Int32(-7)))
        out[2, 6] = cutlass.Float32(m.min(cutlass.Int32(-7), 3))
        out[3, 6] = m.min(x[0], x[1], propagate_nan=True, ftz=True)

    x = np.array([-2, 0.25, 0.75, 3], np.float32)
    out = on_device_body(body, x, np.zeros((4, 7), np.float32))
    expected = [x * x + 1, np.maximum(x, 0), np.clip(x, -0.5, 0.5), 1 / x, np.exp2(x), np.abs(x), [-0.5, 7, -7, -2]]
    np.testing.assert_allclose(out, np.array(expected, np.float32).T, rtol=1e-6)


def on_device_body(body, x, out):
    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    host(from_dlpack(x), from_dlpack(out))
    return out


def test_ftz_asks_for_the_approximate_form():
    with pytest.raises(cutlass.CompileError, match="ftz=True goes with approx=True"):
        on_device_body(lambda x, out: cute.math.sin(x[0], ftz=True), np.zeros(1, np.float32), np.zeros(1, np.float32))
    with pytest.raises(cutlass.CompileError, match="min of vectors with ftz=True"):
        on_device_body(
            lambda x, out: cute.math.min(x.load(), 1.0, ftz=True), np.zeros(2, np.float32), np.zeros(1, np.float32)
        )
