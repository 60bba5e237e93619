"""Floating-point formats of PTX (PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats").

A format is a row of a table; decoding to float64, rounding of a float64 onto its grid, and encoding into bits
follow from the row. float64 holds every value of every format here exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    `exponent` and `mantissa` are field widths in bits, `nan` the bits of the canonical NaN (None: it has none),
    `largest` the greatest finite value. Bits are held in unsigned integers of `storage` bits.
    """

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: float
    nan: int | None
    infinite: bool
    storage: int

    @property
    def bits(self) -> int:
        """Width of sign, exponent and mantissa together."""
        return 1 + self.exponent + self.mantissa

    @property
    def smallest_normal(self) -> float:
        """The least positive normal value."""
        return 2.0 ** (1 - self.bias)

    @property
    def storage_dtype(self) -> np.dtype[Any]:
        """The unsigned integer dtype that holds the bits."""
        return np.dtype(f"u{self.storage // 8}")


FORMATS = {
    row.name: row
    for row in (
        Format("f64", 11, 52, 1023, 1.7976931348623157e308, 0xFFF8000000000000, True, 64),
        Format("f32", 8, 23, 127, 3.4028234663852886e38, 0x7FFFFFFF, True, 32),
        Format("tf32", 8, 10, 127, 3.4011621342146535e38, 0x7FFFE000, True, 32),
        Format("bf16", 8, 7, 127, 3.3895313892515355e38, 0x7FFF, True, 16),
        Format("f16", 5, 10, 15, 65504.0, 0x7FFF, True, 16),
        Format("e5m2", 5, 2, 15, 57344.0, 0x7F, True, 8),
        Format("e4m3", 4, 3, 7, 448.0, 0x7F, False, 8),
        Format("e3m2", 3, 2, 3, 28.0, None, False, 8),
        Format("e2m3", 2, 3, 1, 7.5, None, False, 8),
        Format("e2m1", 2, 1, 1, 6.0, None, False, 8),
    )
}

OOB_NAN = 0x7FF7
"""The f16 or bf16 that `fma.oob` takes for zero, as a factor of either sign. The PTX ISA does not say its bits: they
are recorded on an H100 (kernels fma_oob_*). Tensor copies are taken to put the same outside their tensors (fill mode
NaN), which is not recorded."""
NAN32: np.float32 = np.uint32(0x7FFFFFFF).view(np.float32)
NAN16: np.float16 = np.uint16(0x7FFF).view(np.float16)
NAN64: np.float64 = np.uint64(0xFFF8000000000000).view(np.float64)


some = np.count_nonzero  # whether any Boolean is true, in a fraction of the time of `any`


def format_named(name: str) -> Format:
    """The format of a PTX type name; `EmulationError` for another name."""
    row = FORMATS.get(name)
    if row is None:
        raise EmulationError(
            f"{name} is no floating-point type of this operation",
            values={"type": name, "known": " ".join(FORMATS)},
            hint="the instruction is not in the PTX ISA with this type",
        )
    return row


def unknown_mode(name: str, value: object, known: object) -> EmulationError:
    """The error for a modifier that an operation does not have."""
    return EmulationError(f"{name} {value!r} does not exist here", values={name: value, "known": known})


def quantize(x: Array, fmt: Format, rnd: str = "rn") -> Array:
    """Round float64 `x` onto the grid of `fmt`, as if its exponent had no upper bound.

    `rnd` is rn (ties to even), rna (ties away), rz, rm or rp. NaN and infinities pass.
    """
    _, exponent = np.frexp(x)
    quantum = np.maximum(exponent, 2 - fmt.bias) - (fmt.mantissa + 1)
    scaled = np.ldexp(x, -quantum)
    return np.where(np.isfinite(x), np.ldexp(round_integral(scaled, rnd), quantum), x)


def round_integral(x: Array, rnd: str) -> Array:
    """Round to an integral value in the same dtype; the sign of a zero result is that of `x`."""
    if rnd == "rn":
        return np.rint(x)
    if rnd == "rz":
        return np.trunc(x)
    if rnd == "rm":
        return np.floor(x)
    if rnd == "rp":
        return np.ceil(x)
    if rnd == "rna":
        whole = np.trunc(x)
        away = np.abs(x - whole) >= 0.5
        return np.where(away, whole + np.copysign(1.0, x), whole)
    raise unknown_mode("rounding", rnd, "rn rz rm rp rna")


def limit(x: Array, fmt: Format, rnd: str = "rn", satfinite: bool = False) -> Array:
    """Replace values beyond `fmt.largest` by infinity or the largest finite value, as `rnd` says.

    With `satfinite`, or in a format without infinity, always by the largest finite value (infinities too).
    """
    over = np.abs(x) > fmt.largest
    if not some(over):
        return x
    bound = np.copysign(fmt.largest, x)
    if satfinite or not fmt.infinite:
        return np.where(over, bound, x)
    stays = np.isfinite(x) & _rounds_inward(x, rnd)
    return np.where(over, np.where(stays, bound, np.copysign(np.inf, x)), x)


def _rounds_inward(x: Array, rnd: str) -> Array | bool:
    if rnd == "rz":
        return True
    if rnd == "rm":
        return x > 0
    if rnd == "rp":
        return x < 0
    return False


def encode(x: Array, fmt: Format) -> Array:
    """The bits of float64 values that lie on the grid of `fmt`; NaN becomes the canonical NaN.

    A tf32 is held in the upper 19 bits of a 32-bit word. `EmulationError` if a NaN has no encoding.
    """
    if fmt.name == "f64":
        return np.where(np.isnan(x), NAN64, x).view(np.uint64)
    if fmt.name in ("f32", "tf32", "bf16"):
        nan = np.uint32((fmt.nan or 0) << (32 - fmt.storage)).view(np.float32)
        bits = np.where(np.isnan(x), nan, x.astype(np.float32)).view(np.uint32)
        return (bits >> np.uint32(16)).astype(np.uint16) if fmt.name == "bf16" else bits
    if fmt.name == "f16":
        return np.where(np.isnan(x), NAN16, x.astype(np.float16)).view(np.uint16)
    return _encode_small(x, fmt)


def _encode_small(x: Array, fmt: Format) -> Array:
    sign = np.signbit(x).astype(np.int64) << (fmt.bits - 1)
    finite = np.isfinite(x)
    size = np.where(finite, np.abs(x), 0.0)
    _, exponent = np.frexp(size)
    field = np.where(size > 0, np.maximum(exponent - 1 + fmt.bias, 1), 1)
    # The implicit bit of a normal value carries into the exponent field; a subnormal has none.
    steps = np.ldexp(size, fmt.mantissa + fmt.bias - field).astype(np.int64)
    code = ((field - 1).astype(np.int64) << fmt.mantissa) + steps
    infinity = ((1 << fmt.exponent) - 1) << fmt.mantissa
    code = np.where(finite, code, infinity) | sign
    nan = np.isnan(x)
    if fmt.nan is not None:
        code = np.where(nan, fmt.nan, code)
    elif some(nan):
        raise EmulationError(f"{fmt.name} has no NaN", hint="convert with .satfinite")
    return np.asarray(code, fmt.storage_dtype)


def decode(bits: Array, fmt: Format) -> Array:
    """The float64 values of bit patterns (or of float arrays of the same format)."""
    if bits.dtype.kind == "f":
        return bits.astype(np.float64)
    if fmt.storage == 8:
        return np.asarray(_table(fmt.name)[bits & ((1 << fmt.bits) - 1)])
    words = bits.astype(fmt.storage_dtype, copy=False)
    if fmt.name == "bf16":
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if fmt.name == "tf32":  # the low 13 bits of a tf32 operand are ignored
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return np.asarray(words.view(f"f{fmt.storage // 8}"), np.float64)


@cache
def _table(name: str) -> Array:
    fmt = FORMATS[name]
    return np.array([_value(code, fmt) for code in range(1 << fmt.bits)])


def _value(code: int, fmt: Format) -> float:
    sign = -1.0 if code >> (fmt.bits - 1) else 1.0
    field = (code >> fmt.mantissa) & ((1 << fmt.exponent) - 1)
    fraction = code & ((1 << fmt.mantissa) - 1)
    if fmt.infinite and field == (1 << fmt.exponent) - 1:
        return float("nan") if fraction else sign * float("inf")
    if fmt.nan is not None and not fmt.infinite and code & (fmt.nan) == fmt.nan:
        return float("nan")
    if field == 0:
        return sign * fraction * 2.0 ** (1 - fmt.bias - fmt.mantissa)
    return sign * (1 + fraction / 2.0**fmt.mantissa) * 2.0 ** (field - fmt.bias)
