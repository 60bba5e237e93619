"""`cvt` against exact fractions and against ml_dtypes: every pair of types, rounding and modifier."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.numerics import reference as ref
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics.convert import INTEGERS, cvt, pack

FLOATS = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
WORDS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64, "tf32": np.uint32}
INTS = [name for name in INTEGERS if name[0] != "b"]
ROUNDINGS = ("rn", "rz", "rm", "rp")
COUNT = 250


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def floating(type: str, seed: int = 0, count: int = COUNT) -> np.ndarray[Any, Any]:
    """Bits of `type`, with values around the limits of integers among them."""
    rng = np.random.default_rng([seed, count])
    words = ref.random_bits(type, count, rng).astype(WORDS[type])
    edges = [s * (2.0**p + d) for s in (1, -1) for p in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]
    edges += [0.5, 1.5, 2.5, -0.5, -1.5, -0.25, 0.75, 65519.99, 65520.0, 3.4e38, 448.0, 464.0, 465.0]
    with np.errstate(all="ignore"):
        near = np.array(edges)
        bits = [ref.round_to(Fraction(e), type) for e in near.tolist()]
    words[: len(bits)] = bits[: len(words)]
    return words


def integers(type: str, seed: int = 0, count: int = COUNT) -> np.ndarray[Any, Any]:
    info = np.iinfo(INTEGERS[type])
    rng = np.random.default_rng([seed, info.bits])
    values = rng.integers(info.min, info.max, count, dtype=INTEGERS[type], endpoint=True)
    shift = rng.integers(0, info.bits, count).astype(INTEGERS[type])
    values = np.where(rng.integers(0, 2, count) == 1, values >> shift, values)
    edges = [info.min, info.max, 0, 1, info.max - 1, info.max // 2, 65519, 65520, 65504]
    values[: len(edges)] = [e for e in edges if e <= info.max] + [0] * sum(e > info.max for e in edges)
    return values


@pytest.mark.parametrize(("src", "dst"), list(itertools.product(INTS, INTS)))
def test_integer_to_integer(src: str, dst: str) -> None:
    values, info = integers(src), np.iinfo(INTEGERS[dst])
    wrapped, clamped = cvt(values, src, dst), cvt(values, src, dst, sat=True)
    assert wrapped.dtype == clamped.dtype == INTEGERS[dst]
    for lane, value in enumerate(values.tolist()):
        modulo = (value - info.min) % (1 << info.bits) + info.min
        assert int(wrapped[lane]) == modulo
        assert int(clamped[lane]) == min(max(value, info.min), info.max)


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize(("src", "dst"), list(itertools.product(INTS, FLOATS)))
def test_integer_to_float(src: str, dst: str, rnd: str) -> None:
    values = integers(src)
    got = cvt(values, src, dst, rnd).view(WORDS[dst])
    for value, bits in zip(values.tolist(), got.tolist(), strict=True):
        assert bits == ref.round_to(Fraction(value), dst, rnd), value


@pytest.mark.parametrize("rnd", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize(("src", "dst"), list(itertools.product(FLOATS, INTS)))
def test_float_to_integer(src: str, dst: str, rnd: str) -> None:
    words, info = floating(src), np.iinfo(INTEGERS[dst])
    got = cvt(words.view(FLOATS[src]), src, dst, rnd)
    assert got.dtype == INTEGERS[dst]
    for word, found in zip(words.tolist(), got.tolist(), strict=True):
        value = ref.value(word, src)
        if ref.is_nan(value):
            wide = src == "f64" or info.bits == 64
            wanted = (info.min if info.min else 1 << (info.bits - 1)) if wide else 0
        elif ref.is_inf(value):
            wanted = info.max if value > 0 else info.min
        else:
            whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[rnd](Fraction(value))
            wanted = min(max(whole, info.min), info.max)
        assert found == wanted, (hex(word), value)


NARROWING = [
    ("f64", "f32"),
    ("f64", "f16"),
    ("f64", "bf16"),
    ("f32", "f16"),
    ("f32", "bf16"),
    ("f16", "bf16"),
    ("bf16", "f16"),
]


@pytest.mark.parametrize("rnd", ROUNDINGS)
@pytest.mark.parametrize(("src", "dst"), NARROWING)
def test_narrowing(src: str, dst: str, rnd: str) -> None:
    words = floating(src, 1, 1000)
    got = cvt(words.view(FLOATS[src]), src, dst, rnd).view(WORDS[dst])
    for word, bits in zip(words.tolist(), got.tolist(), strict=True):
        value = ref.value(word, src)
        wanted = nan_of_f64(word, dst) if src == "f64" and ref.is_nan(value) else ref.round_to(value, dst, rnd)
        assert bits == wanted, hex(word)


def nan_of_f64(word: int, dst: str) -> int:
    """Sign, all ones, quiet bit, and what has room of the payload."""
    exponent, mantissa = ref.FORMATS[dst][:2]
    text = f"{word:064b}"
    return int(text[0] + "1" * exponent + "1" + text[13 : 12 + mantissa], 2)


@pytest.mark.parametrize(
    ("src", "dst"), [("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")]
)
def test_widening_is_exact(src: str, dst: str) -> None:
    words = floating(src, 2)
    got = cvt(words.view(FLOATS[src]), src, dst).view(WORDS[dst])
    for word, bits in zip(words.tolist(), got.tolist(), strict=True):
        value = ref.value(word, src)
        if not ref.is_nan(value):
            assert bits == ref.round_to(value, dst)
        elif dst == "f64":
            exponent = ref.FORMATS[src][0]
            text = f"{word:0{ref.width(src)}b}"
            assert bits == int((text[0] + "1" * 12 + text[exponent + 2 :]).ljust(64, "0"), 2)
        else:
            assert bits == (word << 16 if src == "bf16" else 0x7FFFFFFF)


# As recorded on an H100 (kernels cvt_*): from, to, rounding, bits, result.
NANS = [
    ("f16", "f32", None, 0xFE01, 0x7FFFFFFF),
    ("bf16", "f32", None, 0xFFC1, 0xFFC10000),
    ("f64", "f32", "rn", 0xFFF0000000000001, 0xFFC00000),
    ("f64", "f32", "rz", 0x7FF8000000000001, 0x7FC00000),
    ("f64", "f16", "rn", 0xFFF8000000000001, 0xFE00),
    ("f64", "bf16", "rp", 0xFFF0000000000001, 0xFFC0),
    ("f16", "f64", None, 0x7C01, 0x7FF8040000000000),
    ("f16", "f64", None, 0xFDC3, 0xFFFF0C0000000000),
    ("f32", "f64", None, 0xFF800001, 0xFFF8000020000000),
    ("bf16", "f64", None, 0xFF81, 0xFFF8200000000000),
    ("f64", "f64", "rni", 0xFFF0000000000001, 0xFFF8000000000001),
    ("f32", "f32", "rni", 0xFFC00001, 0x7FFFFFFF),
    ("f32", "f32", None, 0xFF800001, 0xFF800001),
    ("f32", "tf32", "rn", 0xFFC00001, 0x7FFFE000),
    ("f32", "f16", "rn", 0xFFC00001, 0x7FFF),
]


@pytest.mark.parametrize(("src", "dst", "rnd", "word", "wanted"), NANS)
def test_nan_bits(src: str, dst: str, rnd: str | None, word: int, wanted: int) -> None:
    got = cvt(np.array([word], WORDS[src]).view(FLOATS[src]), src, dst, rnd)
    assert int(got.view(WORDS[dst])[0]) == wanted


def test_flushing_makes_a_nan_canonical() -> None:
    nan = np.array([0xFF800001], np.uint32).view(np.float32)
    assert cvt(nan, "f32", "f32", ftz=True).view(np.uint32)[0] == 0x7FFFFFFF


def test_narrowing_from_f64_flushes_what_is_tiny_after_rounding() -> None:
    least = Fraction(2) ** -126
    steps = [0, 1, 2, 3, 4, 6, 7, 8, 9, 12, 16]  # eighths of a unit of 24 bits below the least normal number
    words = [ref.round_to(sign * least * (1 - Fraction(s, 2**27)), "f64") for s in steps for sign in (1, -1)]
    for rnd in ROUNDINGS:
        got = cvt(np.array(words, np.uint64).view(np.float64), "f64", "f32", rnd, ftz=True).view(np.uint32)
        for word, bits in zip(words, got.tolist(), strict=True):
            value = ref.value(word, "f64")
            assert bits == ref.round_to(ref.flushed(value, "f32", rnd), "f32", rnd), hex(word)


@pytest.mark.parametrize("rnd", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("type", FLOATS)
def test_rounding_to_integral_values(type: str, rnd: str) -> None:
    words = floating(type, 3)
    got = cvt(words.view(FLOATS[type]), type, type, rnd).view(WORDS[type])
    for word, bits in zip(words.tolist(), got.tolist(), strict=True):
        value = ref.value(word, type)
        if ref.is_nan(value):
            assert ref.is_nan(ref.value(bits, type))
        elif ref.is_inf(value):
            assert bits == word
        else:
            whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[rnd](Fraction(value))
            assert bits == ref.round_to(Fraction(whole), type, negative_zero=ref.negative(value))


def test_sat_and_ftz_between_floats() -> None:
    x = np.array([-1.0, -0.0, 0.25, 7.0, np.nan, np.inf, 1e-40], np.float32)
    assert cvt(x, "f32", "f32", sat=True).tolist() == [0, 0, 0.25, 1, 0, 1, np.float32(1e-40)]
    assert cvt(x, "f32", "f32", ftz=True)[-1] == 0
    assert cvt(x, "f32", "f16", "rn", sat=True).tolist() == [0, 0, 0.25, 1, 0, 1, 0]
    assert cvt(x, "f32", "f64", sat=True).tolist()[:6] == [0, 0, 0.25, 1, 0, 1]
    assert cvt(x, "f32", "s32", "rpi", ftz=True)[-1] == 0
    assert cvt(x, "f32", "s32", "rpi")[-1] == 1


@pytest.mark.parametrize("rnd", ["rn", "rz"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("satfinite", [False, True])
@pytest.mark.parametrize("dst", ["f16", "bf16", "tf32"])
def test_relu_and_satfinite(dst: str, satfinite: bool, relu: bool, rnd: str) -> None:
    words = floating("f32", 4, 600)
    got = cvt(words.view(np.float32), "f32", dst, rnd, relu=relu, satfinite=satfinite).view(WORDS[dst])
    for word, bits in zip(words.tolist(), got.tolist(), strict=True):
        value = ref.value(word, "f32")
        if relu and not ref.is_nan(value) and ref.negative(value):
            value = Fraction(0)
        wanted = ref.round_to(value, dst, rnd, satfinite=satfinite)
        if dst == "tf32":
            wanted <<= 13
        assert bits == wanted, hex(word)


def test_tf32_rounds_ties_away() -> None:
    words = floating("f32", 5, 600)
    words[::3] = (words[::3] & np.uint32(0xFFFFE000)) | np.uint32(0x1000)
    got = cvt(words.view(np.float32), "f32", "tf32", "rna")
    finite = cvt(words.view(np.float32), "f32", "tf32", "rna", satfinite=True)
    for word, bits, bounded in zip(words.tolist(), got.tolist(), finite.tolist(), strict=True):
        value = ref.value(word, "f32")
        if ref.is_nan(value):
            assert bits == word & 0xFFFFE000
            continue
        assert bits == ref.round_to(value, "tf32", "rna") << 13
        assert bounded == ref.round_to(value, "tf32", "rna", satfinite=True) << 13


SMALL = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
}


@pytest.mark.parametrize("type", SMALL)
def test_small_formats_from_f32(type: str) -> None:
    words = floating("f32", 6, 800).reshape(2, 400)
    words[:, 200:] = (words[:, 200:] & np.uint32(0x80FFFFFF)) | np.uint32(0x3C000000)  # within the format's range
    a, b = (w.view(np.float32) for w in words)
    got = cvt((a, b), "f32", f"{type}x2", "rn", satfinite=True)
    width = 4 if type == "e2m1" else 8
    for lane, packed in enumerate(got.tolist()):
        for half, word in ((packed >> width, words[0, lane]), (packed & ((1 << width) - 1), words[1, lane])):
            value = ref.value(int(word), "f32")
            if ref.is_nan(value) and ref.FORMATS[type][4] is None:
                wanted = ref.bits_of_size(ref.FORMATS[type][2], type)
            else:
                wanted = ref.round_to(value, type, satfinite=True)
            assert half == wanted, hex(word)


@pytest.mark.parametrize("type", SMALL)
def test_every_code_of_small_formats_agrees_with_ml_dtypes(type: str) -> None:
    width = ref.width(type)
    codes = np.arange(1 << width, dtype=np.uint16)
    step = 4 if type == "e2m1" else 8
    words = (codes << step) | codes[::-1]
    got = cvt(words if step == 8 else words.astype(np.uint8), f"{type}x2", "f16x2", "rn").view(np.float16)
    truth = codes.astype(np.uint8).view(SMALL[type]).astype(np.float16)
    low, high = got[::2], got[1::2]
    np.testing.assert_array_equal(high, truth)
    np.testing.assert_array_equal(low, truth[::-1])
    assert (got.view(np.uint16)[np.isnan(got)] == 0x7FFF).all()


def test_small_formats_from_f16_pairs_with_relu() -> None:
    pair = np.array([0xC0003E00, 0x7C007E01], np.uint32)  # (-2, 1.5), (inf, nan)
    assert [hex(w) for w in cvt(pair, "f16x2", "e4m3x2", "rn", satfinite=True)] == ["0xc03c", "0x7e7f"]
    assert [hex(w) for w in cvt(pair, "f16x2", "e5m2x2", "rn", satfinite=True, relu=True)] == ["0x3e", "0x7b7f"]


def test_packed_halves_are_ordered() -> None:
    a, b = np.array([1.0], np.float32), np.array([-2.0], np.float32)
    assert cvt((a, b), "f32", "f16x2", "rn")[0] == 0x3C00C000
    assert cvt((a, b), "f32", "bf16x2", "rz", relu=True)[0] == 0x3F800000


def test_powers_of_two() -> None:
    a = np.array([1.0, 1.5, 2.0**-127, 0.0, np.inf, np.nan, 3.0e38], np.float32)
    one = np.ones_like(a)
    down = cvt((a, one), "f32", "ue8m0x2", "rz", satfinite=True) >> 8
    up = cvt((a, one), "f32", "ue8m0x2", "rp", satfinite=True) >> 8
    assert down.tolist() == [127, 127, 0, 0, 254, 255, 254]
    assert up.tolist() == [127, 128, 0, 0, 254, 255, 254]
    assert (cvt((a, one), "f32", "ue8m0x2", "rp") >> 8).tolist() == [127, 128, 0, 0, 255, 255, 255]
    back = cvt(np.array([0x7F80], np.uint16), "ue8m0x2", "bf16x2", "rn")
    assert back[0] == 0x3F804000


def test_errors_name_what_is_wrong() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(EmulationError, match="rounding 'rn' does not exist"):
        cvt(one, "f32", "s32", "rn")
    with pytest.raises(EmulationError, match=r"e4m3 needs \.satfinite"):
        cvt((one, one), "f32", "e4m3x2", "rn")
    with pytest.raises(EmulationError, match="takes two operands"):
        cvt(one, "f32", "f16x2", "rn")
    with pytest.raises(EmulationError, match="takes one operand"):
        cvt((one, one), "f32", "f16", "rn")
    with pytest.raises(EmulationError, match="no destination type s32x2"):
        cvt((one, one), "f32", "s32x2", "rn")
    with pytest.raises(EmulationError, match=r"bf16 has no \.sat"):
        cvt(one, "f32", "bf16", "rn", sat=True)
    with pytest.raises(EmulationError, match="rounding 'rn' does not exist"):
        cvt((one, one), "f32", "ue8m0x2", "rn")


@pytest.mark.parametrize("dst", ["s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2"])
def test_pack_clamps_and_shifts_in(dst: str) -> None:
    a, b, c = integers("s32", 1), integers("s32", 2), integers("u32", 3)
    size, signed = int(dst[1:]), dst[0] == "s"
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
    got = pack(a, b, None if size == 16 else c, dst)
    for x, y, z, word in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        upper, lower = (min(max(v, low), high) & ((1 << size) - 1) for v in (x, y))
        rest = 0 if size == 16 else z << 2 * size
        assert word == (rest | upper << size | lower) & 0xFFFFFFFF


def test_pack_needs_its_operands() -> None:
    a = integers("s32")
    with pytest.raises(EmulationError, match=r"cvt\.pack to s8 takes three operands"):
        pack(a, a, None, "s8")


def test_scalars_give_the_same_as_arrays() -> None:
    """The engine passes uniform registers as NumPy scalars."""
    for src, dst, rnd in itertools.product(("f32", "f16", "f64"), ("f16", "bf16", "s32", "u8", "f32"), ("rn", "rz")):
        mode = rnd + "i" if dst in INTEGERS else rnd
        for word in floating(src, 9, 40):
            array = np.array([word], WORDS[src]).view(FLOATS[src])
            one, many = np.asarray(cvt(array[0], src, dst, mode)), cvt(array, src, dst, mode)
            assert one.tobytes() == many.tobytes()
