"""Floats of 8 bits and fewer: against ml_dtypes, and the same bits on host and device."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.hw.narrow_floats import decode, encode, round_to

THEIRS = {
    "f8e4m3": ml_dtypes.float8_e4m3, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f6e3m2fn": ml_dtypes.float6_e3m2fn, "f6e2m3fn": ml_dtypes.float6_e2m3fn, "f4e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
OURS = {
    "f8e4m3fn": cutlass.Float8E4M3FN, "f8e5m2": cutlass.Float8E5M2, "f8e4m3": cutlass.Float8E4M3,
    "f8e4m3b11fnuz": cutlass.Float8E4M3B11FNUZ, "f8e8m0fnu": cutlass.Float8E8M0FNU,
}  # fmt: skip
CODES = {"f6": 64, "f4": 16}
RANDOM = np.random.default_rng(0)
EDGES = [0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 2**-9, 2**-10, 1.5 * 2**-10, -(2**-10), 57344, 61440, 65536]


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize("name", THEIRS)
def test_every_code_means_what_ml_dtypes_says(name):
    for code in range(CODES.get(name[:2], 256)):
        theirs = float(np.array([code], np.uint8).view(THEIRS[name])[0])
        assert same(decode(code, name), theirs), code


@pytest.mark.parametrize("name", THEIRS)
def test_rounding_is_to_nearest_even(name):
    numbers = np.concatenate([RANDOM.normal(0, scale, 500) for scale in (1e-2, 1, 8)]).astype(np.float32)
    numbers = np.abs(numbers) if name == "f8e8m0fnu" else numbers
    for number in numbers:
        theirs = float(number.astype(THEIRS[name]))
        if math.isfinite(theirs):
            assert round_to(float(number), name) == theirs, number


def inputs(dtype=np.float32):
    spread = [RANDOM.normal(0, scale, 40) for scale in (1e-3, 0.02, 1, 30, 400, 1e5)]
    return np.resize(np.concatenate([*spread, EDGES]), 256).astype(dtype)


@cute.kernel
def convert_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    values = cute.local_tile(x, (8,), (i,)).load().to(dtype)
    cute.local_tile(y, (8,), (i,)).store(values)
    cute.local_tile(z, (8,), (i,)).store(values.to(z.element_type))


@cute.jit
def on_device(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    convert_kernel(x, y, z, dtype).launch(grid=1, block=32)


@cute.jit
def on_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    for i in cutlass.range(x.shape[0]):
        value = x[i].to(dtype)
        y[i] = value
        z[i] = value.to(z.element_type)


def converted(function, name, x, arch):
    codes, back = np.zeros(x.size, np.uint8), np.zeros(x.size, np.float32)
    y = from_dlpack(codes)
    y.element_type = OURS[name]
    arguments = from_dlpack(x), y, from_dlpack(back)
    cute.compile(function, *arguments, OURS[name], target="emu", arch=arch)(*arguments)
    return codes, back


@pytest.mark.parametrize(
    ("function", "name", "arch"),
    [(on_device, name, "sm_80") for name in OURS]
    + [(on_device, name, "sm_90a") for name in ("f8e4m3fn", "f8e5m2")]
    + [(on_host, name, "sm_90a") for name in OURS],
    ids=lambda item: getattr(getattr(item, "function", None), "__name__", item),
)
def test_conversions_have_the_right_bits(function, name, arch):
    x = inputs()
    codes, back = converted(function, name, x, arch)
    wanted = [encode(float(number), name) for number in x]
    assert codes.tolist() == wanted
    assert all(same(float(b), decode(code, name)) for b, code in zip(back, wanted, strict=True))


@pytest.mark.parametrize("function", [on_device, on_host], ids=["device", "host"])
def test_float64_is_rounded_once(function):
    middle = 1.0625  # between 1 and 1.125; as float32 the neighbours below are equal to it
    x = np.resize([middle + 1e-12, middle, middle - 1e-12, -middle - 1e-12, 1.1875 - 1e-13], 256)
    codes, _ = converted(function, "f8e4m3fn", x, "sm_90a")
    assert [decode(int(code), "f8e4m3fn") for code in codes[:5]] == [1.125, 1.0, 1.0, -1.125, 1.125]


def test_narrow_numbers_compute_as_float32():
    a, b = cutlass.Float8E4M3FN(1.25), cutlass.Float8E4M3FN(0.3)
    assert (a.python(), b.python()) == (1.25, 0.3125)
    assert type(a + b) is cutlass.Float32 and (a + b).python() == 1.5625
    assert type(a + cutlass.Float16(1)) is cutlass.Float16
    assert (a > b).python() is True
    assert type(-a) is cutlass.Float8E4M3FN


def test_tf32_rounds_ties_away_and_computes_as_float32():
    tie = 1 + 2**-11
    x = np.array([tie, -tie, 1 + 2**-12, np.inf, np.nan, 3.4028235e38, 2**-140], np.float32)
    wanted = [1 + 2**-10, -(1 + 2**-10), 1.0, np.inf, np.nan, np.inf, 0.0]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        y.store(x.load().to(cutlass.TFloat32).to(cutlass.Float32))

    y = np.zeros(7, np.float32)
    cute.compile(host, from_dlpack(x), from_dlpack(y), target="emu")(from_dlpack(x), from_dlpack(y))
    assert all(same(float(a), float(b)) for a, b in zip(y, wanted, strict=True))
    number = cutlass.TFloat32(tie)
    assert number.python() == 1 + 2**-10 and type(number + number) is cutlass.Float32
