"""`x ** n` of floats: small whole exponents are products, exact as IEEE arithmetic has them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float16, Float32, Float64, Int32
from tilewright.cute.runtime import from_dlpack

COUNT = 32
TYPES = {np.float16: Float16, np.float32: Float32, np.float64: Float64}


@cute.kernel
def power_kernel(x: cute.Tensor, out: cute.Tensor, exponent: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    out[i] = x[i] ** exponent


@cute.jit
def power(x: cute.Tensor, out: cute.Tensor, exponent: cutlass.Constexpr):
    power_kernel(x, out, exponent).launch(grid=1, block=COUNT)


def numbers(dtype):
    x = (np.random.default_rng(7).standard_normal(COUNT) * 3).astype(dtype)
    x[:7] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-3, np.finfo(dtype).tiny]
    return x


def products(x, exponent):
    """The exact product rounded after each multiplication; 16-bit numbers as 32-bit ones, rounded once."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        if exponent == -1:
            return (1 / x.astype(np.float64)).astype(x.dtype) if x.dtype == np.float16 else 1 / x
        square = wide * wide
        found = {0: np.ones_like(wide), 1: wide, 2: square, 3: square * wide, 4: square * square}[exponent]
        return found.astype(x.dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3, 4])
def test_small_powers_are_products(dtype, exponent):
    x, out = numbers(dtype), np.zeros(COUNT, dtype)
    executor = cute.compile(power, x, out, exponent)
    executor(x, out)
    assert out.tobytes() == products(x, exponent).tobytes() or np.array_equal(
        out, products(x, exponent), equal_nan=True
    )
    assert (np.signbit(out[:4]) == np.signbit(products(x, exponent)[:4])).all()
    ptx = executor.stages["ptx"].splitlines()
    assert sum(";" in line for line in ptx) < 20 and sum("mul." in line for line in ptx) <= max(exponent, 1) + 1


@pytest.mark.parametrize("exponent", [2.0, Int32(2), Float32(2.0), 2])
def test_the_exponent_may_be_a_constant_of_any_type(exponent):
    x, out = numbers(np.float32), np.zeros(COUNT, np.float32)
    cute.compile(power, x, out, exponent)(x, out)
    assert np.array_equal(out, products(x, 2), equal_nan=True)


@pytest.mark.parametrize("exponent", [5, -2, 0.5, 2.5, 1e3])
def test_other_powers_are_those_of_the_library(exponent):
    x, out = np.abs(numbers(np.float32)) + np.float32(0.1), np.zeros(COUNT, np.float32)
    executor = cute.compile(power, x, out, exponent)
    executor(x, out)
    assert sum(";" in line for line in executor.stages["ptx"].splitlines()) > 40
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), exponent).astype(np.float32)
        off = np.abs(out.astype(np.float64) - exact) / np.spacing(np.abs(exact))
    assert np.nanmax(np.where(out == exact, 0, off)) <= 4  # CUDA C++ Programming Guide, table of powf


def test_values_of_registers():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        value = x.load()
        out.store(value**2 + value**3)

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    executor = cute.compile(host, from_dlpack(x), from_dlpack(out))
    executor(x, out)
    assert (out == x * x + x * x * x).all() and "powf" not in executor.stages["cute"]


@pytest.mark.parametrize("dtype", TYPES)
def test_constants_are_as_the_program_has_them(dtype):
    for base, exponent in itertools.product((1.1, -2.7, 3.3e2, 0.0), (0, 1, 2, 3, 4)):
        x = np.array([base], dtype)
        assert dtype((TYPES[dtype](base) ** exponent).value) == products(x, exponent)[0], (base, exponent)
    assert (Float32(-0.0) ** -1).value == -np.inf and (Float32(4.0) ** -1).value == 0.25
