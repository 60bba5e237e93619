"""PTX floating-point instructions with exactly rounded results (PTX ISA, "Floating-Point Instructions").

Operands and results: f32 and f64 are float32 and float64 arrays, f16 float16, bf16 uint16 bit patterns, and the
packed f16x2 and bf16x2 uint32 words. What the ISA leaves open is as recorded on an H100:

- NaN results are the canonical NaN (f32 0x7fffffff, f16 and bf16 0x7fff). f64 instructions pass the sign and payload of
  a NaN operand, quieted, and make 0xfff8000000000000 where none is NaN. Of several NaN operands add, sub and mul pass
  the second, fma the second, third, first in this order, min and max the last, div the first.
- `.ftz` flushes a result that is below the least normal number once rounded to the type's precision with an unbounded
  exponent (IEEE 754, "tininess after rounding"). Rounding on the subnormal grid may still have given that number.
- `.sat` gives +0 for -0 and for NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import exact
from tilewright.targets.emu.numerics.formats import (
    NAN16,
    NAN32,
    NAN64,
    OOB_NAN,
    Array,
    decode,
    format_named,
    some,
    unknown_mode,
)

PACKED = {"f16x2": ("f16", np.float16), "bf16x2": ("bf16", np.uint16), "f32x2": ("f32", np.float32)}
PIECE = 8192  # elements
TINY32 = np.float32(2.0**-126)
HALFWAY32 = np.int64(0x10000000)  # the discarded bits of a float64 that lies midway between two float32
DISCARDED32 = np.int64(0x1FFFFFFF)
QUIET64 = np.uint64(1 << 51)
ZERO64 = np.uint64(0)
ONE = np.ones(())


def packed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Let a function of the scalar type take the packed type too, each half by itself, and long arrays in pieces."""

    @wraps(function)
    def either(*operands: Any, type: str = "f32", **modifiers: Any) -> Array:
        for operand in operands:
            if operand.size > PIECE and all(x.shape in ((), operand.shape) for x in operands) and operand.ndim == 1:
                return _in_pieces(either, operands, operand.size, type=type, **modifiers)
        if type not in PACKED:
            return function(*operands, type=type, **modifiers)
        scalar, dtype = PACKED[type]
        word = np.uint64 if type == "f32x2" else np.uint32
        halves = [np.ascontiguousarray(x, dtype=word)[..., None].view(dtype) for x in operands]
        result: Array = np.ascontiguousarray(function(*halves, type=scalar, **modifiers))
        return np.asarray(result.view(word)[..., 0])

    return either


def _in_pieces(function: Callable[..., Array], operands: tuple[Any, ...], size: int, **modifiers: Any) -> Array:
    """Work on pieces whose temporaries stay in the cache (and in the allocator's hands)."""
    pieces = []
    for start in range(0, size, PIECE):
        part = slice(start, start + PIECE)
        pieces.append(function(*(x[part] if x.ndim else x for x in operands), **modifiers))
    return np.concatenate(pieces)


# ---- sums and products ----------------------------------------------------------------------------------------


@packed
def add(
    a: Array,
    b: Array,
    type: str = "f32",
    rnd: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    quiet: bool = True,
) -> Array:
    """a + b. Without `quiet` an f64 NaN passes as it is, as atomics of global memory do it."""
    if type == "f32" and rnd == "rn":
        if ftz:
            a, b = _flush32(a), _flush32(b)
        return _finish32(a + b, ftz, sat)
    if type == "f64":
        r = a + b if rnd == "rn" else exact.fma(a, ONE, b, rnd)
        return _nan64(r, b, a, quiet=QUIET64 if quiet else ZERO64)
    return _narrow(lambda x, y: exact.sum_to_odd(x, y, rnd), (a, b), type, rnd, ftz, sat, relu)


@packed
def sub(
    a: Array, b: Array, type: str = "f32", rnd: str = "rn", ftz: bool = False, sat: bool = False, relu: bool = False
) -> Array:
    """a - b."""
    if type == "f32" and rnd == "rn":
        if ftz:
            a, b = _flush32(a), _flush32(b)
        return _finish32(a - b, ftz, sat)
    if type == "f64":
        r = a - b if rnd == "rn" else exact.fma(a, ONE, -b, rnd)
        return _nan64(r, b, a)
    return _narrow(lambda x, y: exact.sum_to_odd(x, -y, rnd), (a, b), type, rnd, ftz, sat, relu)


@packed
def mul(
    a: Array, b: Array, type: str = "f32", rnd: str = "rn", ftz: bool = False, sat: bool = False, relu: bool = False
) -> Array:
    """a * b."""
    if type == "f32" and rnd == "rn":
        if ftz:
            a, b = _flush32(a), _flush32(b)
        r = a * b
        return _finish32(flush_rounded(r, lambda: _product(a, b), type) if ftz else r, False, sat)
    if type == "f64":
        r = a * b
        r = r if rnd == "rn" else exact.fma(a, b, np.copysign(0.0, r), rnd)
        return _nan64(r, b, a)
    return _narrow(np.multiply, (a, b), type, rnd, ftz, sat, relu)


@packed
def fma(
    a: Array,
    b: Array,
    c: Array,
    type: str = "f32",
    rnd: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    oob: bool = False,
) -> Array:
    """a * b + c, rounded once; with `oob` +0 where `a` or `b` is `OOB_NAN`, of either sign (`c` is not looked at)."""
    if oob:
        filled = np.logical_or(*((bits_of(x, type) & ~sign_bit(type)) == OOB_NAN for x in np.broadcast_arrays(a, b)))
        return np.where(filled, a.dtype.type(0), fma(a, b, c, type=type, relu=relu))
    if type == "f32" and rnd == "rn":
        if ftz:
            a, b, c = _flush32(a), _flush32(b), _flush32(c)
        r = _fma32(a, b, c)
        if ftz:
            r = flush_rounded(r, lambda: exact.sum_to_odd(_product(a, b), np.asarray(c, np.float64)), type)
        return _finish32(r, False, sat)
    if type == "f64":
        return _nan64(exact.fma(a, b, c, rnd), b, c, a)
    return _narrow(lambda x, y, z: exact.sum_to_odd(x * y, z, rnd), (a, b, c), type, rnd, ftz, sat, relu)


def _product(a: Array, b: Array) -> Array:
    """The exact product of two float32."""
    return np.asarray(a.astype(np.float64) * b.astype(np.float64))


def _fma32(a: Array, b: Array, c: Array) -> Array:
    """The product is exact in float64; a sum whose second rounding could err is rounded again, to odd first."""
    p = a.astype(np.float64) * b.astype(np.float64)
    s = p + c.astype(np.float64)
    r = s.astype(np.float32)
    suspect = (s.view(np.int64) & DISCARDED32) == HALFWAY32
    small = np.abs(r) <= TINY32
    if some(small):
        suspect = suspect | (small & (s != 0))
    if some(suspect):
        r = np.asarray(r)
        c = np.broadcast_to(c, r.shape)[suspect].astype(np.float64)
        r[suspect] = exact.to_odd(*exact.two_sum(np.broadcast_to(p, r.shape)[suspect], c)).astype(np.float32)
    return r


# ---- quotients and roots --------------------------------------------------------------------------------------


@packed
def div(a: Array, b: Array, type: str = "f32", rnd: str = "rn", ftz: bool = False) -> Array:
    """a / b. A float64 quotient of two float32 never rounds onto the float32 grid or a midpoint, so it rounds twice.

    Nor does one lie between the least normal float32 and its neighbour below: to nearest, `.ftz` needs no second look.
    """
    if type == "f32" and rnd == "rn":
        if ftz:
            a, b = _flush32(a), _flush32(b)
        return _finish32(a / b, ftz, False)
    if type == "f64":
        return _nan64(exact.divide(a, b, rnd), a, b)
    return _narrow(np.divide, (a, b), type, rnd, ftz)


@packed
def rcp(a: Array, type: str = "f32", rnd: str = "rn", ftz: bool = False) -> Array:
    """1 / a."""
    if type == "f64":
        return _nan64(exact.divide(ONE, a, rnd), a)
    return _narrow(lambda x: 1.0 / x, (a,), type, rnd, ftz)


@packed
def sqrt(a: Array, type: str = "f32", rnd: str = "rn", ftz: bool = False) -> Array:
    """The square root; -0 of -0, NaN of negative values."""
    if type == "f32" and rnd == "rn":
        return _finish32(np.sqrt(_flush32(a) if ftz else a), ftz, False)
    if type == "f64":
        return _nan64(exact.square_root(a, rnd), a)
    return _narrow(np.sqrt, (a,), type, rnd, ftz)


# ---- minimum, maximum -----------------------------------------------------------------------------------------


def min_(a: Array, b: Array, *more: Array, type: str = "f32", **modifiers: bool) -> Array:
    """The least operand (2 or 3): see `max_`."""
    return _fold(False, (a, b, *more), type, **modifiers)


def max_(a: Array, b: Array, *more: Array, type: str = "f32", **modifiers: bool) -> Array:
    """The greatest operand (2 or 3); +0 > -0; a NaN loses against a number; two NaN give the canonical NaN (f64: the
    second, quieted).

    Modifiers: `ftz`; `nan` (.NaN: any NaN operand gives the canonical NaN); `xorsign` (.xorsign.abs: compare
    magnitudes, the sign is the exclusive or of the operands' signs); `abs_` (.abs: compare and return magnitudes).
    """
    return _fold(True, (a, b, *more), type, **modifiers)


def _fold(greatest: bool, operands: tuple[Array, ...], type: str, **modifiers: bool) -> Array:
    result = operands[0]
    for operand in operands[1:]:
        result = _extreme(result, operand, type=type, greatest=greatest, **modifiers)
    return result


@packed
def _extreme(
    a: Array,
    b: Array,
    type: str,
    greatest: bool,
    ftz: bool = False,
    nan: bool = False,
    xorsign: bool = False,
    abs_: bool = False,
) -> Array:
    if ftz:
        a, b = flush(a, type), flush(b, type)
    if type != "bf16" and not (nan or xorsign or abs_):
        r = np.fmax(a, b) if greatest else np.fmin(a, b)
        if not some(r == 0) and not some(r != r):  # else the sign of zero, or which NaN, matters
            return r
    sign = (bits_of(a, type) ^ bits_of(b, type)) & sign_bit(type) if xorsign else None
    if xorsign or abs_:
        a, b = _magnitude(a, type), _magnitude(b, type)
    x, y = _comparable(a, type), _comparable(b, type)
    u, v = bits_of(a, type), bits_of(b, type)
    take_a = (x > y) if greatest else (x < y)
    r = np.where(take_a | (y != y), u, v)
    same = x == y  # equal values differ at most in the sign of zero
    r = np.where(same, u & v if greatest else u | v, r)
    lost = ((x != x) | (y != y)) if nan else ((x != x) & (y != y))
    if some(lost):
        quiet = v | QUIET64 if type == "f64" and not nan else np.asarray(format_named(type).nan, u.dtype)
        r = np.where(lost, quiet, r)
    if sign is not None:
        r = np.where(lost, r, r | sign)
    return from_bits(r, type)


def _magnitude(a: Array, type: str) -> Array:
    return from_bits(bits_of(a, type) & ~sign_bit(type), type)


# ---- signs, tests, comparisons --------------------------------------------------------------------------------


@packed
def abs_(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """|a|; a NaN becomes the canonical NaN, in f64 the quiet NaN of the same sign and payload."""
    r = canonical(_magnitude(flush(a, type) if ftz else a, type), type)
    return _nan64(r, a) if type == "f64" else r


@packed
def neg(a: Array, type: str = "f32", ftz: bool = False) -> Array:
    """-a; a NaN becomes the canonical NaN, in f64 the quiet NaN of the same sign and payload."""
    r = canonical(from_bits(bits_of(flush(a, type) if ftz else a, type) ^ sign_bit(type), type), type)
    return _nan64(r, a) if type == "f64" else r


def copysign(a: Array, b: Array, type: str = "f32") -> Array:
    """`b` with the sign of `a` (PTX order of operands)."""
    sign = sign_bit(type)
    return from_bits((bits_of(a, type) & sign) | (bits_of(b, type) & ~sign), type)


def testp(a: Array, kind: str, type: str = "f32") -> Array:
    """Booleans: is `a` finite, infinite, a number, notanumber, normal (zeros are) or subnormal."""
    size = np.abs(a)
    tests: dict[str, Callable[[], Array]] = {
        "finite": lambda: np.isfinite(a),
        "infinite": lambda: np.isinf(a),
        "number": lambda: a == a,
        "notanumber": lambda: a != a,
        "normal": lambda: np.isfinite(a) & ((size >= format_named(type).smallest_normal) | (size == 0)),
        "subnormal": lambda: (size > 0) & (size < format_named(type).smallest_normal),
    }
    if kind not in tests:
        raise unknown_mode("testp", kind, " ".join(tests))
    return tests[kind]()


ORDERED: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def compare(op: str, a: Array, b: Array, type: str = "f32", ftz: bool = False) -> Array:
    """The comparison of `setp`, as booleans: ordered (eq ne lt le gt ge: false with a NaN), unordered (equ neu ltu
    leu gtu geu: true with a NaN), num (no NaN), nan (a NaN). Packed types give a trailing axis of two, low half first.
    """
    if type in PACKED:
        scalar, dtype = PACKED[type]
        a, b = (np.ascontiguousarray(x)[..., None].view(dtype) for x in (a, b))
        return compare(op, a, b, scalar, ftz)
    if ftz:
        a, b = flush(a, type), flush(b, type)
    x, y = _comparable(a, type), _comparable(b, type)
    if op == "ne":
        return np.asarray((x < y) | (x > y))
    if op in ORDERED:
        return np.asarray(ORDERED[op](x, y))
    unordered = np.asarray((x != x) | (y != y))
    if op == "nan":
        return unordered
    if op == "num":
        return ~unordered
    if op.endswith("u") and op[:-1] in ORDERED:
        return np.asarray(ORDERED[op[:-1]](x, y) | unordered)
    raise unknown_mode("comparison", op, "eq ne lt le gt ge equ neu ltu leu gtu geu num nan")


# ---- shared steps ---------------------------------------------------------------------------------------------


def bits_of(a: Array, type: str) -> Array:
    """The bit patterns of an array of a scalar float type."""
    a = np.asarray(a)
    return a if a.dtype.kind == "u" else a.view(f"u{a.dtype.itemsize}")


def from_bits(bits: Array, type: str) -> Array:
    """The array form of a type (float, or uint16 for bf16) of bit patterns."""
    return bits if type == "bf16" else bits.view(f"f{bits.dtype.itemsize}")


def sign_bit(type: str) -> Any:
    """The sign bit of a type, as a NumPy unsigned scalar."""
    fmt = format_named(type)
    return fmt.storage_dtype.type(1 << (fmt.storage - 1))


def flush(a: Array, type: str) -> Array:
    """Subnormal values replaced by zero of the same sign (.ftz)."""
    if type == "f32":
        return _flush32(a)
    fmt = format_named(type)
    if type == "bf16":
        raise EmulationError("bf16 has no .ftz", hint="drop .ftz")
    return np.where(np.abs(a) < fmt.smallest_normal, np.copysign(a.dtype.type(0), a), a)


def flush_rounded(r: Array, exactly: Callable[[], Array], type: str, rnd: str = "rn") -> Array:
    """`.ftz` of results `r`; `exactly` gives them in float64, exact or rounded to odd (asked for only at the limit)."""
    least = r.dtype.type(format_named(type).smallest_normal)
    size = np.abs(r)
    tiny = size <= least
    if not some(tiny):
        return r
    limit = size == least
    if some(limit):
        tiny = (size < least) | (limit & _is_tiny(exactly(), type, rnd))
    return np.where(tiny, np.copysign(r.dtype.type(0), r), r)


def _is_tiny(x: Array, type: str, rnd: str) -> Array:
    """Whether float64 values round below the least normal number of a type with an unbounded exponent.

    ptxas compares with the same bounds, in every rounding mode, where it builds `cvt.ftz.f32.f64` for sm_90.
    """
    fmt = format_named(type)
    least, size = fmt.smallest_normal, np.abs(x)
    unit = least * 2.0 ** -(fmt.mantissa + 1)  # between the values just below `least`
    if rnd == "rn":
        return np.asarray(size < least - unit / 2)  # the midpoint goes to `least`, whose mantissa is even
    if rnd == "rz":
        return np.asarray(size < least)
    away = (x < 0) == (rnd == "rm")
    return np.asarray(np.where(away, size <= least - unit, size < least))


def saturate(a: Array) -> Array:
    """Clamp to [0, 1]; NaN and -0 give +0 (.sat)."""
    return np.asarray(np.where(a > 0, np.minimum(a, a.dtype.type(1)), a.dtype.type(0)))


def _comparable(a: Array, type: str) -> Array:
    return decode(a, format_named(type)) if type == "bf16" else a


def _flush32(a: Array) -> Array:
    small = np.abs(a) < TINY32
    return np.where(small, np.copysign(np.float32(0), a), a) if some(small) else a


def _finish32(r: Array, ftz: bool, sat: bool) -> Array:
    if ftz:
        r = _flush32(r)
    if sat:
        return saturate(r)
    lost = r != r
    return np.where(lost, NAN32, r) if some(lost) else r


def canonical(r: Array, type: str) -> Array:
    """NaN replaced by the canonical one (f64 values stay)."""
    if type == "bf16":
        return np.where((r & np.uint16(0x7FFF)) > np.uint16(0x7F80), np.uint16(0x7FFF), r)
    if type == "f64":
        return r
    lost = r != r
    return np.where(lost, NAN32 if type == "f32" else NAN16, r) if some(lost) else r


def _nan64(r: Array, *operands: Array, quiet: np.uint64 = QUIET64) -> Array:
    """NaN results of f64: the first NaN of `operands` with the bits of `quiet` set, else the hardware's own."""
    lost = r != r
    if not some(lost):
        return r
    bits = np.broadcast_to(NAN64.view(np.uint64), r.shape)
    for x in reversed(operands):
        bits = np.where(x != x, x.view(np.uint64) | quiet, bits)
    return np.where(lost, bits.view(np.float64), r)


def _narrow(
    operation: Callable[..., Array],
    operands: tuple[Array, ...],
    type: str,
    rnd: str,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Array:
    """Apply a float64 operation whose result is exact, or rounded so that rounding again is harmless."""
    fmt = format_named(type)
    if ftz:
        operands = tuple(flush(x, type) for x in operands)
    x = operation(*(decode(np.asarray(operand), fmt) for operand in operands))
    if type == "bf16":
        if relu:
            x = np.where((x > 0) | (x != x), x, 0.0)
        return exact.narrow_bf16(x, rnd)
    r = exact.narrow(x, np.float32 if type == "f32" else np.float16, rnd)
    if ftz:
        r = flush_rounded(r, lambda: x, type, rnd)
    if sat:
        r = saturate(r)
    if relu:
        r = np.where((r > 0) | (r != r), r, r.dtype.type(0))
    return canonical(r, type)
