"""A slow exact reference: every value a `Fraction`, every rounding an integer division.

It shares nothing with the code under test but the widths of the formats, written out again here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

# name: (exponent bits, mantissa bits, largest finite value, has infinity, canonical NaN)
FORMATS: dict[str, tuple[int, int, Fraction, bool, int | None]] = {
    "f64": (11, 52, Fraction(2) ** 1024 - Fraction(2) ** 971, True, 0xFFF8000000000000),
    "f32": (8, 23, Fraction(2) ** 128 - Fraction(2) ** 104, True, 0x7FFFFFFF),
    "f16": (5, 10, Fraction(65504), True, 0x7FFF),
    "bf16": (8, 7, Fraction(2) ** 128 - Fraction(2) ** 120, True, 0x7FFF),
    "tf32": (8, 10, Fraction(2) ** 128 - Fraction(2) ** 117, True, 0x3FFFF),
    "e5m2": (5, 2, Fraction(57344), True, 0x7F),
    "e4m3": (4, 3, Fraction(448), False, 0x7F),
    "e3m2": (3, 2, Fraction(28), False, None),
    "e2m3": (2, 3, Fraction(15, 2), False, None),
    "e2m1": (2, 1, Fraction(6), False, None),
}
NAN = math.nan
Number = Fraction | float  # a finite value, or one of -inf, inf, nan, -0.0


def bias(fmt: str) -> int:
    exponent = FORMATS[fmt][0]
    return 2 ** (exponent - 1) - 1


def width(fmt: str) -> int:
    return 1 + FORMATS[fmt][0] + FORMATS[fmt][1]


def value(bits: int, fmt: str) -> Number:
    """The number that bits stand for."""
    exponent, mantissa, largest, infinite, _ = FORMATS[fmt]
    negative = bits >> (exponent + mantissa) & 1
    field = bits >> mantissa & (2**exponent - 1)
    fraction = bits & (2**mantissa - 1)
    if infinite and field == 2**exponent - 1:
        return NAN if fraction else (-math.inf if negative else math.inf)
    if fmt == "e4m3" and field == 15 and fraction == 7:
        return NAN
    if field == 0:
        size = Fraction(fraction, 2**mantissa) * Fraction(2) ** (1 - bias(fmt))
    else:
        size = (1 + Fraction(fraction, 2**mantissa)) * Fraction(2) ** (field - bias(fmt))
    assert size <= largest
    if size == 0 and negative:
        return -0.0
    return -size if negative else size


def round_to(x: Number, fmt: str, rnd: str = "rn", negative_zero: bool = False, satfinite: bool = False) -> int:
    """The bits of `x` rounded to a format. A zero gets the sign `negative_zero` unless it is a rounded value's."""
    exponent, mantissa, largest, infinite, nan = FORMATS[fmt]
    sign = 1 << (exponent + mantissa)
    top = (2**exponent - 1) << mantissa
    if isinstance(x, float) and math.isnan(x):
        assert nan is not None
        return nan
    if isinstance(x, float) and math.isinf(x):
        bits = bits_of_size(largest, fmt) if satfinite or not infinite else top
        return bits | (sign if x < 0 else 0)
    if x == 0:
        return sign if negative_zero or (isinstance(x, float) and math.copysign(1, x) < 0) else 0
    x = Fraction(x)
    size = abs(x)
    rounded = round_size(size, fmt, rnd, x < 0)
    if rounded > largest:
        inward = rnd == "rz" or (rnd == "rm" and x > 0) or (rnd == "rp" and x < 0)
        bits = bits_of_size(largest, fmt) if inward or satfinite or not infinite else top
    else:
        bits = bits_of_size(rounded, fmt)
    return bits | (sign if x < 0 else 0)


def round_size(size: Fraction, fmt: str, rnd: str, negative: bool) -> Fraction:
    _, mantissa, *_ = FORMATS[fmt]
    power = max(floor_log2(size), 1 - bias(fmt))
    unit = Fraction(2) ** (power - mantissa)
    steps, rest = divmod(size, unit)
    return (steps + rounds_up(int(steps), rest / unit, rnd, negative)) * unit


def flushed(x: Number, fmt: str, rnd: str = "rn") -> Number:
    """`.ftz` of a result: a signed zero where the value, rounded as if no exponent were too small, is subnormal."""
    if is_nan(x) or is_inf(x) or x == 0:
        return x
    size, mantissa = abs(Fraction(x)), FORMATS[fmt][1]
    unit = Fraction(2) ** (floor_log2(size) - mantissa)
    steps, rest = divmod(size, unit)
    rounded = (steps + rounds_up(int(steps), rest / unit, rnd, x < 0)) * unit
    least = Fraction(2) ** (1 - bias(fmt))
    return x if rounded >= least else (-0.0 if x < 0 else Fraction(0))


def rounds_up(steps: int, rest: Fraction, rnd: str, negative: bool) -> bool:
    if rnd == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and steps % 2 == 1)
    if rnd == "rna":
        return rest >= Fraction(1, 2)
    if rnd == "rz":
        return False
    return rest > 0 and negative == (rnd == "rm")


def floor_log2(size: Fraction) -> int:
    power = size.numerator.bit_length() - size.denominator.bit_length()
    return power if size >= Fraction(2) ** power else power - 1


def bits_of_size(size: Fraction, fmt: str) -> int:
    _, mantissa, *_ = FORMATS[fmt]
    if size < Fraction(2) ** (1 - bias(fmt)):
        return int(size / Fraction(2) ** (1 - bias(fmt) - mantissa))
    power = floor_log2(size)
    return ((power + bias(fmt)) << mantissa) + int((size / Fraction(2) ** power - 1) * 2**mantissa)


def is_nan(x: Number) -> bool:
    return isinstance(x, float) and math.isnan(x)


def is_inf(x: Number) -> bool:
    return isinstance(x, float) and math.isinf(x)


def negative(x: Number) -> bool:
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def add(x: Number, y: Number, rnd: str = "rn") -> Number:
    if is_nan(x) or is_nan(y):
        return NAN
    if is_inf(x) or is_inf(y):
        return float(x if is_inf(x) else 0) + float(y if is_inf(y) else 0)
    total = Fraction(x) + Fraction(y)
    if total != 0:
        return total
    both = negative(x) and negative(y)
    mixed = negative(x) or negative(y)
    return -0.0 if both or (mixed and rnd == "rm") else Fraction(0)


def mul(x: Number, y: Number) -> Number:
    if is_nan(x) or is_nan(y):
        return NAN
    sign = negative(x) != negative(y)
    if is_inf(x) or is_inf(y):
        return NAN if x == 0 or y == 0 else (-math.inf if sign else math.inf)
    product = Fraction(x) * Fraction(y)
    return -0.0 if product == 0 and sign else product


def div(x: Number, y: Number) -> Number:
    if is_nan(x) or is_nan(y) or (is_inf(x) and is_inf(y)) or (x == 0 and y == 0):
        return NAN
    sign = negative(x) != negative(y)
    if is_inf(x) or y == 0:
        return -math.inf if sign else math.inf
    if is_inf(y) or x == 0:
        return -0.0 if sign else Fraction(0)
    return Fraction(x) / Fraction(y)


def sqrt(x: Number) -> Number:
    """The root to 300 bits, never on a grid point or midpoint unless it is exact."""
    if is_nan(x) or (negative(x) and x != 0):
        return NAN
    if x == 0 or is_inf(x):
        return x
    x = Fraction(x)
    scale = 2 ** (2 * 1400)
    scaled = x * scale
    assert scaled.denominator == 1
    root = math.isqrt(int(scaled))
    exact = root * root == int(scaled)
    return Fraction(root, 2**1400) if exact else Fraction(2 * root + 1, 2**1401)


def special_bits(fmt: str) -> list[int]:
    """Zeros, ones, subnormals, extremes, infinities and NaN, of both signs."""
    exponent, mantissa, largest, infinite, nan = FORMATS[fmt]
    one = bits_of_size(Fraction(1), fmt)
    top = bits_of_size(largest, fmt)
    low = 1 << mantissa
    sizes = [0, 1, 2, 3, low - 1, low, low + 1, one - 1, one, one + 1, top - 1, top, one + low, one - low]
    if infinite:
        infinity = (2**exponent - 1) << mantissa
        sizes += [infinity, infinity + 1, infinity + (low >> 1), infinity + (low >> 1) + 1]
    elif nan is not None:
        sizes.append(nan)
    sizes = [size for size in sizes if 0 <= size < 1 << (exponent + mantissa)]
    return [*sizes, *(size | 1 << (exponent + mantissa) for size in sizes)]


def random_bits(fmt: str, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Bit patterns: a third anything, a third near one, the rest specials; shuffled."""
    exponent, mantissa, *_ = FORMATS[fmt]
    total = width(fmt)
    anything = rng.integers(0, 1 << total, count, dtype=np.uint64)
    one = bits_of_size(Fraction(1), fmt)
    spread = min(6, 2 ** (exponent - 1) - 2)
    near = one + rng.integers(-spread, spread + 1, count) * (1 << mantissa) + rng.integers(0, 1 << mantissa, count)
    near = near.astype(np.uint64) | (rng.integers(0, 2, count, dtype=np.uint64) << np.uint64(total - 1))
    special = rng.choice(np.array(special_bits(fmt), dtype=np.uint64), count)
    short = near & ~np.uint64((1 << (mantissa * 2 // 3)) - 1)  # few significant bits: ties and exact results
    return np.choose(rng.integers(0, 4, count), [anything, near, special, short])
