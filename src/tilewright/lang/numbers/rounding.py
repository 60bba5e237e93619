"""Python numbers as the number types hold them: wrapped, rounded, and powers as C has them."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.base.dtypes import DType
from tilewright.hw import narrow_floats
from tilewright.hw.saturation import saturate

T = TypeVar("T")


def wrap(value: float, facts: DType, source_width: int = 32) -> Any:
    """A Python number as the type holds it: floats rounded to nearest even, integers modulo 2^width; a float (of
    `source_width` bits) as an integer towards zero and clamped."""
    if facts.kind == "b":
        return bool(value)
    if facts.kind == "f":
        return _round_float(_nearly(value, facts.name), facts.name)
    if isinstance(value, float):
        return saturate(value, source_width=source_width, width=facts.width, signed=facts.kind == "i")
    bits = int(value) & ((1 << facts.width) - 1)
    return bits - (1 << facts.width) if facts.kind == "i" and bits >> (facts.width - 1) else bits


def _nearly(value: float, name: str) -> float:
    """A Python number as a float that rounds to a narrower format as it does: what a great integer loses sets a bit."""
    if isinstance(value, int) and name != "f64" and (low := value.bit_length() - sys.float_info.mant_dig) > 0:
        value = (value >> low | bool(value & ((1 << low) - 1))) << low
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _round_float(value: float, name: str) -> float:
    if not math.isfinite(value) and not narrow_floats.is_narrow(name):
        return value
    if name in ("f32", "f16"):
        code = "f" if name == "f32" else "e"
        try:
            return float(struct.unpack(code, struct.pack(code, value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    if name == "bf16":
        return _round_bfloat16(value)
    if name == "tf32":
        return narrow_floats.round_to_tf32(value)
    return narrow_floats.round_to(value, name) if narrow_floats.is_narrow(name) else value


def _round_bfloat16(value: float) -> float:
    if value == 0 or abs(value) >= 2.0**128:
        return value and math.copysign(math.inf, value)
    exponent = max(math.frexp(value)[1] - 8, -133)  # 8 bits of precision, denormals below 2^-126
    rounded = math.ldexp(round(math.ldexp(value, -exponent)), exponent)
    return math.copysign(rounded if abs(rounded) < 2.0**128 else math.inf, value)


def integer_power(base: int, exponent: int, width: int) -> int:
    """`base ** exponent` modulo 2^width; a negative exponent leaves only powers of 1 and -1."""
    if exponent >= 0:
        return pow(base, exponent, 1 << width)
    return int(float(base) ** exponent) if abs(base) <= 1 else 0


def float_power(base: float, exponent: float) -> float:
    """`base ** exponent` as C has it: infinite or NaN where Python raises or gives a complex number."""
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError) as error:
        if isinstance(error, ValueError) and base:
            return math.nan
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf


EXPONENTS_OF_PRODUCTS = frozenset(range(-1, 5))
"""Exponents of floats for which a power is a product, or a quotient."""


def power_by_products(base: T, exponent: int, multiply: Callable[[T, T], T]) -> T:
    """`base ** exponent` for exponents 2 to 4: `x * x`, `x * x * x`, `(x * x) * (x * x)`."""
    square = multiply(base, base)
    if exponent == 2:
        return square
    return multiply(square, base if exponent == 3 else square)
