"""Approximate instructions: the manual's error bounds on random operands, and its tables of special values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from tests.emu.numerics import reference as ref
from tilewright.targets.emu.numerics import approx, floats

INF, NAN = math.inf, math.nan
TINY = 2.0**-126
SUBNORMAL = 2.0**-130


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def f32(values) -> np.ndarray:
    return np.array(values, np.float32)


def same_bits(got, wanted) -> None:
    wanted = f32(wanted)
    wanted[np.isnan(wanted)] = np.uint32(0x7FFFFFFF).view(np.float32)
    np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))


def anything(count: int = 20000) -> np.ndarray:
    words = ref.random_bits("f32", count, np.random.default_rng(1)).astype(np.uint32)
    return words.view(np.float32)


def relative(got: np.ndarray, wanted: np.ndarray) -> float:
    normal = np.isfinite(wanted) & (np.abs(wanted) >= TINY) & (np.abs(wanted) < 2.0**127)
    assert normal.sum() > 100
    return float(np.max(np.abs(got[normal].astype(np.float64) / wanted[normal] - 1)))


@pytest.mark.parametrize(
    ("name", "function", "bound"),
    [
        ("rcp", lambda x: 1 / x, 2.0**-23),
        ("sqrt", np.sqrt, 2.0**-23),
        ("rsqrt", lambda x: 1 / np.sqrt(x), 2.0**-22.9),
        ("ex2", np.exp2, 2.0**-22.5),
        ("tanh", np.tanh, 2.0**-11),
    ],
)
def test_relative_bounds(name, function, bound) -> None:
    x = anything() if name != "ex2" else f32(np.random.default_rng(2).uniform(-126, 127, 5000))
    assert relative(getattr(approx, name)(x), function(x.astype(np.float64))) <= bound


def test_sin_cos_absolute_bound() -> None:
    x = f32(np.random.default_rng(3).uniform(-2 * math.pi, 2 * math.pi, 50000))
    for got, wanted in ((approx.sin(x), np.sin(x.astype(float))), (approx.cos(x), np.cos(x.astype(float)))):
        assert np.max(np.abs(got - wanted)) <= 2.0**-20.5


def test_lg2_bounds() -> None:
    rng = np.random.default_rng(4)
    near, far = f32(rng.uniform(0.5, 2, 5000)), f32(2.0 ** rng.uniform(1.1, 127, 5000))
    assert np.max(np.abs(approx.lg2(near) - np.log2(near.astype(float)))) <= 2.0**-22
    assert relative(approx.lg2(far), np.log2(far.astype(float))) <= 2.0**-22


def test_special_values() -> None:
    x = f32([-INF, -0.0, 0.0, INF, NAN])
    same_bits(approx.rcp(x), [-0.0, -INF, INF, 0.0, NAN])
    same_bits(approx.sqrt(x), [NAN, -0.0, 0.0, INF, NAN])
    same_bits(approx.rsqrt(x), [NAN, -INF, INF, 0.0, NAN])
    same_bits(approx.sin(x), [NAN, -0.0, 0.0, NAN, NAN])
    same_bits(approx.cos(x), [NAN, 1.0, 1.0, NAN, NAN])
    same_bits(approx.lg2(x), [NAN, -INF, -INF, INF, NAN])
    same_bits(approx.ex2(x), [0.0, 1.0, 1.0, INF, NAN])
    same_bits(approx.tanh(x), [-1.0, -0.0, 0.0, 1.0, NAN])


def test_ftz_flushes() -> None:
    x = f32([-SUBNORMAL, SUBNORMAL, -1.0])
    same_bits(approx.rcp(x, ftz=True), [-INF, INF, -1.0])
    same_bits(approx.rsqrt(x, ftz=True), [-INF, INF, NAN])
    same_bits(approx.sqrt(x, ftz=True), [-0.0, 0.0, NAN])
    same_bits(approx.lg2(x, ftz=True), [-INF, -INF, NAN])
    same_bits(approx.sin(f32([SUBNORMAL]), ftz=True), [0.0])
    same_bits(approx.ex2(f32([-130.0, -126.0]), ftz=True), [0.0, TINY])
    same_bits(approx.ex2(f32([-130.0, -149.0])), [SUBNORMAL, 2.0**-149])
    same_bits(approx.rcp(f32([2.0**-127, 2.0**127])), [2.0**127, 2.0**-127])


def test_div_approx_and_full() -> None:
    rng = np.random.default_rng(5)
    a = f32(rng.standard_normal(20000) * 2.0 ** rng.integers(-60, 60, 20000))
    b = f32(rng.standard_normal(20000) * 2.0 ** rng.integers(-60, 60, 20000))
    for function in (approx.div, approx.div_full):
        assert relative(function(a, b), a.astype(float) / b.astype(float)) <= 2 * 2.0**-23
    great = f32([2.0**126 * 1.5] * 3)
    same_bits(approx.div(f32([1.0, -(2.0**100), INF]), great), [0.0, -0.0, NAN])
    full = approx.div_full(f32([1.0, 2.0**126 * 1.5, INF]), great)
    assert abs(full[0] * 2.0**126 * 1.5 - 1) < 2.0**-10  # a subnormal quotient has few bits
    same_bits(full[1:], [1.0, INF])
    same_bits(approx.div(f32([SUBNORMAL]), f32([SUBNORMAL])), [1.0])
    same_bits(approx.div(f32([1.0]), f32([SUBNORMAL]), ftz=True), [INF])


def test_half_precision_forms() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-8, 8, 2000).astype(np.float16)
    wide = x.astype(np.float64)
    assert np.max(np.abs(approx.ex2(x, type="f16") / np.exp2(wide) - 1)) <= 2.0**-9.9
    assert np.max(np.abs(approx.tanh(x, type="f16") - np.tanh(wide))) <= 2.0**-10.987
    words = (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    value = (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    for function, truth, bound in ((approx.ex2, np.exp2, 2.0**-7), (approx.tanh, np.tanh, 2.0**-8)):
        got = (function(words, type="bf16").astype(np.uint32) << np.uint32(16)).view(np.float32)
        error = np.abs(got - truth(value))
        assert np.max(error / np.exp2(value) if function is approx.ex2 else error) <= bound
    pair = floats.bits_of(x, "f16").view(np.uint32)
    np.testing.assert_array_equal(approx.tanh(pair, type="f16x2").view(np.float16), approx.tanh(x, type="f16"))


def test_double_forms_use_the_upper_half() -> None:
    x = np.array([3.0, -0.0, INF, 2.0**-1060, np.nextafter(1.0, 2), 2.0**1023])
    got = approx.rcp(x, type="f64", ftz=True)
    assert np.all(got.view(np.uint64) & np.uint64(0xFFFFFFFF) == 0)
    assert abs(got[0] * 3 - 1) < 2.0**-20
    np.testing.assert_array_equal(got[1:], [-INF, 0.0, INF, 1.0, 0.0])
    root = approx.rsqrt(np.array([4.0, -0.0, -1.0]), type="f64", ftz=True)
    np.testing.assert_array_equal(root[:2], [0.5, -INF])
    assert np.isnan(root[2])
    assert approx.rsqrt(np.array([2.0]), type="f64")[0] == 1 / np.sqrt(2.0)
