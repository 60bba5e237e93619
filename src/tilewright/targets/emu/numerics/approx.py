"""Approximate PTX instructions (.approx, .full), computed in float64 and rounded, so well inside the manual's bounds.

Where the hardware's own steps fix what special or large operands give (a product by a reciprocal, a reduction of
the angle by a rounded 1/2π), those steps are taken here too. Bounds quoted are those of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.targets.emu.numerics import exact
from tilewright.targets.emu.numerics.floats import bits_of, flush, mul, packed
from tilewright.targets.emu.numerics.formats import (
    NAN16,
    NAN32,
    Array,
    decode,
    encode,
    format_named,
    limit,
    quantize,
    some,
)

TURN = np.float32(0.15915493667125702)  # 1/2π as the hardware multiplies by it, rounding towards zero
TINY32 = np.float32(2.0**-126)


def rcp(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """1/a within 1 ulp; zeros give infinities, infinities zeros.

    f64 (`rcp.approx.ftz.f64`): about 2**-23 relative; only the upper 32 bits of operand and result count, subnormal
    operands and results are zero.
    """
    if type == "f64":
        return _upper_half(lambda x: 1.0 / x, a)
    return _apply(lambda x: 1.0 / x, a, type, ftz)


def rsqrt(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """1/sqrt(a) within 2**-22.9 relative; NaN below zero, an infinity of the operand's sign at zero.

    f64 with `ftz` (`rsqrt.approx.ftz.f64`): upper 32 bits only, as `rcp`; without, full precision.
    """
    if type == "f64" and ftz:
        return _upper_half(lambda x: 1.0 / np.sqrt(x), a)
    if type == "f64":
        return 1.0 / np.sqrt(a)
    return _apply(lambda x: 1.0 / np.sqrt(x), a, type, ftz)


def sqrt(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """The square root within 2**-23 relative; -0 of -0, NaN below zero."""
    return _apply(np.sqrt, a, type, ftz)


def sin(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """The sine of radians: 2**-20.5 absolute within [-2π, 2π]; NaN of infinities."""
    return _angle(np.sin, a, ftz)


def cos(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """The cosine of radians: 2**-20.5 absolute within [-2π, 2π]; NaN of infinities."""
    return _angle(np.cos, a, ftz)


def lg2(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """log2(a): 2**-22 absolute in (0.5, 2), else 2**-22 relative; -inf at zeros, NaN below zero."""
    return _apply(np.log2, a, type, ftz)


@packed
def ex2(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """2**a: f32 within 2 ulp, f16 2**-9.9 relative, bf16 2**-7 (always .ftz)."""
    return _apply(np.exp2, a, type, ftz)


@packed
def tanh(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """The hyperbolic tangent: f32 2**-11 relative, f16 2**-10.987 and bf16 2**-8 absolute."""
    return _apply(np.tanh, a, type, ftz)


def div(a: Array, b: Array, type: str = "f32", ftz: bool = False) -> Array:
    """`div.approx`: a times the reciprocal, within 2 ulp for |b| in [2**-126, 2**126].

    For greater |b| the reciprocal is zero, so finite a give zero and infinities NaN.
    """
    a, b = _scaled(a, b, ftz)
    r = _reciprocal(b)
    return mul(a, np.where(np.abs(r) < TINY32, np.copysign(np.float32(0), r), r), ftz=ftz)


def div_full(a: Array, b: Array, type: str = "f32", ftz: bool = False) -> Array:
    """`div.full`: within 2 ulp over the whole range; operands with a great or small |b| are scaled first."""
    if ftz:
        a, b = flush(a, "f32"), flush(b, "f32")
    great = np.abs(b) > np.float32(2.0**126)
    quarter = np.float32(0.25)
    a, b = np.where(great, mul(a, np.broadcast_to(quarter, a.shape)), a), np.where(great, b * quarter, b)
    a, b = _scaled(a, b, ftz)
    return mul(a, _reciprocal(b), ftz=ftz)


def _scaled(a: Array, b: Array, ftz: bool) -> tuple[Array, Array]:
    """Operands with a subnormal b multiplied by 2**24 (with `ftz` they are zero instead)."""
    if ftz:
        a, b = flush(a, "f32"), flush(b, "f32")
    low = np.abs(b) < TINY32
    if not some(low):
        return a, b
    scale = np.where(low, np.float32(2.0**24), np.float32(1))
    return a * scale, b * scale


def _reciprocal(b: Array) -> Array:
    return (1.0 / b.astype(np.float64)).astype(np.float32)


def _angle(function: Callable[[Array], Array], a: Array, ftz: bool) -> Array:
    a = flush(a, "f32") if ftz else a
    turns = exact.narrow(a.astype(np.float64) * np.float64(TURN), np.float32, "rz").astype(np.float64)
    r = function((turns - np.rint(turns)) * (2 * np.pi)).astype(np.float32)
    r = np.where((turns == 0) & (function is np.sin), a, r)
    return np.where(np.isfinite(a), flush(r, "f32") if ftz else r, NAN32)


def _upper_half(function: Callable[[Array], Array], a: Array) -> Array:
    high = (bits_of(a, "f64") & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    r = flush(function(flush(high, "f64")), "f64")
    bits = np.where(r != r, np.uint64(0x7FFFFFFF00000000), bits_of(r, "f64") & np.uint64(0xFFFFFFFF00000000))
    return np.asarray(bits).view(np.float64)


def _apply(function: Callable[[Array], Array], a: Array, type: str, ftz: bool) -> Array:
    """Decode, compute in float64, round to nearest, encode; NaN canonical."""
    fmt = format_named(type)
    x = decode(flush(a, type) if ftz and type != "bf16" else a, fmt)
    if type == "bf16":  # the bf16 forms flush subnormals
        x = np.where(np.abs(x) < fmt.smallest_normal, np.copysign(0.0, x), x)
        r = limit(quantize(function(x), fmt), fmt)
        return encode(np.where(np.abs(r) < fmt.smallest_normal, np.copysign(0.0, r), r), fmt)
    dtype, nan = (np.float32, NAN32) if type == "f32" else (np.float16, NAN16)
    r = function(x).astype(dtype)
    r = np.where(r != r, nan, r)
    return flush(r, type) if ftz else r
