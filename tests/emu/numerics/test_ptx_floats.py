"""Arithmetic against exact fractions: every type, rounding and modifier, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.emu.numerics import reference as ref
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import exact, floats

TYPES = ("f32", "f64", "f16", "bf16")
ROUNDINGS = ("rn", "rz", "rm", "rp")
COUNT = 500
STORAGE = {"f32": np.uint32, "f64": np.uint64, "f16": np.uint16, "bf16": np.uint16}
FLOAT = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}
QUIET = 1 << 51


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def operands(type: str, arity: int, seed: int = 0, count: int = COUNT) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng([seed, arity, len(type)])
    words = [ref.random_bits(type, count, rng).astype(STORAGE[type]) for _ in range(arity)]
    if arity == 3:  # a sum that cancels, or nearly
        with np.errstate(all="ignore"):
            x, y, z = (w.view(FLOAT[type]) for w in words)
            if type != "bf16":
                z[::5] = -(x[::5] * y[::5])
    if arity == 2:
        words[1][::7] = words[0][::7] ^ STORAGE[type](1 << (ref.width(type) - 1))
    return words


# Where several operands are NaN, the first of these passes its payload: recorded on an H100 (f64_arithmetic,
# f64_div_rcp_sqrt).
NAN_ORDER = {"add": (1, 0), "sub": (1, 0), "mul": (1, 0), "fma": (1, 2, 0), "div": (0, 1), "rcp": (0,), "sqrt": (0,)}


def nan64(words: list[int]) -> int:
    """The first NaN, quieted, else the hardware's own."""
    for word in words:
        if ref.is_nan(ref.value(word, "f64")):
            return word | QUIET
    return 0xFFF8000000000000


def check(
    type: str,
    rnd: str,
    got: np.ndarray[Any, Any],
    words: list[np.ndarray[Any, Any]],
    exactly: Callable[..., ref.Number],
    after: Callable[[int], int] = lambda bits: bits,
    order: tuple[int, ...] = (),
) -> None:
    bits = got.view(STORAGE[type])
    assert bits.shape == words[0].shape
    for lane, found in enumerate(bits.tolist()):
        inputs = [int(word[lane]) for word in words]
        value = exactly(*(ref.value(word, type) for word in inputs))
        wanted = (
            nan64([inputs[i] for i in order]) if type == "f64" and ref.is_nan(value) else ref.round_to(value, type, rnd)
        )
        wanted = after(wanted)
        assert found == wanted, f"lane {lane}: {[hex(i) for i in inputs]} gave {found:#x}, not {wanted:#x}"


def exact_function(name: str, rnd: str) -> Callable[..., ref.Number]:
    return {
        "add": lambda x, y: ref.add(x, y, rnd),
        "sub": lambda x, y: ref.add(x, -y if y != 0 else (0.0 if ref.negative(y) else -0.0), rnd),
        "mul": ref.mul,
        "fma": lambda x, y, z: ref.add(ref.mul(x, y), z, rnd),
        "div": ref.div,
        "rcp": lambda x: ref.div(Fraction(1), x),
        "sqrt": ref.sqrt,
    }[name]


ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_rounds_once(name: str, type: str, rnd: str) -> None:
    words = operands(type, ARITY[name])
    got = getattr(floats, name)(*(w.view(FLOAT[type]) for w in words), type=type, rnd=rnd)
    check(type, rnd, got, words, exact_function(name, rnd), order=NAN_ORDER[name])


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", ["div", "rcp", "sqrt"])
def test_quotients_and_roots_round_once(name: str, type: str, rnd: str) -> None:
    words = operands(type, ARITY[name])
    got = getattr(floats, name)(*(w.view(FLOAT[type]) for w in words), type=type, rnd=rnd)
    check(type, rnd, got, words, exact_function(name, rnd), order=NAN_ORDER[name])


def test_nan_payloads_of_f64() -> None:
    """The lanes of f64_arithmetic and f64_div_rcp_sqrt with more than one NaN, as an H100 computed them."""
    words = np.array(
        [
            [0xFFF8000000000000, 0x7FF0000000000001, 0xC042FC0000000000],
            [0xFFF0000000000001, 0x7FF0000000000001, 0x405BD74000000000],
            [0x7FF8000000000000, 0xBFB7C99400000000, 0xFFF8000000000001],
            [0xC3A56D975DF6C4F9, 0x7FF0000000000001, 0x7FF8000000000000],
            [0x3FB1FA0C00000000, 0x7FF8000000000001, 0x7FF8000000000000],
        ],
        np.uint64,
    )
    a, b, c = words.T.copy().view(np.float64)
    second = [0x7FF8000000000001, 0x7FF8000000000001, 0x7FF8000000000000, 0x7FF8000000000001, 0x7FF8000000000001]
    for function in (floats.add, floats.sub, floats.mul):
        assert function(a, b, type="f64").view(np.uint64).tolist() == second
    fused = [*second[:2], 0xFFF8000000000001, *second[3:]]
    assert floats.fma(a, b, c, type="f64").view(np.uint64).tolist() == fused
    a, b = np.array([[0x7FF8000000000000], [0xFFF8000000000001]], np.uint64).view(np.float64)
    assert floats.div(a, b, type="f64").view(np.uint64).tolist() == [0x7FF8000000000000]
    assert floats.min_(a, b, type="f64").view(np.uint64).tolist() == [0xFFF8000000000001]


@pytest.mark.parametrize("rnd", ROUNDINGS)
def test_fma_of_moderate_doubles(rnd: str) -> None:
    """The plain algorithm's range: exponents within a few orders, products that nearly cancel, ties."""
    rng = np.random.default_rng(5)
    x = np.ldexp(rng.integers(1, 1 << 53, 1500).astype(np.float64), rng.integers(-60, -45, 1500))
    y = np.ldexp(rng.integers(1, 1 << 30, 1500).astype(np.float64), rng.integers(-60, -20, 1500))
    z = -(x * y) * np.where(rng.integers(0, 2, 1500) == 1, 1.0, rng.random(1500))
    z[::4] = np.ldexp(1.0, rng.integers(-10, 60, 375))
    words = [v.view(np.uint64) for v in (x, y, z)]
    check("f64", rnd, floats.fma(x, y, z, type="f64", rnd=rnd), words, exact_function("fma", rnd))


def test_fma_of_one_number_for_all_lanes() -> None:
    numbers = np.random.default_rng(3).standard_normal((400, 3)) * 2.0 ** np.random.default_rng(4).integers(
        -40, 40, (400, 3)
    )
    for a, b, c in numbers:
        exact = float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
        assert float(floats.fma(a, b, c, type="f64")) == exact


def test_fma_of_floats_does_not_round_twice() -> None:
    one = np.full(1, 1 + 2.0**-12, np.float32)
    got = floats.fma(one, one, np.full(1, 2.0**-60, np.float32))
    assert got.view(np.uint32)[0] == 0x3F801001


def test_fma_of_floats_at_midpoints() -> None:
    rng = np.random.default_rng(1)
    n = 1200
    x = (1 + rng.integers(0, 1 << 12, n) * 2.0**-12).astype(np.float32)
    y = (1 + rng.integers(0, 1 << 12, n) * 2.0**-12).astype(np.float32)
    z = (rng.choice([-1.0, 1.0], n) * 2.0 ** rng.integers(-100, -20, n)).astype(np.float32)
    scale = np.float32(2.0) ** rng.choice([0, -126, -130], n).astype(np.float32)
    words = [v.view(np.uint32) for v in (x * scale, y, z)]
    got = floats.fma(*(w.view(np.float32) for w in words))
    check("f32", "rn", got, words, exact_function("fma", "rn"))


def flushing(name: str, type: str, rnd: str) -> Callable[..., ref.Number]:
    function = exact_function(name, rnd)
    return lambda *values: ref.flushed(function(*values), type, rnd)


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize("name", ["add", "mul", "fma", "div", "rcp"])
def test_ftz_flushes_operands_and_results(name: str, type: str, rnd: str) -> None:
    words = operands(type, ARITY[name], seed=3)
    mantissa = ref.FORMATS[type][1]
    sign = 1 << (ref.width(type) - 1)

    def flushed(bits: int) -> int:
        return bits & sign if bits & ~sign < 1 << mantissa else bits

    inputs = [np.array([flushed(b) for b in w.tolist()], w.dtype) for w in words]
    got = getattr(floats, name)(*(w.view(FLOAT[type]) for w in words), type=type, ftz=True, rnd=rnd)
    check(type, rnd, got, inputs, flushing(name, type, rnd))


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize("type", ["f32", "f16"])
def test_ftz_near_the_least_normal_number(type: str, rnd: str) -> None:
    """Products within four units of it, and products of twice the size less that number."""
    mantissa = ref.FORMATS[type][1]
    unit, near = Fraction(1, 2**mantissa), [Fraction(i, 2) for i in range(-6, 7)]
    factors = [1 + i * unit * (1 if i < 0 else 2) for i in near if i.denominator == 1 or i < 0]
    exponent = ref.bias(type) - 1
    least = Fraction(2) ** -exponent
    high, low = Fraction(2) ** -(exponent // 2), Fraction(2) ** -(exponent - exponent // 2)
    rows = [
        [ref.round_to(value, type) for value in (x * high * sign * scale, y * low, (1 - scale) * sign * least)]
        for x in factors
        for y in factors
        for sign in (1, -1)
        for scale in (1, 2)
    ]
    words = [np.array(column, STORAGE[type]) for column in zip(*rows, strict=True)]
    x, y, z = (w.view(FLOAT[type]) for w in words)
    check(type, rnd, floats.mul(x, y, type=type, ftz=True, rnd=rnd), words[:2], flushing("mul", type, rnd))
    check(type, rnd, floats.fma(x, y, z, type=type, ftz=True, rnd=rnd), words, flushing("fma", type, rnd))


def test_ftz_as_recorded() -> None:
    """Lanes of f32_near_the_least_normal and f16x2_arithmetic on an H100."""
    x, y = (np.array([b], np.uint32).view(np.float32) for b in (0xA0000000, 0x1FFFFFFF))
    for left, right in itertools.product((x, x[0]), (y, y[0])):  # uniform registers are scalars
        assert floats.bits_of(floats.mul(left, right, ftz=True), "").reshape(1)[0] == 0x80000000
        assert floats.bits_of(floats.fma(left, right, np.float32(-0.0), ftz=True), "").reshape(1)[0] == 0x80000000
    assert floats.mul(x, y, ftz=True).view(np.uint32)[0] == 0x80000000  # -2**-126 * (1 - 2**-24)
    assert floats.mul(x, y).view(np.uint32)[0] == 0x80800000
    pair = floats.mul(np.array([0x33643BFF], np.uint32), np.array([0x38C08400], np.uint32), type="f16x2", ftz=True)
    assert pair[0] == 0x30638000


@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_sat_clamps_to_the_unit_interval(name: str, type: str) -> None:
    words = operands(type, ARITY[name], seed=4)
    one = ref.bits_of_size(Fraction(1), type)

    def clamped(bits: int) -> int:
        value = ref.value(bits, type)
        if ref.is_nan(value) or value <= 0:
            return 0
        return one if value > 1 else bits

    got = getattr(floats, name)(*(w.view(FLOAT[type]) for w in words), type=type, sat=True)
    check(type, "rn", got, words, exact_function(name, "rn"), clamped)


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_relu_keeps_nan_and_drops_negatives(type: str) -> None:
    words = operands(type, 3, seed=5)
    sign = 1 << 15

    def kept(bits: int) -> int:
        return 0 if bits & sign else bits

    got = floats.fma(*(w.view(FLOAT[type]) for w in words), type=type, relu=True)
    check(type, "rn", got, words, exact_function("fma", "rn"), kept)


@pytest.mark.parametrize("scalar", ["f16", "bf16"])
def test_packed_halves_are_separate(scalar: str) -> None:
    words = operands(scalar, 3, seed=6)
    pairs = [w.view(np.uint32) for w in words]
    whole = floats.fma(*pairs, type=f"{scalar}x2")
    halves = floats.fma(*(w.view(FLOAT[scalar]) for w in words), type=scalar)
    assert whole.dtype == np.uint32
    np.testing.assert_array_equal(whole, halves.view(np.uint32))


def test_any_shape_and_broadcast() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(floats.fma(x, x, np.float32(1)), x * x + 1)
    assert floats.add(np.float32(1), np.float32(2)) == 3
    tie = np.float32(1 + 2.0**-12)
    assert floats.fma(tie, tie, np.float32(2.0**-60)).view(np.uint32) == 0x3F801001


# ---- minimum and maximum --------------------------------------------------------------------------------------


def extreme(type: str, greatest: bool, values: list[ref.Number], bits: list[int], nan: bool) -> int:
    if type == "f64" and not nan and all(map(ref.is_nan, values)):
        return bits[-1] | QUIET
    canonical = ref.FORMATS[type][4]
    numbers = [(v, b) for v, b in zip(values, bits, strict=True) if not ref.is_nan(v)]
    if not numbers or (nan and len(numbers) < len(values)):
        return canonical
    key = [(float("inf") if v == float("inf") else v, not ref.negative(v)) for v, _ in numbers]
    order = sorted(range(len(numbers)), key=lambda i: key[i])
    return numbers[order[-1 if greatest else 0]][1]


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("type", TYPES)
def test_min_max(type: str, arity: int, nan: bool) -> None:
    words = operands(type, arity, seed=7)
    for greatest, function in ((False, floats.min_), (True, floats.max_)):
        got = function(*(w.view(FLOAT[type]) for w in words), type=type, nan=nan).view(STORAGE[type])
        for lane, found in enumerate(got.tolist()):
            bits = [int(w[lane]) for w in words]
            assert found == extreme(type, greatest, [ref.value(b, type) for b in bits], bits, nan)


@pytest.mark.parametrize("type", ["f32", "f16", "bf16"])
def test_xorsign_abs(type: str) -> None:
    words = operands(type, 2, seed=8)
    sign = 1 << (ref.width(type) - 1)
    canonical = ref.FORMATS[type][4]
    got = floats.max_(*(w.view(FLOAT[type]) for w in words), type=type, xorsign=True).view(STORAGE[type])
    for lane, found in enumerate(got.tolist()):
        x, y = (int(w[lane]) for w in words)
        sizes = [x & ~sign, y & ~sign]
        wanted = extreme(type, True, [ref.value(b, type) for b in sizes], sizes, False)
        assert found == (wanted if wanted == canonical else wanted | ((x ^ y) & sign))


# ---- signs, tests, comparisons --------------------------------------------------------------------------------


def test_abs_and_neg() -> None:
    x = np.array([0x80000001, 0x80000000, 0xC0000000, 0xFFC00001, 0x00000005], np.uint32).view(np.float32)
    assert [hex(b) for b in floats.abs_(x).view(np.uint32)] == ["0x1", "0x0", "0x40000000", "0x7fffffff", "0x5"]
    assert [hex(b) for b in floats.neg(x, ftz=True).view(np.uint32)] == [
        "0x0",
        "0x0",
        "0x40000000",
        "0x7fffffff",
        "0x80000000",
    ]
    words = [0x7FF0000000000001, 0xFFF8000000000000, 0x8000000000000000]
    x = np.array(words, np.uint64).view(np.float64)
    quiet = [0x7FF8000000000001, 0xFFF8000000000000]  # f64_min_max_signs, recorded on an H100
    assert floats.abs_(x, type="f64").view(np.uint64).tolist() == [*quiet, 0]
    assert floats.neg(x, type="f64").view(np.uint64).tolist() == [*quiet, 0]
    pair = np.array([0x8001C000], np.uint32)
    assert floats.neg(pair, type="f16x2")[0] == 0x00014000
    assert floats.abs_(pair, type="bf16x2")[0] == 0x00014000


def test_copysign_takes_the_sign_of_its_first_operand() -> None:
    got = floats.copysign(np.array([-0.0, 3.0], np.float32), np.array([2.0, -np.inf], np.float32))
    assert got.tolist() == [-2.0, np.inf]


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_testp(type: str) -> None:
    info = np.finfo(FLOAT[type])
    x = np.array([0.0, info.smallest_subnormal, info.tiny, 1.0, np.inf, np.nan], FLOAT[type])
    wanted = {
        "finite": [1, 1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 0, 1],
        "normal": [1, 0, 1, 1, 0, 0],
        "subnormal": [0, 1, 0, 0, 0, 0],
    }
    for kind, expected in wanted.items():
        assert floats.testp(x, kind, type).tolist() == [bool(e) for e in expected], kind
        assert floats.testp(-x, kind, type).tolist() == [bool(e) for e in expected], kind


@pytest.mark.parametrize("type", TYPES)
def test_compare(type: str) -> None:
    words = operands(type, 2, seed=9)
    words[1][::3] = words[0][::3]
    a, b = (w.view(FLOAT[type]) for w in words)
    plain = {
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
    }
    for op, truth in plain.items():
        ordered, unordered = floats.compare(op, a, b, type), floats.compare(op + "u", a, b, type)
        number = floats.compare("num", a, b, type)
        np.testing.assert_array_equal(floats.compare("nan", a, b, type), ~number)
        for lane in range(COUNT):
            x, y = (ref.value(int(w[lane]), type) for w in words)
            nan = ref.is_nan(x) or ref.is_nan(y)
            assert number[lane] == (not nan)
            assert ordered[lane] == (not nan and truth(x, y))
            assert unordered[lane] == (nan or truth(x, y))


def test_compare_packed_gives_both_halves() -> None:
    a = np.array([0x3C004000], np.uint32)  # high 1.0, low 2.0
    assert floats.compare("gt", a, np.array([0x3C003C00], np.uint32), "f16x2").tolist() == [[True, False]]


def test_compare_with_ftz() -> None:
    tiny = np.array([1, 0x80000001], np.uint32).view(np.float32)
    assert not floats.compare("gt", tiny, np.float32(0)).all()
    assert floats.compare("eq", tiny, np.zeros(2, np.float32), ftz=True).all()


# ---- errors ---------------------------------------------------------------------------------------------------


def test_errors_name_what_is_wrong() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(EmulationError, match="rounding 'rx' does not exist"):
        floats.add(one, one, rnd="rx")
    with pytest.raises(EmulationError, match="f8 is no floating-point type"):
        floats.add(one, one, type="f8")
    with pytest.raises(EmulationError, match="comparison 'equ2'"):
        floats.compare("equ2", one, one)
    with pytest.raises(EmulationError, match="testp 'even'"):
        floats.testp(one, "even")
    with pytest.raises(EmulationError, match=r"bf16 has no \.ftz"):
        floats.max_(np.ones(1, np.uint16), np.ones(1, np.uint16), type="bf16", ftz=True)


def test_two_product_is_exact() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 500))
    for a, b, p, e in zip(x, y, *exact.two_product(x, y), strict=True):
        assert Fraction(a) * Fraction(b) == Fraction(p) + Fraction(e)


@pytest.mark.parametrize("type", ["f32", "f16x2", "f64"])
def test_long_arrays_give_the_same_as_short_ones(type: str) -> None:
    scalar = type.removesuffix("x2")
    words = [w.view(np.uint32 if type == "f16x2" else FLOAT[scalar]) for w in operands(scalar, 3, seed=10, count=20000)]
    whole = floats.fma(*words, type=type)
    parts = [floats.fma(*(w[start : start + 1000] for w in words), type=type) for start in range(0, len(whole), 1000)]
    np.testing.assert_array_equal(floats.bits_of(whole, ""), floats.bits_of(np.concatenate(parts), ""))
    uniform = floats.fma(words[0], words[1][0], words[2], type=type)
    np.testing.assert_array_equal(uniform[:5], floats.fma(words[0][:5], words[1][:1], words[2][:5], type=type))


@pytest.mark.parametrize("type", TYPES)
def test_scalars_give_the_same_as_arrays(type: str) -> None:
    """The engine passes uniform registers as NumPy scalars."""
    words = operands(type, 3, seed=11, count=60)
    for lane in range(60):
        arrays = [w[lane : lane + 1].view(FLOAT[type]) for w in words]
        scalars = [a[0] for a in arrays]
        for name in ("add", "sub", "mul", "fma", "min_", "max_", "abs_", "neg", "copysign"):
            count = {"fma": 3, "abs_": 1, "neg": 1}.get(name, 2)
            one = np.asarray(getattr(floats, name)(*scalars[:count], type=type))
            many = getattr(floats, name)(*arrays[:count], type=type)
            assert floats.bits_of(one, type).reshape(1) == floats.bits_of(many, type), (name, arrays)
