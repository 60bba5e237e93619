"""`cvt` among all integer and floating-point types (PTX ISA, "Data Movement and Conversion Instructions: cvt").

Integers are arrays of their NumPy dtype, f16 f32 f64 float arrays, bf16 and the 8-bit and narrower formats unsigned
bit patterns, tf32 uint32 words. A packed destination takes a pair (a, b): a goes to the upper half.

NaN, as recorded on an H100: conversions among f32, f16 and bf16 give the canonical NaN, from f32 to tf32 0x7fffe000. A
widening to f64 and a narrowing from f64 keep the sign and the upper bits of the payload and make the NaN quiet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import exact, floats
from tilewright.targets.emu.numerics.formats import (
    FORMATS,
    Array,
    Format,
    decode,
    encode,
    format_named,
    limit,
    quantize,
    round_integral,
    some,
    unknown_mode,
)

INTEGERS: dict[str, np.dtype[Any]] = {
    f"{kind}{width}": np.dtype(f"{'i' if kind == 's' else 'u'}{width // 8}")
    for kind in "sub"
    for width in (8, 16, 32, 64)
}
INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
LANE_BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 4, "ue8m0": 8, "f32": 32}
NO_NAN = ("e3m2", "e2m3", "e2m1")


def cvt(
    values: Array | tuple[Array, Array],
    src: str,
    dst: str,
    rnd: str | None = None,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """Convert `values` of type `src` to `dst`.

    `rnd`: rn rz rm rp (rna for tf32) or rni rzi rmi rpi; None where the instruction takes none. `sat` clamps integers
    to the range of `dst` and floats to [0, 1]; float to integer always clamps. `satfinite` gives the largest finite
    value in place of infinities, and of NaN where `dst` has none. Raises `EmulationError` for a pair of types or a
    modifier that `cvt` does not have.
    """
    if dst.endswith("x2"):
        return _packed(values, src, dst, rnd, relu, satfinite)
    if isinstance(values, tuple):
        raise EmulationError(f"cvt to {dst} takes one operand", values={"type": f"cvt.{dst}.{src}"})
    if src in INTEGERS:
        whole = np.asarray(values).astype(INTEGERS[src], copy=False)
        return _from_integer(whole, dst, rnd or "rn", sat)
    if dst in INTEGERS:
        return _to_integer(values, src, dst, rnd or "rzi", ftz)
    return _float_to_float(values, src, dst, rnd, ftz, sat, relu, satfinite)


# ---- integers -------------------------------------------------------------------------------------------------


def _from_integer(values: Array, dst: str, rnd: str, sat: bool) -> Array:
    if dst in INTEGERS:
        return _clamped(values, INTEGERS[dst]) if sat else values.astype(INTEGERS[dst])
    fmt = format_named(dst)
    if sat:
        values = np.clip(values, 0, 1)
    if rnd == "rn" and dst in ("f32", "f64"):
        return values.astype(np.float32 if dst == "f32" else np.float64)
    wide = values.dtype.itemsize == 8
    high = (values >> values.dtype.type(32)).astype(np.float64) if wide else np.zeros(values.shape)
    low = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64) if wide else values.astype(np.float64)
    if dst == "f64":
        return exact.fma(high, np.full((), 2.0**32), low, rnd)
    return _rounded(exact.sum_to_odd(high * 2.0**32, low), fmt, rnd)


def _clamped(values: Array, dtype: np.dtype[Any]) -> Array:
    bounds, own = np.iinfo(dtype), np.iinfo(values.dtype)
    low, high = max(int(bounds.min), int(own.min)), min(int(bounds.max), int(own.max))
    return np.clip(values, low, high).astype(dtype)


def _to_integer(values: Array, src: str, dst: str, rnd: str, ftz: bool) -> Array:
    """Round, clamp; NaN gives 0, or 1 << (width - 1) where either side has 64 bits."""
    if rnd not in INTEGRAL:
        raise unknown_mode("rounding", rnd, " ".join(INTEGRAL))
    fmt, dtype = format_named(src), INTEGERS[dst]
    values = floats.flush(values, src) if ftz and src == "f32" else values
    x = values if src == "f32" else decode(values, fmt)
    x = round_integral(x, INTEGRAL[rnd])
    bounds = np.iinfo(dtype)
    high = 2.0 ** (dtype.itemsize * 8 - (dtype.kind == "i"))  # first value beyond the range, exact in float64
    inside = (x >= bounds.min) & (x < high)
    if some(inside) == inside.size:
        return np.asarray(x.astype(dtype))
    r = np.where(inside, x, 0.0).astype(dtype)
    r = np.where(inside, r, np.where(x > 0, dtype.type(bounds.max), dtype.type(bounds.min)))
    lost = x != x
    if not some(lost):
        return r
    wide = src == "f64" or dtype.itemsize == 8
    nan = dtype.type(bounds.min if dtype.kind == "i" else (bounds.max >> 1) + 1) if wide else dtype.type(0)
    return np.where(lost, nan, r)


def pack(a: Array, b: Array, c: Array | None, dst: str) -> Array:
    """`cvt.pack.sat`: signed words a and b clamped to `dst` (s16 u16, or s8 u8 s4 u4 s2 u2 with c) and packed.

    b fills the low bits, a those above it; the rest comes from the low bits of c.
    """
    signed, size = dst[0] == "s", int(dst[1:])
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
    if (c is None) != (size == 16) or size not in (2, 4, 8, 16):
        raise EmulationError(f"cvt.pack to {dst} takes {'two' if size == 16 else 'three'} operands")
    mask = np.int64((1 << size) - 1)
    first, second = (np.clip(np.asarray(x).astype(np.int32, copy=False), low, high).astype(np.int64) for x in (a, b))
    word = (first & mask) << size | (second & mask)
    if c is not None:
        word = word | np.asarray(c).astype(np.int64) << 2 * size
    return np.asarray((word & 0xFFFFFFFF).astype(np.uint32))


# ---- floats ---------------------------------------------------------------------------------------------------


def _float_to_float(
    values: Array, src: str, dst: str, rnd: str | None, ftz: bool, sat: bool, relu: bool, satfinite: bool
) -> Array:
    fmt = format_named(dst)
    if src == dst and rnd is None:
        return _modified(values, dst, ftz, sat)
    if dst == "tf32" and rnd == "rna":
        return _tf32_away(values, satfinite)
    if src == "bf16" and dst == "f32" and rnd is None:  # a move of bits: NaN payloads stay
        return _modified((values.astype(np.uint32) << np.uint32(16)).view(np.float32), dst, ftz, sat)
    flushed = floats.flush(values, src) if ftz and src == "f32" else values
    x = decode(flushed, format_named(src))
    if rnd in INTEGRAL:
        x = round_integral(x, INTEGRAL[rnd])
        rnd = "rn"
    if dst == "f64":
        return floats.saturate(x) if sat else _quieted(x)
    r = _rounded(x, fmt, rnd or "rn", relu, satfinite)
    if src == "f64":
        r = _payload_kept(r, x, fmt)
    if ftz and dst == "f32":
        r = floats.flush_rounded(r, lambda: x, dst, rnd or "rn")
    return _modified(r, dst, False, sat)


def _quieted(x: Array) -> Array:
    lost = x != x
    return np.where(lost, (x.view(np.uint64) | floats.QUIET64).view(np.float64), x) if some(lost) else x


def _payload_kept(r: Array, x: Array, fmt: Format) -> Array:
    """`r` with quiet NaNs of the sign and the upper bits of the payload of the float64 NaNs `x`."""
    lost = x != x
    if not some(lost):
        return r
    bits = np.asarray(x).view(np.uint64)
    sign = bits >> np.uint64(63) << np.uint64(fmt.bits - 1)
    exponent = np.uint64(((1 << fmt.exponent) - 1) << fmt.mantissa | 1 << (fmt.mantissa - 1))
    fraction = (bits & np.uint64((1 << 52) - 1)) >> np.uint64(52 - fmt.mantissa)
    nan = (sign | exponent | fraction).astype(fmt.storage_dtype)
    return floats.from_bits(np.where(lost, nan, floats.bits_of(r, fmt.name)), fmt.name)


def _modified(values: Array, type: str, ftz: bool, sat: bool) -> Array:
    """A move with modifiers; only a plain move keeps the bits of a NaN."""
    if ftz and type == "f32":
        values = floats.canonical(floats.flush(values, type), type)
    if not sat:
        return values
    if type == "bf16":
        raise EmulationError("cvt to bf16 has no .sat", hint="use .relu or .satfinite")
    return floats.saturate(values)


def _rounded(x: Array, fmt: Format, rnd: str, relu: bool = False, satfinite: bool = False) -> Array:
    """float64 to a narrower format's array form, in one rounding."""
    if relu:
        x = np.where((x > 0) | (x != x), x, 0.0)
    if fmt.name == "f32":
        return floats.canonical(exact.narrow(x, np.float32, rnd), "f32")
    if fmt.name == "f16" and not satfinite:
        return floats.canonical(exact.narrow(x, np.float16, rnd), "f16")
    if fmt.name == "bf16" and not satfinite:
        return exact.narrow_bf16(x, rnd)
    x = limit(quantize(x, fmt, rnd), fmt, rnd, satfinite)
    if fmt.name in NO_NAN:
        x = np.where(x != x, fmt.largest, x)
    bits = encode(x, fmt)
    return bits.view(np.float16) if fmt.name == "f16" else bits


def _tf32_away(values: Array, satfinite: bool) -> Array:
    """`cvt.rna.tf32.f32` as the hardware does it: half a unit is added to the bits, the low 13 are dropped.

    NaN and infinities only lose their low bits, so a NaN whose payload lies there becomes an infinity; with
    `satfinite` whatever is then not finite loses one unit.
    """
    bits = values.view(np.uint32)
    bits = np.where(np.isfinite(values), bits + np.uint32(0x1000), bits) & np.uint32(0xFFFFE000)
    if satfinite:
        bits = np.where((bits & np.uint32(0x7FFFFFFF)) >= np.uint32(0x7F800000), bits - np.uint32(0x2000), bits)
    return bits


# ---- packed pairs ---------------------------------------------------------------------------------------------


def _packed(
    values: Array | tuple[Array, Array], src: str, dst: str, rnd: str | None, relu: bool, satfinite: bool
) -> Array:
    target = dst[:-2]
    if target not in LANE_BITS:
        raise EmulationError(f"cvt has no destination type {dst}", values={"known": " ".join(LANE_BITS)})
    if src.endswith("x2"):
        source = src[:-2]
        high, low = _unpack(np.asarray(values), source)
    elif isinstance(values, tuple):
        source, (high, low) = src, values
    else:
        raise EmulationError(f"cvt to {dst} takes two operands or a packed one", values={"source": src})
    lanes = [_lane(half, source, target, rnd or "rn", relu, satfinite) for half in (high, low)]
    return _pack(lanes[0], lanes[1], LANE_BITS[target])


def _unpack(words: Array, source: str) -> tuple[Array, Array]:
    width = LANE_BITS[source]
    mask = np.uint32((1 << width) - 1)
    words = words.astype(np.uint32)
    halves = (words >> np.uint32(width)) & mask, words & mask
    high, low = (half.astype(np.uint16 if width == 16 else np.uint8) for half in halves)
    return (high.view(np.float16), low.view(np.float16)) if source == "f16" else (high, low)


def _pack(high: Array, low: Array, width: int) -> Array:
    dtype = {4: np.uint8, 8: np.uint16, 16: np.uint32}[width]
    high, low = (floats.bits_of(half, "") for half in (high, low))
    return np.asarray((high.astype(dtype) << dtype(width)) | low.astype(dtype))


def _lane(values: Array, source: str, target: str, rnd: str, relu: bool, satfinite: bool) -> Array:
    x = _powers(values) if source == "ue8m0" else decode(values, format_named(source))
    if target == "ue8m0":
        return _to_power(x, rnd, satfinite)
    if target in ("e4m3", "e5m2", *NO_NAN) and not satfinite:
        raise EmulationError(f"cvt to {target} needs .satfinite", values={"type": f"cvt.{target}x2.{source}"})
    return _rounded(x, FORMATS[target], rnd, relu, satfinite)


def _powers(codes: Array) -> Array:
    return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127))


def _to_power(x: Array, rnd: str, satfinite: bool) -> Array:
    """The exponent byte of |x|, rounded down (rz) or up (rp) to a power of two; NaN is 0xff, zero the least power."""
    if rnd not in ("rz", "rp"):
        raise unknown_mode("rounding", rnd, "rz rp")
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))
    power = exponent - 1 + ((np.abs(fraction) > 0.5) & (rnd == "rp"))
    code = np.clip(np.where(x == 0, 0, power + 127), 0, 255)
    code = np.where(np.isinf(x), 255, code)
    code = np.minimum(code, 254) if satfinite else code
    return np.where(x != x, 255, code).astype(np.uint8)
