"""Every number type to every other, on device and host and while compiling, against exact rational arithmetic."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.base import settings
from tilewright.base.dtypes import TABLE
from tilewright.cute.runtime import from_dlpack
from tilewright.lang.numbers import numeric

INTEGERS = [cutlass.Int8, cutlass.Int16, cutlass.Int32, cutlass.Int64]
INTEGERS += [cutlass.Uint8, cutlass.Uint16, cutlass.Uint32, cutlass.Uint64]
NATIVE = {cutlass.Float16: np.float16, cutlass.BFloat16: ml_dtypes.bfloat16}
NATIVE |= {cutlass.Float32: np.float32, cutlass.Float64: np.float64}
NARROW = {
    cutlass.Float8E4M3: ml_dtypes.float8_e4m3,
    cutlass.Float8E5M2: ml_dtypes.float8_e5m2,
    cutlass.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cutlass.Float8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    cutlass.Float8E8M0FNU: ml_dtypes.float8_e8m0fnu,
}
SMALL = {
    cutlass.Float6E3M2FN: ml_dtypes.float6_e3m2fn,
    cutlass.Float6E2M3FN: ml_dtypes.float6_e2m3fn,
    cutlass.Float4E2M1FN: ml_dtypes.float4_e2m1fn,
}
TYPES = [cutlass.Boolean, *INTEGERS, *NATIVE, *NARROW]
COUNT = 256

# Bits of precision, the exponent of the least normal number, the greatest number, and whether more is infinite.
FORMATS = {
    cutlass.Float16: (11, -14, Fraction(65504), True),
    cutlass.BFloat16: (8, -126, Fraction(255) * 2**120, True),
    cutlass.Float32: (24, -126, Fraction(2**24 - 1) * 2**104, True),
    cutlass.Float64: (53, -1022, Fraction(2**53 - 1) * 2**971, True),
    cutlass.Float8E4M3: (4, -6, Fraction(240), False),
    cutlass.Float8E5M2: (3, -14, Fraction(57344), False),
    cutlass.Float8E4M3FN: (4, -6, Fraction(448), False),
    cutlass.Float8E4M3B11FNUZ: (4, -10, Fraction(30), False),
    cutlass.Float6E3M2FN: (3, -2, Fraction(28), False),
    cutlass.Float6E2M3FN: (4, 0, Fraction(15, 2), False),
    cutlass.Float4E2M1FN: (2, 0, Fraction(6), False),
}


def storage(dtype) -> np.dtype:
    if dtype is cutlass.Boolean:
        return np.dtype(bool)
    if dtype in INTEGERS:
        return np.dtype(f"{'i' if dtype.signed else 'u'}{dtype.width // 8}")
    return np.dtype({**NATIVE, **NARROW}[dtype])


@functools.cache
def to_float(value: Fraction, dtype) -> float:
    """The nearest number of a format, ties to even, worked out in rational numbers."""
    if dtype is cutlass.Float8E8M0FNU:
        return nearest_power(value)
    precision, least, greatest, infinite = FORMATS[dtype]
    exponent = max(log2_below(abs(value)), least) if value else least
    unit = Fraction(2) ** (exponent - precision + 1)
    rounded = round(value / unit) * unit  # Python rounds ties to even
    if abs(rounded) > greatest:
        return math.copysign(math.inf if infinite else float(greatest), value)
    return float(rounded)


def log2_below(value: Fraction) -> int:
    """The greatest power of two that is not above a positive number."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1


def nearest_power(value: Fraction) -> float:
    """Of two powers equally near the greater one."""
    if value < 0:
        return math.nan
    exponent = log2_below(value) if value else -127
    exponent += value >= Fraction(3, 2) * Fraction(2) ** exponent
    return math.ldexp(1.0, min(max(exponent, -127), 127))


def to_integer(number: float, source, target) -> int:
    """What `cvt.rzi` gives, PTX ISA 9.0."""
    if math.isnan(number):
        bit = -(1 << (target.width - 1)) if target.signed else 1 << (target.width - 1)
        return bit if 64 in (source.width, target.width) else 0
    if math.isinf(number):
        return target.max if number > 0 else target.min
    return min(max(math.trunc(number), target.min), target.max)


def expected(number, source, target):
    """`number` is a Python number; the result a Python number of `target`."""
    if target is cutlass.Boolean:
        return number != 0
    if target in INTEGERS:
        if source.is_float:
            return to_integer(number, source, target)
        bits = int(number) & ((1 << target.width) - 1)
        return bits - (1 << target.width) if target.signed and bits >> (target.width - 1) else bits
    if source is target:
        return number
    return float_to_float(float(number), target) if source.is_float else to_float(Fraction(int(number)), target)


def float_to_float(number: float, target) -> float:
    if math.isnan(number):
        has_none = target in SMALL
        return math.copysign(float(FORMATS[target][2]), 1.0) if has_none else math.nan
    if target is cutlass.Float8E8M0FNU:
        return (
            (math.nan if number < 0 else math.ldexp(1.0, 127))
            if math.isinf(number)
            else to_float(Fraction(number), target)
        )
    if math.isinf(number):
        return number if FORMATS[target][3] else math.copysign(float(FORMATS[target][2]), number)
    return math.copysign(to_float(Fraction(number), target), number)


def same(found, wanted, target) -> bool:
    if isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(found)
    if isinstance(wanted, float) and wanted == 0 and target not in (cutlass.Float8E4M3B11FNUZ, cutlass.Float8E8M0FNU):
        return found == 0 and math.copysign(1, found) == math.copysign(1, wanted)
    return found == wanted


def numbers(dtype) -> np.ndarray:
    """All numbers of 8 bits; of wider types the edges of all formats, their neighbours, and random bits."""
    kind = storage(dtype)
    if dtype is cutlass.Boolean:
        return np.arange(COUNT) % 2 == 1
    if kind.itemsize == 1:
        return np.arange(COUNT, dtype=np.uint8).view(kind)
    random = np.random.default_rng(dtype.width)
    bits = np.frombuffer(random.bytes(COUNT * kind.itemsize), kind).copy()
    edges = integer_edges(dtype) if dtype in INTEGERS else float_edges(kind)
    bits[: len(edges)] = edges
    return bits


def integer_edges(dtype) -> np.ndarray:
    powers = [sign * (1 << e) + d for e in range(dtype.width) for sign in (1, -1) for d in (-1, 0, 1)]
    ties = [
        (1 << 24) + (1 << 16) // 2 + 1,
        (1 << 24) + 1,
        3 * (1 << 29) // 2 - 1,
        3 * (1 << 29) // 2,
        0x01008001,
        0x01018001,
    ]
    ties += [(1 << 60) + (1 << 36) + 1, (1 << 60) + (1 << 59) - 1, (1 << 62) + (1 << 51) + 1, (1 << 62) + (1 << 51) - 1]
    inside = sorted(
        {item for item in (*powers, *ties) if dtype.min <= item <= dtype.max}, key=lambda item: (abs(item), item)
    )
    step = max(1, -(-len(inside) // (COUNT - 8)))
    chosen = [*inside[::step], *(item for item in ties if item in inside)]
    return np.array([*dict.fromkeys(chosen)][:COUNT], storage(dtype))


def float_edges(kind: np.dtype) -> np.ndarray:
    magnitudes = [
        0.0,
        0.5,
        0.999,
        1.5,
        2.5,
        127.5,
        128,
        129,
        255.5,
        256,
        448,
        464,
        465,
        480,
        57344,
        61440,
        65504,
        65519.5,
        65520,
    ]
    magnitudes += [
        2.0**n
        for n in (-150, -149, -134, -133, -127, -126, -25, -24, -15, -14, -10, -9, -7, 15, 16, 31, 32, 63, 64, 127)
    ]
    magnitudes += [1.5 * 2.0**n for n in (-150, -134, -127, -25, -17, -10, -3, 4, 30)]
    magnitudes += [1 + 2.0**-n for n in (4, 8, 9, 11, 12, 24, 25)] + [1 + 2.0**-n + 2.0**-50 for n in (4, 8, 9, 11, 24)]
    magnitudes += [
        2.0**31 - 1,
        2.0**31 - 0.5,
        2.0**32 - 1,
        1e30,
        3.4028235677973366e38,
        1e39,
        1e300,
        5e-324,
        math.inf,
        math.nan,
    ]
    with np.errstate(all="ignore"):
        return np.array([s * m for m in magnitudes for s in (1, -1)], np.float64).astype(kind)


@cute.kernel
def one_each(x: cute.Tensor, out: tuple):
    i = cute.arch.thread_idx()[0]
    for number in cutlass.range_constexpr(len(out)):
        out[number][i] = x[i].to(out[number].element_type)


@cute.kernel
def eight_each(x: cute.Tensor, out: tuple):
    i = cute.arch.thread_idx()[0]
    for number in cutlass.range_constexpr(len(out)):
        values = cute.local_tile(x, (8,), (i,)).load()
        cute.local_tile(out[number], (8,), (i,)).store(values.to(out[number].element_type))


@cute.jit
def singly(x: cute.Tensor, out: tuple):
    one_each(x, out).launch(grid=1, block=COUNT)


@cute.jit
def as_vectors(x: cute.Tensor, out: tuple):
    eight_each(x, out).launch(grid=1, block=COUNT // 8)


@cute.jit
def on_host(x: cute.Tensor, out: tuple):
    for i in cutlass.range(COUNT):
        for number in cutlass.range_constexpr(len(out)):
            out[number][i] = x[i].to(out[number].element_type)


def tensor(array: np.ndarray, dtype):
    made = from_dlpack(array.view(np.uint8) if dtype in NARROW else array)
    if dtype in NARROW:
        made.element_type = dtype
    return made


PLACES = [(singly, "sm_90a"), (singly, "sm_80"), (as_vectors, "sm_90a"), (on_host, "sm_90a")]


@pytest.mark.parametrize(("place", "arch"), PLACES, ids=["sm_90a", "sm_80", "vectors", "host"])
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_every_conversion_is_exact_rounded_once_or_clamped(source, place, arch):
    x = numbers(source)
    arrays = [np.zeros(COUNT, storage(target)) for target in TYPES]
    arguments = tensor(x, source), tuple(tensor(array, target) for array, target in zip(arrays, TYPES, strict=True))
    with settings.scope(arch=arch):
        cute.compile(place, *arguments)(*arguments)
    for target, array in zip(TYPES, arrays, strict=True):
        for given, found in zip(x.tolist(), array.tolist(), strict=True):
            wanted = expected(given, source, target)
            assert same(found, wanted, target), f"{given!r} of {source} as {target}: {found!r}, not {wanted!r}"


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_numbers_of_compile_time_convert_alike(source):
    for given in numbers(source).tolist():
        if source in NARROW and isinstance(given, float) and math.isinf(given):
            continue  # a number of Python's is clamped to a narrow type
        for target in (*TYPES, *SMALL):
            found, wanted = target(source(given)).python(), expected(given, source, target)
            assert same(found, wanted, target), f"{given!r} of {source} as {target}: {found!r}, not {wanted!r}"


@pytest.mark.parametrize(
    "target",
    [
        cutlass.Float16,
        cutlass.BFloat16,
        cutlass.TFloat32,
        cutlass.Float32,
        cutlass.Float64,
        cutlass.Float8E4M3FN,
        cutlass.Float8E5M2,
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "given",
    [1e308, -1e308, 2.0**128, 5e-324, 10**400, -(10**400)],
    ids=["1e308", "-1e308", "2^128", "5e-324", "1e400", "-1e400"],
)
def test_numbers_of_python_beyond_a_format(given, target):
    """Infinite, or the greatest of a narrow format; zero, where nothing is left."""
    narrow = {cutlass.Float8E4M3FN: 448.0, cutlass.Float8E5M2: 57344.0}
    if target is cutlass.Float64 and isinstance(given, float):
        wanted = given
    elif given == 5e-324:
        wanted = 0.0
    else:
        wanted = math.copysign(narrow.get(target, math.inf), 1 if given > 0 else -1)
    assert target(given).value == wanted


def test_every_row_of_the_table_of_number_types_has_a_class():
    assert list(numeric.BY_NAME) == list(TABLE)
    assert {cls.facts for cls in numeric.BY_NAME.values()} == set(TABLE.values())
    assert len({cls.__name__ for cls in numeric.BY_NAME.values()}) == len(TABLE)
