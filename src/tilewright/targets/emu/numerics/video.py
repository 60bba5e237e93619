"""PTX video instructions (PTX ISA, "Video Instructions"): scalar with byte and half selectors, SIMD on 2 or 4 parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.targets.emu.numerics.formats import Array, unknown_mode
from tilewright.targets.emu.numerics.integers import typed

OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda x, y: np.abs(x - y),
    "min": np.minimum,
    "max": np.maximum,
    "avrg": lambda x, y: (x + y + (x + y >= 0)) >> 1,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
SELECTORS = {"b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16), None: (0, 32)}


def scalar(
    op: str,
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    d_type: str = "u32",
    a_type: str = "u32",
    b_type: str = "u32",
    a_part: str | None = None,
    b_part: str | None = None,
    d_part: str | None = None,
    sat: bool = False,
    second: str | None = None,
    clamp: bool = True,
) -> Array:
    """`vadd vsub vabsdiff vmin vmax vset vshl vshr` (op without its v; for vset the comparison).

    `a_part`, `b_part` pick a byte or half; `sat` clamps to the destination (part). `second` (add, min, max) combines
    with c; `d_part` writes only that part of c. `clamp` is the mode of the shifts.
    """
    x, y = part(a, a_type, a_part), part(b, b_type, b_part)
    if op in ("shl", "shr"):
        r = _shifted(op, x, y, clamp)
    elif op in OPERATIONS:
        r = np.asarray(OPERATIONS[op](x, y)).astype(np.int64)
    else:
        raise unknown_mode("video operation", op, " ".join(OPERATIONS))
    if sat:
        r = np.clip(r, *_range(d_type, SELECTORS[d_part][1]))
    if c is None:
        return typed(r, d_type)
    if second is not None:
        return typed(_second(second, typed(r, d_type).astype(np.int64), typed(c, d_type).astype(np.int64)), d_type)
    start, bits = SELECTORS[d_part]
    mask = ((1 << bits) - 1) << start
    return typed((typed(c, "u32").astype(np.int64) & ~mask) | ((r << start) & mask), d_type)


def simd(
    op: str,
    a: Array,
    b: Array,
    c: Array,
    *,
    parts: int,
    d_type: str = "u32",
    a_type: str = "u32",
    b_type: str = "u32",
    a_select: Sequence[int] | None = None,
    b_select: Sequence[int] | None = None,
    mask: Sequence[int] | None = None,
    sat: bool = False,
    accumulate: bool = False,
) -> Array:
    """`vadd2 vadd4 vset4 ...` on `parts` (2 or 4) fields.

    Selectors give, lowest result part first, indices into the fields of b:a (a's first); by default a's and b's own.
    `mask` names the result parts to compute; the others come from c. With `accumulate` (.add) the masked results are
    summed onto c.
    """
    bits = 32 // parts
    own = range(parts)
    x = _fields(a, b, a_type, bits)[..., list(a_select or own)]
    y = _fields(a, b, b_type, bits)[..., list(b_select or range(parts, 2 * parts))]
    if op not in OPERATIONS:
        raise unknown_mode("video operation", op, " ".join(OPERATIONS))
    r = np.asarray(OPERATIONS[op](x, y)).astype(np.int64)
    if sat:
        r = np.clip(r, *_range(d_type, bits))
    chosen = np.isin(np.arange(parts), list(own if mask is None else mask))
    if accumulate:
        return typed(typed(c, d_type).astype(np.int64) + (r * chosen).sum(axis=-1), d_type)
    kept = np.where(chosen, r, _fields(c, c, "u32", bits)[..., :parts])
    return typed(((kept & ((1 << bits) - 1)) << (np.arange(parts) * bits)).sum(axis=-1), d_type)


def mad(
    a: Array,
    b: Array,
    c: Array,
    *,
    a_type: str = "u32",
    b_type: str = "u32",
    a_part: str | None = None,
    b_part: str | None = None,
    negate_product: bool = False,
    negate_c: bool = False,
    plus_one: bool = False,
    shift: int = 0,
    sat: bool = False,
) -> Array:
    """`vmad`: (a * b) + c with negations, plus one and a scaling shift, in exact integers (Python's: it is rare)."""
    signed = a_type == "s32" or b_type == "s32" or negate_product or negate_c
    type = "s32" if signed else "u32"
    product = part(a, a_type, a_part).astype(object) * part(b, b_type, b_part).astype(object)
    product = -product if negate_product else product
    addend = typed(c, type).astype(object)
    total = product - addend if negate_c else product + addend
    total = np.asarray((total + plus_one) >> shift, object)  # of scalars it is a number of Python
    low, high = _range(type, 32)
    total = np.clip(total, low, high) if sat else total & 0xFFFFFFFF
    return typed(np.asarray(total & 0xFFFFFFFF, np.int64), type)


def part(a: Array, type: str, selector: str | None) -> Array:
    """A byte, half or the whole of a word, sign- or zero-extended to int64."""
    if selector not in SELECTORS:
        raise unknown_mode("selector", selector, "b0 b1 b2 b3 h0 h1")
    start, bits = SELECTORS[selector]
    value = (typed(a, "u32").astype(np.int64) >> start) & ((1 << bits) - 1)
    if type[0] != "s":
        return np.asarray(value)
    sign = np.int64(1 << (bits - 1))
    return np.asarray((value ^ sign) - sign)


def _fields(a: Array, b: Array, type: str, bits: int) -> Array:
    names = [name for name, (_, size) in SELECTORS.items() if name is not None and size == bits]
    words = np.broadcast_arrays(a, b)  # the engine passes uniform registers as scalars
    return np.stack([part(word, type, name) for word in words for name in names], axis=-1)


def _range(type: str, bits: int) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def _shifted(op: str, x: Array, y: Array, clamp: bool) -> Array:
    amount = np.minimum(y, 32) if clamp else y & 31
    return np.asarray(x << amount if op == "shl" else x >> amount)


def _second(name: str, r: Array, c: Array) -> Array:
    if name not in ("add", "min", "max"):
        raise unknown_mode("second operation", name, "add min max")
    return np.asarray(OPERATIONS[name](r, c))
