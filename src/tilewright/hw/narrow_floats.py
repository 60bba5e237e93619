"""Floats of 4 to 8 bits, exactly: encoding with rounding to nearest even, and decoding. Pure Python.

Formats: OCP Microscaling 1.0 (e2m1, e2m3, e3m2, e8m0), OCP 8-bit floating point 1.0 (e4m3fn, e5m2), MLIR's f8E4M3
(IEEE style) and f8E4M3B11FNUZ. A number too great becomes the greatest finite one (as `cvt.satfinite` makes it); NaN
becomes the format's NaN, or the greatest number where it has none.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal

from tilewright.base.errors import CompileError


@dataclass(frozen=True)
class Format:
    """`exponent` and `mantissa` bits, the exponent's bias, and what the codes at the top mean.

    `special`: "ieee" (the top exponent is infinity and NaN), "nan" (only the top code is NaN), "none", or "fnuz"
    (NaN is the code of minus zero).
    """

    exponent: int
    mantissa: int
    bias: int
    special: Literal["ieee", "nan", "none", "fnuz"]

    @property
    def largest(self) -> int:
        """The code of the greatest finite number, sign apart."""
        top = (1 << (self.exponent + self.mantissa)) - 1
        if self.special == "ieee":
            return top - (1 << self.mantissa)
        return top - 1 if self.special == "nan" else top

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)


FORMATS = {
    "f8e4m3": Format(4, 3, 7, "ieee"),
    "f8e5m2": Format(5, 2, 15, "ieee"),
    "f8e4m3fn": Format(4, 3, 7, "nan"),
    "f8e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "f6e3m2fn": Format(3, 2, 3, "none"),
    "f6e2m3fn": Format(2, 3, 1, "none"),
    "f4e2m1fn": Format(2, 1, 1, "none"),
}
E8M0 = "f8e8m0fnu"
TF32_DROPPED = 13  # bits of a float32's fraction that TF32 has not
_E8M0_BIAS, _E8M0_NAN = 127, 255


def is_narrow(name: str) -> bool:
    """True for the formats of this module."""
    return name in FORMATS or name == E8M0


def decode(code: int, name: str) -> float:
    """The number that a code of the format stands for."""
    if name == E8M0:
        return math.nan if code == _E8M0_NAN else math.ldexp(1.0, code - _E8M0_BIAS)
    form = _form(name)
    magnitude, negative = code & (form.sign - 1), bool(code & form.sign)
    if form.special == "fnuz" and code == form.sign:
        return math.nan
    if magnitude > form.largest:
        infinite = form.special == "ieee" and not magnitude & ((1 << form.mantissa) - 1)
        return (-math.inf if negative else math.inf) if infinite else math.nan
    exponent, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if exponent:
        fraction += 1 << form.mantissa
    value = math.ldexp(fraction, max(exponent, 1) - form.bias - form.mantissa)
    return -value if negative else value


def encode(value: float, name: str) -> int:
    """The code of the number nearest to `value`, ties to the even code."""
    if name == E8M0:
        return _encode_power(value)
    form = _form(name)
    if math.isnan(value):
        return _nan(form)
    negative = math.copysign(1.0, value) < 0
    magnitude = min(_rounded(abs(value), form), form.largest)
    if form.special == "fnuz" and magnitude == 0:
        return 0
    return magnitude | (form.sign if negative else 0)


def round_to(value: float, name: str) -> float:
    """The number of the format nearest to `value`."""
    return decode(encode(value, name), name)


def round_to_tf32(value: float) -> float:
    """The TF32 number (10 bits of fraction) nearest to a float32, ties away from zero, as `cvt.rna` does."""
    try:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    if math.isfinite(value):
        bits = bits + (1 << (TF32_DROPPED - 1)) & ~((1 << TF32_DROPPED) - 1)
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _form(name: str) -> Format:
    form = FORMATS.get(name)
    if form is None:
        raise CompileError(f"{name} is no narrow float")
    return form


def _nan(form: Format) -> int:
    if form.special == "fnuz":
        return form.sign
    return form.largest if form.special == "none" else form.sign - 1


def _rounded(value: float, form: Format) -> int:
    """The code of a number that is not negative, rounded, past the greatest one where it is greater."""
    if math.isinf(value):
        return form.largest + 1
    exponent = max(math.frexp(value)[1] - 1, 1 - form.bias) if value else 1 - form.bias
    units = round(math.ldexp(value, form.mantissa - exponent))  # to even
    return units + ((exponent + form.bias - 1) << form.mantissa)


def _encode_power(value: float) -> int:
    """Powers of two have no sign and no zero: the nearest one, ties upwards to the even mantissa of the next."""
    if math.isnan(value) or value < 0:
        return _E8M0_NAN
    if value == 0:
        return 0
    if math.isinf(value):
        return _E8M0_NAN - 1
    fraction, exponent = math.frexp(value)  # value = fraction * 2^exponent, fraction in [0.5, 1)
    power = exponent - 1 + (fraction >= 0.75)
    return min(max(power + _E8M0_BIAS, 0), _E8M0_NAN - 1)
