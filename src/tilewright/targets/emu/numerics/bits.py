"""PTX bit-field, counting and permuting instructions (PTX ISA, "Integer Arithmetic", "Logic and Shift", `prmt`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.targets.emu.numerics.formats import Array, some, unknown_mode
from tilewright.targets.emu.numerics.integers import typed, width

NONE = np.uint32(0xFFFFFFFF)
NIBBLES = np.array([0, 4, 8, 12], np.uint32)
# Bit 2a+b of the index is the result for those two bits.
PAIR_LOGIC: tuple[Callable[[Array, Array], Array], ...] = (
    lambda x, y: np.zeros((), np.uint32),
    lambda x, y: ~(x | y),
    lambda x, y: ~x & y,
    lambda x, y: ~x,
    lambda x, y: x & ~y,
    lambda x, y: ~y,
    lambda x, y: x ^ y,
    lambda x, y: ~(x & y),
    lambda x, y: x & y,
    lambda x, y: ~(x ^ y),
    lambda x, y: y,
    lambda x, y: ~x | y,
    lambda x, y: x,
    lambda x, y: x | ~y,
    lambda x, y: x | y,
    lambda x, y: np.full((), 0xFFFFFFFF, np.uint32),
)
# For each mode and selector, the source byte of result bytes 0 to 3 (PTX ISA, `prmt`).
PERMUTE_MODES: dict[str, tuple[tuple[int, int, int, int], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def popc(a: Array, type: str = "b32") -> Array:
    """The number of ones, as uint32."""
    return np.asarray(np.bitwise_count(typed(a, type)).astype(np.uint32))


def clz(a: Array, type: str = "b32") -> Array:
    """The number of leading zeros (the width for zero), as uint32."""
    return np.asarray((width(type) - _length(typed(a, type))).astype(np.uint32))


def _length(x: Array) -> Array:
    """Bit length of unsigned values, as int64."""
    if x.dtype.itemsize < 8:
        return np.frexp(x.astype(np.float64))[1].astype(np.int64)
    high, low = x >> np.uint64(32), x & np.uint64(0xFFFFFFFF)
    upper, lower = (np.frexp(half.astype(np.float64))[1].astype(np.int64) for half in (high, low))
    return np.where(high != 0, upper + 32, lower)


def brev(a: Array, type: str = "b32") -> Array:
    """The bits in reverse order."""
    x = typed(a, type)
    shift, bits = 1, width(type)
    while shift < bits:
        block = 2 * shift
        mask = x.dtype.type(sum(((1 << shift) - 1) << i for i in range(0, bits, block)))
        amount = x.dtype.type(shift)
        x = ((x >> amount) & mask) | ((x & mask) << amount)
        shift = block
    return np.asarray(x)


def bfind(a: Array, type: str, shift_amount: bool = False) -> Array:
    """The position of the leading bit that is no sign bit, or with `shift_amount` the shift that brings it to the top.

    0xffffffff where there is none.
    """
    x = typed(a, type)
    if x.dtype.kind == "i":
        x = np.where(x < 0, ~x, x)
    position = _length(typed(x, "u" + type[1:])) - 1
    r = width(type) - 1 - position if shift_amount else position
    return np.where(position < 0, NONE, r.astype(np.uint32))


def bfe(a: Array, b: Array, c: Array, type: str) -> Array:
    """The field of c bits from bit b on; signed types extend its top bit (at most the operand's own)."""
    unsigned = "u" + type[1:]
    x, bits = typed(a, unsigned), width(type)
    start, length = _bytes(b), _bytes(c)
    if start.ndim == length.ndim == 0 and type[0] == "u":
        return _field(x, int(start), int(length))
    inside = np.clip(np.minimum(length, bits - start), 0, bits)
    mask = _low_mask(inside, x.dtype)
    field = _right(x, start) & mask
    if type[0] != "s":
        return field
    top = np.clip(np.minimum(start + length - 1, bits - 1), 0, bits - 1)
    sign = ((x >> top.astype(x.dtype)) & x.dtype.type(1)).astype(bool) & (length > 0)
    return typed(np.where(sign, field | ~mask, field), type)


def _field(x: Array, start: int, length: int) -> Array:
    """The unsigned field where start and length are the same for all."""
    bits = x.dtype.itemsize * 8
    if start >= bits or length == 0:
        return np.zeros_like(x)
    field = x >> x.dtype.type(start) if start else x
    return np.asarray(field & x.dtype.type((1 << length) - 1) if length + start < bits else field)


def bfi(a: Array, b: Array, c: Array, d: Array, type: str) -> Array:
    """b with the low d bits of a put in from bit c on."""
    x, y, bits = typed(a, type), typed(b, type), width(type)
    start, length = _bytes(c), _bytes(d)
    inside = np.clip(np.minimum(length, bits - start), 0, bits)
    place = np.minimum(start, bits - 1).astype(x.dtype)
    mask = _low_mask(inside, x.dtype)
    return np.where(inside > 0, (y & ~(mask << place)) | ((x & mask) << place), y)


def _bytes(a: Array) -> Array:
    return (typed(a, "u32") & np.uint32(0xFF)).astype(np.int64)


def _low_mask(length: Array, dtype: np.dtype[Any]) -> Array:
    """Ones in the low `length` bits, 0 up to the width."""
    bits = dtype.itemsize * 8
    ones = dtype.type((1 << bits) - 1)
    return np.asarray(np.where(length > 0, ones >> np.minimum(bits - length, bits - 1).astype(dtype), dtype.type(0)))


def _right(x: Array, start: Array) -> Array:
    bits = x.dtype.itemsize * 8
    return np.asarray(np.where(start < bits, x >> np.minimum(start, bits - 1).astype(x.dtype), x.dtype.type(0)))


def bmsk(a: Array, b: Array, clamp: bool) -> Array:
    """A mask of b ones from bit a on; greater operands are taken modulo 32, or as beyond the word with `clamp`."""
    start, length = typed(a, "u32").astype(np.int64), typed(b, "u32").astype(np.int64)
    low, count = start & 31, length & 31
    ones = (np.int64(1) << np.where(clamp & (length >= 32), 32, np.minimum(count, 32 - low))) - 1
    mask = np.where(clamp & (start >= 32), 0, ones << low)
    return np.asarray((mask & 0xFFFFFFFF).astype(np.uint32))


def szext(a: Array, b: Array, type: str, clamp: bool) -> Array:
    """The low b bits of a, sign-extended (s32) or zero-extended; b of 32 and more keeps a (clamp) or is modulo 32."""
    x, amount = typed(a, "u32"), typed(b, "u32")
    count = (amount & np.uint32(31)).astype(np.int64)
    whole = (amount >= 32) & clamp
    mask = np.where(whole, NONE, _low_mask(count, x.dtype))
    top = ((x >> ((count - 1) & 31).astype(np.uint32)) & np.uint32(1)).astype(bool)
    negative = top & (count > 0) & ~whole & (type == "s32")
    return typed(np.where(negative, x | ~mask, x & mask), type)


def fns(mask: Array, base: Array, offset: Array) -> Array:
    """The position of the n-th set bit of `mask` from bit `base` on (n = `offset`, downwards if negative; 0 asks for
    `base` itself); 0xffffffff where there is none."""
    bits, start, n = typed(mask, "u32"), typed(base, "u32").astype(np.int64), typed(offset, "s32").astype(np.int64)
    bits, start, n = np.broadcast_arrays(bits, start, n)
    wanted = np.where(n == 0, 1, np.abs(n))
    step = np.where(n < 0, -1, 1)
    found, seen = np.full(bits.shape, NONE), np.zeros(bits.shape, np.int64)
    for distance in range(32):
        place = start + step * distance
        inside = (place >= 0) & (place < 32) & ((n != 0) | (distance == 0))
        one = inside & ((bits >> np.clip(place, 0, 31).astype(np.uint32)) & np.uint32(1)).astype(bool)
        seen = seen + one
        found = np.where(one & (seen == wanted), place.astype(np.uint32), found)
    return found


def prmt(a: Array, b: Array, c: Array, mode: str | None = None) -> Array:
    """Four bytes picked from b:a; selectors in the nibbles of c (bit 3 repeats the byte's sign), or by `mode`."""
    source = np.stack(np.broadcast_arrays(typed(a, "u32"), typed(b, "u32")), axis=-1).view(np.uint8)
    control = typed(c, "u32")
    if mode is not None:
        if mode not in PERMUTE_MODES:
            raise unknown_mode("prmt mode", mode, " ".join(PERMUTE_MODES))
        return _picked(source, np.array(PERMUTE_MODES[mode])[control & np.uint32(3)])
    nibbles = (control[..., None] >> NIBBLES) & np.uint32(15)
    picked = _take(source, nibbles & np.uint32(7))
    repeat = nibbles > 7
    if some(repeat):
        picked = np.where(repeat, (picked.view(np.int8) >> 7).view(np.uint8), picked)
    return _word(picked)


def _picked(source: Array, index: Array) -> Array:
    return _word(_take(source, index))


def _take(source: Array, index: Array) -> Array:
    """Bytes (..., 4) picked by `index` from bytes (..., 8); one index for all, or one for each word."""
    if index.ndim == 1:
        return np.asarray(source[..., index])
    if source.ndim < index.ndim:
        source = np.broadcast_to(source, (*index.shape[:-1], 8))
    return np.take_along_axis(source, index.astype(np.int64), axis=-1)


def _word(octets: Array) -> Array:
    return np.asarray(np.ascontiguousarray(octets).view(np.uint32)[..., 0])


def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Any logic of three operands: bit 4a+2b+c of `table` is the result for those three bits."""
    if not 0 <= table <= 0xFF:
        raise unknown_mode("lop3 table", table, "0 to 255")
    x, y, z = typed(a, "u32"), typed(b, "u32"), typed(c, "u32")
    clear = sum((table >> 2 * pair & 1) << pair for pair in range(4))  # the function of a and b where c is 0
    changed = clear ^ sum((table >> 2 * pair + 1 & 1) << pair for pair in range(4))
    r = PAIR_LOGIC[clear](x, y)
    if changed:
        r = r ^ (PAIR_LOGIC[changed](x, y) & z)
    shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
    return np.asarray(r if r.shape == shape else np.broadcast_to(r, shape))


def cnot(a: Array, type: str) -> Array:
    """1 where a is zero, else 0."""
    x = typed(a, type)
    return np.asarray((x == 0).astype(x.dtype))
