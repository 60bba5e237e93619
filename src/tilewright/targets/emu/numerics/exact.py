"""Error-free float64 transformations, and sums, products, quotients and roots rounded once in any mode.

Sources: Knuth's TwoSum; Dekker's and Veltkamp's TwoProduct; Boldo and Melquiond, "Emulation of a FMA and
correctly rounded sums: proved algorithms using rounding to odd" (IEEE Trans. Computers 57(4), 2008).
Rounding to odd keeps enough of a discarded tail that a later rounding to at most 51 bits is as good as one from
the exact value.
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.numerics.formats import Array, some, unknown_mode

SPLITTER = 134217729.0  # 2**27 + 1
SAFE_HIGH, SAFE_LOW = 2.0**400, 2.0**-900  # operands below, products above: no step of the plain algorithm errs
FAR = 220  # binary orders after which the smaller addend only decides the direction of rounding


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """`(s, e)` with s the rounded sum and s + e the exact one."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """`(p, e)` with p the rounded product and p + e the exact one, away from underflow and overflow."""
    p = a * b
    ah = SPLITTER * a
    ah = ah - (ah - a)
    al = a - ah
    bh = SPLITTER * b
    bh = bh - (bh - b)
    bl = b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def to_odd(s: Array, e: Array) -> Array:
    """The sum s + e rounded to odd: s where e is zero, else the odd neighbour on the side of e."""
    bits = s.view(np.int64)
    even = (bits & 1) == 0
    inexact = (e != 0) & even & np.isfinite(s)
    if not some(inexact):
        return s
    inward = (e < 0) != (s < 0)
    moved = bits + np.where(inward, -1, 1)
    return np.where(inexact, moved, bits).view(np.float64)


def sum_to_odd(p: Array, c: Array, rnd: str = "rn") -> Array:
    """p + c rounded to odd; an exact zero from unlike signs is -0 under `rm`, else +0."""
    s, e = two_sum(p, c)
    s = to_odd(s, e)
    return _signed_zero(s, p, c) if rnd == "rm" else s


def _signed_zero(s: Array, p: Array, c: Array) -> Array:
    negative = (s == 0) & (np.signbit(p) | np.signbit(c))
    return np.where(negative, -0.0, s)


def fma(a: Array, b: Array, c: Array, rnd: str = "rn") -> Array:
    """a * b + c in float64, rounded once in mode `rnd`. NaN results are not canonical here."""
    if rnd == "rn" and _safe(a, b, c):
        return _fma_plain(a, b, c)
    a, b, c = np.broadcast_arrays(a, b, c)
    return _fma_any(a, b, c, rnd)


def _safe(a: Array, b: Array, c: Array) -> bool:
    """Whether `_fma_plain` may run: nothing is great, not finite, or a product that would lose its low half."""
    for x in (a, b, c):
        if some(np.abs(x) < SAFE_HIGH) != x.size:
            return False
    small = np.abs(a * b) < SAFE_LOW
    return not some(small) or not some(small & (a != 0) & (b != 0))


def _fma_plain(a: Array, b: Array, c: Array) -> Array:
    """The tail is rounded to nearest; where the last sum is then a tie, it is taken again with one rounded to odd."""
    uh, ul = two_product(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    r, e = two_sum(vh, tl + vl)
    r = np.asarray(r)
    twice = e + e
    tie = ((r + twice) - r == twice) & (twice != 0)
    if some(tie):
        at = np.nonzero(tie) if r.ndim else ()  # one number for all lanes
        r[at] = vh[at] + to_odd(*two_sum(tl[at], vl[at]))
    zero = r == 0
    return np.where(zero, a * b + c, r) if some(zero) else r


def _fma_parts(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    uh, ul = two_product(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    return vh, to_odd(*two_sum(tl, vl))


def _fma_any(a: Array, b: Array, c: Array, rnd: str) -> Array:
    """Any operands: mantissas are brought near one, the exponent is put back by `_compose`."""
    factors = np.isfinite(a) & np.isfinite(b)
    plain = ~factors | ~np.isfinite(c) | (a == 0) | (b == 0)
    with np.errstate(all="ignore"):
        p = np.where(factors & ~np.isfinite(c), 0.0, a * b)
        simple = p + c
        if rnd == "rm":
            simple = _signed_zero(simple, p, c)
    ma, ea = _split(np.where(plain, 1.0, a))
    mb, eb = _split(np.where(plain, 1.0, b))
    mc, ec = _split(np.where(plain, 1.0, c))
    ep = ea + eb
    top = np.where(mc == 0, ep, np.maximum(ep, ec))
    high, tail = _fma_parts(np.ldexp(ma, np.maximum(ep - top, -FAR)), mb, np.ldexp(mc, np.maximum(ec - top, -FAR)))
    r, e = two_sum(high, tail)
    full = _compose(r, e, top, rnd)
    zero = r == 0
    if some(zero):  # exact cancellation, or a product of zeros that `simple` holds
        full = np.where(zero, -0.0 if rnd == "rm" else 0.0, full)
    return np.where(plain, simple, full)


def _split(x: Array) -> tuple[Array, Array]:
    m, e = np.frexp(x)
    return m, e.astype(np.int64)


def _compose(r: Array, e: Array, scale: Array, rnd: str) -> Array:
    """(r + e) * 2**scale rounded once to float64; r is the nearest float64 and e the rest (its sign counts)."""
    m, x = _split(r)
    units = np.ldexp(m, 53).astype(np.int64) * 8 + np.sign(e).astype(np.int64)
    negative = units < 0
    size = np.abs(units)
    _, length = np.frexp(size.astype(np.float64))
    length = np.maximum(length.astype(np.int64), 1)
    length -= (size >> (length - 1)) == 0  # float64 rounded the size up to a power of two
    unit = x - 56 + scale
    quantum = np.maximum(unit + length - 53, -1074)
    shift = np.clip(quantum - unit, 0, 62)
    kept = _shift_rounded(size, shift, negative, rnd)
    value = np.ldexp(kept.astype(np.float64), np.clip(quantum, -5000, 5000).astype(np.int32))
    over = np.isinf(value) & _stays_finite(negative, rnd)
    value = np.where(over, np.finfo(np.float64).max, value)
    return np.where(negative, -value, value)


def _stays_finite(negative: Array, rnd: str) -> Array | bool:
    choices: dict[str, Array | bool] = {"rn": False, "rz": True, "rm": ~negative, "rp": negative}
    return choices[rnd]


def _shift_rounded(size: Array, shift: Array, negative: Array, rnd: str) -> Array:
    kept = size >> shift
    rest = size - (kept << shift)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    if rnd == "rn":
        up = (rest > half) | ((rest == half) & (rest != 0) & ((kept & 1) == 1))
    elif rnd == "rz":
        up = np.zeros_like(negative)
    elif rnd in ("rm", "rp"):
        up = (rest != 0) & (negative == (rnd == "rm"))
    else:
        raise unknown_mode("rounding", rnd, "rn rz rm rp")
    return np.asarray(kept + up)


def divide(a: Array, b: Array, rnd: str) -> Array:
    """a / b in float64, rounded once."""
    simple = a / b
    if rnd == "rn":
        return simple
    plain = ~np.isfinite(a) | ~np.isfinite(b) | (a == 0) | (b == 0)
    ma, ea = _split(np.where(plain, 1.0, a))
    mb, eb = _split(np.where(plain, 1.0, b))
    q = ma / mb
    high, low = two_product(q, mb)
    rest = ((ma - high) - low) * np.sign(mb)
    return np.where(plain, simple, _compose(q, rest, ea - eb, rnd))


def square_root(a: Array, rnd: str) -> Array:
    """The square root in float64, rounded once."""
    simple = np.sqrt(a)
    if rnd == "rn":
        return simple
    plain = ~(np.isfinite(a) & (a > 0))
    m, e = _split(np.where(plain, 1.0, a))
    odd = e & 1
    m = np.ldexp(m, odd.astype(np.int32))
    q = np.sqrt(m)
    high, low = two_product(q, q)
    return np.where(plain, simple, _compose(q, (m - high) - low, (e - odd) >> 1, rnd))


def narrow(x: Array, dtype: type[np.floating], rnd: str) -> Array:
    """Round float64 `x` to float32 or float16 in mode rn, rz, rm or rp."""
    r = x.astype(dtype)
    if rnd == "rn":
        return r
    back = r.astype(np.float64)
    if rnd == "rz":
        return np.where(np.abs(back) > np.abs(x), np.nextafter(r, dtype(0)), r)
    if rnd == "rm":
        return np.where(back > x, np.nextafter(r, dtype(-np.inf)), r)
    if rnd == "rp":
        return np.where(back < x, np.nextafter(r, dtype(np.inf)), r)
    raise unknown_mode("rounding", rnd, "rn rz rm rp")


def narrow_bf16(x: Array, rnd: str) -> Array:
    """Round float64 `x` to bf16 bits in mode rn, rz, rm or rp; NaN becomes 0x7fff.

    Rounding to float32 on the way is harmless unless it lands on the midpoint of two bf16 values (to nearest), and
    in the same direction it always is.
    """
    x = np.asarray(x)
    wide = narrow(x, np.float32, rnd)
    bits = np.asarray(wide.view(np.uint32))
    tail = bits & np.uint32(0xFFFF)
    if rnd == "rn":
        tie = tail == np.uint32(0x8000)
        if some(tie):
            bits = np.where(tie & (np.abs(wide) > np.abs(x)), bits - np.uint32(1), bits)
            bits = np.where(tie & (np.abs(wide) < np.abs(x)), bits + np.uint32(1), bits)
        bits = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    elif rnd != "rz":
        outward = (bits >> np.uint32(31)) == np.uint32(rnd == "rm")
        bits = np.where(outward & (tail != 0), bits + np.uint32(0xFFFF), bits)
    half = (bits >> np.uint32(16)).astype(np.uint16)
    lost = x != x
    return np.where(lost, np.uint16(0x7FFF), half) if some(lost) else half
