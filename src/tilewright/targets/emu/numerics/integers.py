"""PTX integer and bit instructions whose semantics need care (PTX ISA, "Integer Arithmetic", "Logic and Shift").

Operands are integer arrays; `type` (u16 s16 u32 s32 u64 s64, b32 b64 where the instruction says so) decides how
their bits are read, so an array of the other signedness is reinterpreted. Results wrap modulo 2**width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.numerics.convert import INTEGERS
from tilewright.targets.emu.numerics.formats import Array, some

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def typed(a: Array, type: str) -> Array:
    """The array in the dtype of a PTX integer type, bits kept (or truncated)."""
    dtype = INTEGERS[type]
    a = np.asarray(a)
    return a.view(dtype) if a.dtype.itemsize == dtype.itemsize else a.astype(dtype)


def width(type: str) -> int:
    """Width of an integer type in bits."""
    return INTEGERS[type].itemsize * 8


def _unsigned(type: str) -> str:
    return "u" + type[1:]


# ---- products -------------------------------------------------------------------------------------------------


def mul_lo(a: Array, b: Array, type: str) -> Array:
    """The low half of the product."""
    return np.asarray(typed(a, type) * typed(b, type))


def mul_wide(a: Array, b: Array, type: str) -> Array:
    """The whole product of 16- or 32-bit operands, twice as wide."""
    double = np.dtype(f"{INTEGERS[type].kind}{INTEGERS[type].itemsize * 2}")
    return np.asarray(typed(a, type).astype(double) * typed(b, type).astype(double))


def mul_hi(a: Array, b: Array, type: str) -> Array:
    """The high half of the product."""
    if width(type) < 64:
        double = mul_wide(a, b, type)
        return np.asarray((double >> double.dtype.type(width(type))).astype(INTEGERS[type]))
    high = _mul_hi_u64(typed(a, "u64"), typed(b, "u64"))
    if type == "u64":
        return high
    x, y = typed(a, "s64"), typed(b, "s64")
    return np.asarray(high.view(np.int64) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0))


def _mul_hi_u64(a: Array, b: Array) -> Array:
    al, ah, bl, bh = a & WORD, a >> HALF, b & WORD, b >> HALF
    middle = ah * bl + ((al * bl) >> HALF)  # cannot overflow: (2**32-1)**2 + 2**32-1 < 2**64
    cross = al * bh + (middle & WORD)
    return np.asarray(ah * bh + (middle >> HALF) + (cross >> HALF))


def mad_hi(a: Array, b: Array, c: Array, type: str, sat: bool = False) -> Array:
    """mul_hi + c; with `sat` (s32 only) clamped."""
    high = mul_hi(a, b, type)
    if sat:
        return _saturated(high.astype(np.int64) + typed(c, type), type)
    return np.asarray(high + typed(c, type))


def mul24(a: Array, b: Array, type: str, high: bool = False) -> Array:
    """The product of the low 24 bits of both (sign-extended for s32): bits 31..0, or 47..16 with `high`."""
    shift = np.int64(40)
    x, y = (typed(v, "u32").astype(np.uint64).view(np.int64) << shift for v in (a, b))
    if type == "u32":
        product = (x.view(np.uint64) >> np.uint64(40)) * (y.view(np.uint64) >> np.uint64(40))
        return np.asarray((product >> np.uint64(16 if high else 0)).astype(np.uint32))
    signed = (x >> shift) * (y >> shift)
    return np.asarray((signed >> np.int64(16 if high else 0)).astype(np.int32))


def mad24(a: Array, b: Array, c: Array, type: str, high: bool = False, sat: bool = False) -> Array:
    """mul24 + c; `sat` (hi.s32 only) clamps."""
    product = mul24(a, b, type, high)
    if sat:
        return _saturated(product.astype(np.int64) + typed(c, type), type)
    return np.asarray(product + typed(c, type))


def dot4(a: Array, b: Array, c: Array, a_type: str, b_type: str) -> Array:
    """`dp4a`: c plus the products of the four bytes, modulo 2**32; signed unless both types are u32."""
    total = (_parts(a, a_type, 8) * _parts(b, b_type, 8)).sum(axis=-1)
    return _dot_result(total, c, a_type, b_type)


def dot2(a: Array, b: Array, c: Array, a_type: str, b_type: str, high: bool = False) -> Array:
    """`dp2a`: c plus the two halves of a times the low (or `high`) two bytes of b."""
    pair = _parts(b, b_type, 8)[..., 2:] if high else _parts(b, b_type, 8)[..., :2]
    return _dot_result((_parts(a, a_type, 16) * pair).sum(axis=-1), c, a_type, b_type)


def _parts(a: Array, type: str, bits: int) -> Array:
    """The bytes or halves of 32-bit words, lowest first, as int64 on a new last axis."""
    words = np.ascontiguousarray(typed(a, "u32"))[..., None]
    return words.view(f"{'i' if type[0] == 's' else 'u'}{bits // 8}").astype(np.int64)


def _dot_result(total: Array, c: Array, a_type: str, b_type: str) -> Array:
    type = "u32" if a_type[0] == b_type[0] == "u" else "s32"
    return np.asarray((total + typed(c, type)).astype(INTEGERS[type]))


# ---- sums, quotients, extremes --------------------------------------------------------------------------------


def add_sat(a: Array, b: Array, type: str = "s32") -> Array:
    """`add.sat.s32`: the sum clamped to the range."""
    return _saturated(typed(a, type).astype(np.int64) + typed(b, type), type)


def sub_sat(a: Array, b: Array, type: str = "s32") -> Array:
    """`sub.sat.s32`: the difference clamped to the range."""
    return _saturated(typed(a, type).astype(np.int64) - typed(b, type), type)


def _saturated(wide: Array, type: str) -> Array:
    info = np.iinfo(INTEGERS[type])
    return np.asarray(np.clip(wide, info.min, info.max).astype(INTEGERS[type]))


def add_carry(a: Array, b: Array, carry: Array, type: str) -> tuple[Array, Array]:
    """`addc`: a + b + carry and the carry out (0 or 1, uint8)."""
    x, y = typed(a, _unsigned(type)), typed(b, _unsigned(type))
    partial = x + y
    total = partial + carry.astype(x.dtype)
    out = (partial < x) | (total < partial)
    return total.view(INTEGERS[type]), out.astype(np.uint8)


def sub_borrow(a: Array, b: Array, borrow: Array, type: str) -> tuple[Array, Array]:
    """`subc`: a - b - borrow and the borrow out (0 or 1, uint8)."""
    x, y = typed(a, _unsigned(type)), typed(b, _unsigned(type))
    partial = x - y
    total = partial - borrow.astype(x.dtype)
    out = (x < y) | (partial < total)
    return total.view(INTEGERS[type]), out.astype(np.uint8)


def sad(a: Array, b: Array, c: Array, type: str) -> Array:
    """c + |a - b|."""
    x, y = typed(a, type), typed(b, type)
    return np.asarray(typed(c, type) + np.where(x < y, y - x, x - y))


def div(a: Array, b: Array, type: str) -> Array:
    """The quotient towards zero. A zero divisor gives all ones, the least value by -1 itself, as the hardware does."""
    x, y = typed(a, type), typed(b, type)
    zero, safe = _safe_divisor(x, y)
    q = x // safe
    if x.dtype.kind == "i":
        q = q + ((q * safe != x) & ((x < 0) != (safe < 0)))
        q = np.where(y == -1, np.negative(x), q).astype(x.dtype)
    return np.where(zero, _ones(type), q)


def rem(a: Array, b: Array, type: str) -> Array:
    """The remainder, with the sign of a. A zero divisor gives all ones, -1 gives 0."""
    x, y = typed(a, type), typed(b, type)
    zero, safe = _safe_divisor(x, y)
    return np.where(zero, _ones(type), np.where(zero, 0, np.fmod(x, safe)).astype(x.dtype))


def _safe_divisor(x: Array, y: Array) -> tuple[Array, Array]:
    zero = y == 0
    unsafe = zero | (y == -1) if x.dtype.kind == "i" else zero
    return zero, np.where(unsafe, y.dtype.type(1), y)


def _ones(type: str) -> Any:
    return np.array(-1).astype(INTEGERS[type])


def abs_(a: Array, type: str) -> Array:
    """|a|; the least value stays."""
    return np.asarray(np.abs(typed(a, type)))


def min_(a: Array, b: Array, type: str, relu: bool = False) -> Array:
    """The lesser, in u16x2 and s16x2 by halves; `relu` clamps at zero."""
    return _extreme(np.minimum, a, b, type, relu)


def max_(a: Array, b: Array, type: str, relu: bool = False) -> Array:
    """The greater, in u16x2 and s16x2 by halves; `relu` clamps at zero."""
    return _extreme(np.maximum, a, b, type, relu)


def _extreme(function: np.ufunc, a: Array, b: Array, type: str, relu: bool) -> Array:
    if type.endswith("x2"):
        x, y = (np.ascontiguousarray(typed(v, "u32"))[..., None].view(INTEGERS[type[:-2]]) for v in (a, b))
        r = function(x, y)
        return np.asarray(np.maximum(r, 0) if relu else r).view(np.uint32)[..., 0]
    r = function(typed(a, type), typed(b, type))
    return np.asarray(np.maximum(r, 0) if relu else r)


def add_halves(a: Array, b: Array, type: str) -> Array:
    """`add.u16x2` and `add.s16x2`: both halves, each modulo 2**16."""
    x, y = (np.ascontiguousarray(typed(v, "u32"))[..., None].view(np.uint16) for v in (a, b))
    return np.asarray((x + y).view(np.uint32)[..., 0])


# ---- shifts ---------------------------------------------------------------------------------------------------


def shl(a: Array, b: Array, type: str) -> Array:
    """a << b; amounts of the width and more give zero."""
    x = typed(a, type)
    return _shift(x, b, np.left_shift, x.dtype.type(0))


def shr(a: Array, b: Array, type: str) -> Array:
    """a >> b, arithmetic for signed types; amounts of the width and more leave only the sign."""
    x = typed(a, type)
    if x.dtype.kind == "i":
        amount = np.minimum(typed(b, "u32"), np.uint32(width(type) - 1))
        return np.asarray(x >> amount.astype(x.dtype))
    return _shift(x, b, np.right_shift, x.dtype.type(0))


def _shift(x: Array, b: Array, function: np.ufunc, beyond: Any) -> Array:
    bits = x.dtype.itemsize * 8
    amount = typed(b, "u32")
    inside = amount < bits
    if some(inside) == inside.size:
        return np.asarray(function(x, amount.astype(x.dtype)))
    return np.asarray(np.where(inside, function(x, np.where(inside, amount, 0).astype(x.dtype)), beyond))


def shf(a: Array, b: Array, c: Array, left: bool, wrap: bool) -> Array:
    """The funnel shift of b:a (b high) by c, clamped at 32 or modulo 32: upper word if `left`, else lower word."""
    both = typed(b, "u32").astype(np.uint64) << HALF | typed(a, "u32")
    amount = typed(c, "u32")
    amount = (amount & np.uint32(31) if wrap else np.minimum(amount, np.uint32(32))).astype(np.uint64)
    shifted = (both << amount) >> HALF if left else both >> amount
    return np.asarray(shifted.astype(np.uint32))
