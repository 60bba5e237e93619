"""Integer, bit and video instructions against Python integers and the manual's own loops, lane by lane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import bits, integers, video
from tilewright.targets.emu.numerics.convert import INTEGERS

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
COUNT = 400


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def operands(type: str, arity: int, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    info = np.iinfo(INTEGERS[type])
    rng = np.random.default_rng([seed, info.bits, arity])
    edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2], INTEGERS[type])
    if info.min < 0:
        edges = np.append(edges, np.array([-1, -2], INTEGERS[type]))
    out = []
    for _ in range(arity):
        x = rng.integers(info.min, info.max, COUNT, dtype=INTEGERS[type], endpoint=True)
        x = x >> rng.integers(0, info.bits, COUNT).astype(x.dtype)
        out.append(np.where(rng.integers(0, 4, COUNT) == 0, rng.choice(edges, COUNT), x))
    return out


def wrap(value: int, type: str) -> int:
    info = np.iinfo(INTEGERS[type])
    return (value - info.min) % (1 << info.bits) + info.min


def clamp(value: int, type: str) -> int:
    info = np.iinfo(INTEGERS[type])
    return min(max(value, info.min), info.max)


def check(got: np.ndarray, inputs: list[np.ndarray], function, type: str | None = None) -> None:
    if type is not None:
        assert got.dtype == INTEGERS[type]
    for lane, found in enumerate(got.tolist()):
        arguments = [int(x[lane]) for x in inputs]
        assert found == function(*arguments), (lane, arguments)


def words(arity: int, seed: int = 0) -> list[np.ndarray]:
    return operands("u32", arity, seed)


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# ---- arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", TYPES)
def test_products(type: str) -> None:
    a, b, c = operands(type, 3)
    n = integers.width(type)
    check(integers.mul_lo(a, b, type), [a, b], lambda x, y: wrap(x * y, type), type)
    check(integers.mul_hi(a, b, type), [a, b], lambda x, y: (x * y) >> n, type)
    check(integers.mad_hi(a, b, c, type), [a, b, c], lambda x, y, z: wrap(((x * y) >> n) + z, type), type)
    if n < 64:
        check(integers.mul_wide(a, b, type), [a, b], lambda x, y: x * y, f"{type[0]}{2 * n}")


def test_mad_hi_sat() -> None:
    a, b, c = operands("s32", 3, 1)
    check(integers.mad_hi(a, b, c, "s32", sat=True), [a, b, c], lambda x, y, z: clamp(((x * y) >> 32) + z, "s32"))


@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("type", ["u32", "s32"])
def test_mul24(type: str, high: bool) -> None:
    a, b, c = operands(type, 3, 2)

    def product(x: int, y: int) -> int:
        x, y = x & 0xFFFFFF, y & 0xFFFFFF
        if type == "s32":
            x, y = signed(x, 24), signed(y, 24)
        return (x * y) >> (16 if high else 0)

    check(integers.mul24(a, b, type, high), [a, b], lambda x, y: wrap(product(x, y), type), type)
    total = integers.mad24(a, b, c, type, high)
    check(total, [a, b, c], lambda x, y, z: wrap(product(x, y) + z, type), type)
    if type == "s32" and high:
        total = integers.mad24(a, b, c, type, high, sat=True)
        check(total, [a, b, c], lambda x, y, z: clamp(product(x, y) + z, type), type)


@pytest.mark.parametrize(("a_type", "b_type"), list(itertools.product(["u32", "s32"], repeat=2)))
def test_dot_products(a_type: str, b_type: str) -> None:
    a, b, c = words(3, 3)
    result = "u32" if a_type == b_type == "u32" else "s32"

    def fields(word: int, type: str, bits: int) -> list[int]:
        parts = [(word >> i) & ((1 << bits) - 1) for i in range(0, 32, bits)]
        return [signed(p, bits) if type == "s32" else p for p in parts]

    def dot(x: list[int], y: list[int], z: int) -> int:
        return wrap(z + sum(p * q for p, q in zip(x, y, strict=True)), result)

    check(
        integers.dot4(a, b, c, a_type, b_type),
        [a, b, c],
        lambda x, y, z: dot(fields(x, a_type, 8), fields(y, b_type, 8), z),
        result,
    )
    for high in (False, True):
        check(
            integers.dot2(a, b, c, a_type, b_type, high),
            [a, b, c],
            lambda x, y, z, h=high: dot(fields(x, a_type, 16), fields(y, b_type, 8)[2 * h : 2 * h + 2], z),
            result,
        )


@pytest.mark.parametrize("type", TYPES)
def test_division_truncates_and_survives_zero(type: str) -> None:
    a, b = operands(type, 2, 4)
    b[::9] = 0
    ones = wrap(-1, type)

    def quotient(x: int, y: int) -> int:
        if y == 0:
            return ones
        q = abs(x) // abs(y)
        return wrap(-q if (x < 0) != (y < 0) else q, type)

    def remainder(x: int, y: int) -> int:
        return ones if y == 0 else (-(abs(x) % abs(y)) if x < 0 else x % abs(y))

    check(integers.div(a, b, type), [a, b], quotient, type)
    check(integers.rem(a, b, type), [a, b], remainder, type)


@pytest.mark.parametrize("type", TYPES)
def test_sad_min_max_abs(type: str) -> None:
    a, b, c = operands(type, 3, 5)
    check(integers.sad(a, b, c, type), [a, b, c], lambda x, y, z: wrap(z + abs(x - y), type), type)
    check(integers.min_(a, b, type), [a, b], min, type)
    check(integers.max_(a, b, type), [a, b], max, type)
    if type[0] == "s":
        check(integers.abs_(a, type), [a], lambda x: wrap(abs(x), type), type)
        check(integers.max_(a, b, type, relu=True), [a, b], lambda x, y: max(x, y, 0), type)
        check(integers.min_(a, b, type, relu=True), [a, b], lambda x, y: max(min(x, y), 0), type)


def test_packed_halves() -> None:
    a, b = words(2, 6)

    def halves(x: int, y: int, function, is_signed: bool) -> int:
        pairs = [((x >> s) & 0xFFFF, (y >> s) & 0xFFFF) for s in (0, 16)]
        if is_signed:
            pairs = [(signed(p, 16), signed(q, 16)) for p, q in pairs]
        low, high = (function(p, q) & 0xFFFF for p, q in pairs)
        return high << 16 | low

    check(integers.min_(a, b, "u16x2"), [a, b], lambda x, y: halves(x, y, min, False))
    check(integers.max_(a, b, "s16x2", relu=True), [a, b], lambda x, y: halves(x, y, lambda p, q: max(p, q, 0), True))
    check(integers.add_halves(a, b, "u16x2"), [a, b], lambda x, y: halves(x, y, lambda p, q: p + q, False))


def test_saturating_and_carrying_sums() -> None:
    a, b = operands("s32", 2, 7)
    check(integers.add_sat(a, b), [a, b], lambda x, y: clamp(x + y, "s32"), "s32")
    check(integers.sub_sat(a, b), [a, b], lambda x, y: clamp(x - y, "s32"), "s32")
    for type in ("u32", "s32", "u64", "s64"):
        a, b = operands(type, 2, 8)
        carry = np.arange(COUNT) % 2
        n = integers.width(type)
        total, out = integers.add_carry(a, b, carry, type)
        check(total, [a, b, carry], lambda x, y, z, t=type: wrap(x + y + z, t), type)
        check(out, [a, b, carry], lambda x, y, z, n=n: int((x % 2**n) + (y % 2**n) + z >= 2**n))
        total, out = integers.sub_borrow(a, b, carry, type)
        check(total, [a, b, carry], lambda x, y, z, t=type: wrap(x - y - z, t), type)
        check(out, [a, b, carry], lambda x, y, z, n=n: int((x % 2**n) < (y % 2**n) + z))


@pytest.mark.parametrize("type", TYPES)
def test_shifts_clamp(type: str) -> None:
    (a,) = operands(type, 1, 9)
    n = integers.width(type)
    amount = np.random.default_rng(9).choice(np.array([0, 1, n - 1, n, n + 1, 63, 64, 255, 2**31, 2**32 - 1, 7]), COUNT)
    amount = amount.astype(np.uint32)
    check(integers.shl(a, amount, type), [a, amount], lambda x, s: wrap(x << min(s, n), type), type)
    check(integers.shr(a, amount, type), [a, amount], lambda x, s: x >> min(s, n), type)


@pytest.mark.parametrize(("left", "wrapped"), list(itertools.product([False, True], repeat=2)))
def test_funnel_shift(left: bool, wrapped: bool) -> None:
    a, b, c = words(3, 10)
    c[::2] %= 40

    def shifted(x: int, y: int, n: int) -> int:
        n = n & 31 if wrapped else min(n, 32)
        both = y << 32 | x
        return ((both << n) >> 32 if left else both >> n) & 0xFFFFFFFF

    check(integers.shf(a, b, c, left, wrapped), [a, b, c], shifted, "u32")


# ---- bits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["b32", "b64"])
def test_counting(type: str) -> None:
    n = integers.width(type)
    (a,) = operands(f"u{n}", 1, 11)
    check(bits.popc(a, type), [a], lambda x: x.bit_count())
    check(bits.clz(a, type), [a], lambda x: n - x.bit_length())
    check(bits.brev(a, type), [a], lambda x: int(f"{x:0{n}b}"[::-1], 2))
    check(bits.cnot(a, type), [a], lambda x: int(x == 0))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfind(type: str) -> None:
    (a,) = operands(type, 1, 12)
    n = integers.width(type)

    def find(x: int) -> int:
        length = (~x if x < 0 else x).bit_length()
        return length - 1 if length else 0xFFFFFFFF

    def shift(x: int) -> int:
        return find(x) if find(x) == 0xFFFFFFFF else n - 1 - find(x)

    check(bits.bfind(a, type), [a], find, "u32")
    check(bits.bfind(a, type, shift_amount=True), [a], shift, "u32")


def places(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 2**32, COUNT, dtype=np.uint32)
    return np.where(rng.integers(0, 8, COUNT) == 0, wide, rng.integers(0, n + 3, COUNT).astype(np.uint32))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bit_fields(type: str) -> None:
    a, b = operands(type, 2, 13)
    n = integers.width(type)
    start, length = places(n, 1), places(n, 2)

    def extract(x: int, pos: int, count: int) -> int:
        pos, count, x = pos & 255, count & 255, x % (1 << n)
        sign = 0 if type[0] == "u" or count == 0 else x >> min(pos + count - 1, n - 1) & 1
        d = 0
        for i in range(n):
            d |= (x >> (pos + i) & 1 if i < count and pos + i < n else sign) << i
        return wrap(d, type)

    def insert(x: int, y: int, pos: int, count: int) -> int:
        pos, count, x, y = pos & 255, count & 255, x % (1 << n), y % (1 << n)
        for i in range(count):
            if pos + i < n:
                y = y & ~(1 << (pos + i)) | (x >> i & 1) << (pos + i)
        return y

    check(bits.bfe(a, start, length, type), [a, start, length], extract, type)
    check(bits.bfi(a, b, start, length, f"b{n}"), [a, b, start, length], insert, f"u{n}")


@pytest.mark.parametrize("clamped", [False, True])
def test_masks_and_extensions(clamped: bool) -> None:
    a, b = places(32, 3), places(32, 4)

    def mask(x: int, y: int) -> int:
        low, count = x & 31, y & 31
        mask0, total = 0xFFFFFFFF << low & 0xFFFFFFFF, low + count
        mask1 = 0xFFFFFFFF << total & 0xFFFFFFFF
        if clamped and x >= 32:
            return 0
        if total >= 32 or (clamped and y >= 32):
            mask1 = 0
        elif count == 0:
            mask1 = 0xFFFFFFFF
        return mask0 & ~mask1

    check(bits.bmsk(a, b, clamped), [a, b], mask, "u32")
    (x,) = words(1, 14)
    for type in ("u32", "s32"):

        def extend(value: int, count: int, type: str = type) -> int:
            if count >= 32 and clamped:
                return wrap(value, type)
            count &= 31
            low = value & ((1 << count) - 1)
            return signed(low, count) if type == "s32" and count else low

        check(bits.szext(x, b, type, clamped), [x, b], extend, type)


def test_fns() -> None:
    (mask,) = words(1, 15)
    rng = np.random.default_rng(15)
    base, offset = rng.integers(0, 32, COUNT).astype(np.uint32), rng.integers(-9, 10, COUNT).astype(np.int32)

    def find(m: int, start: int, n: int) -> int:
        if n == 0:
            return start if m >> start & 1 else 0xFFFFFFFF
        order = range(start, 32) if n > 0 else range(start, -1, -1)
        found = [i for i in order if m >> i & 1]
        return found[abs(n) - 1] if len(found) >= abs(n) else 0xFFFFFFFF

    check(bits.fns(mask, base, offset), [mask, base, offset], find, "u32")


def test_prmt() -> None:
    a, b, c = words(3, 16)

    def bytes_of(x: int, y: int) -> list[int]:
        return list((y << 32 | x).to_bytes(8, "little"))

    def pick(x: int, y: int, control: int) -> int:
        out = []
        for i in range(4):
            nibble = control >> 4 * i & 15
            byte = bytes_of(x, y)[nibble & 7]
            out.append((255 if byte & 128 else 0) if nibble & 8 else byte)
        return int.from_bytes(out, "little")

    check(bits.prmt(a, b, c), [a, b, c], pick, "u32")
    # The manual's table, written most significant byte first as it prints it.
    table = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    for mode, rows in table.items():

        def chosen(x: int, y: int, control: int, rows: list[str] = rows) -> int:
            return int.from_bytes([bytes_of(x, y)[int(i)] for i in rows[control & 3]], "big")

        check(bits.prmt(a, b, c, mode), [a, b, c], chosen, "u32")


@pytest.mark.parametrize("table", [0x00, 0x80, 0xEA, 0x96, 0xFE, 0x1A, 0xFF, 0xCA, 0x0F])
def test_lop3(table: int) -> None:
    a, b, c = words(3, 17)

    def logic(x: int, y: int, z: int) -> int:
        return sum((table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i for i in range(32))

    check(bits.lop3(a, b, c, table), [a, b, c], logic, "u32")


# ---- video ----------------------------------------------------------------------------------------------------

MATH = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "absdiff": lambda x, y: abs(x - y),
    "min": min,
    "max": max,
    "avrg": lambda x, y: (x + y + (1 if x + y >= 0 else 0)) >> 1,
    "lt": lambda x, y: int(x < y),
    "ne": lambda x, y: int(x != y),
}
PARTS = {"b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16), None: (0, 32)}


def part_of(word: int, type: str, selector: str | None) -> int:
    start, size = PARTS[selector]
    value = word >> start & ((1 << size) - 1)
    return signed(value, size) if type == "s32" else value


@pytest.mark.parametrize("op", ["add", "sub", "absdiff", "min", "max", "lt"])
@pytest.mark.parametrize(
    ("a_type", "b_type", "d_type"), [("u32", "s32", "s32"), ("s32", "s32", "u32"), ("u32", "u32", "u32")]
)
def test_scalar_video(op: str, a_type: str, b_type: str, d_type: str) -> None:
    a, b, c = words(3, 18)
    kinds = {"d_type": d_type, "a_type": a_type, "b_type": b_type, "a_part": "b2", "b_part": "h1"}

    def plain(x: int, y: int) -> int:
        return MATH[op](part_of(x, a_type, "b2"), part_of(y, b_type, "h1"))

    check(video.scalar(op, a, b, **kinds), [a, b], lambda x, y: wrap(plain(x, y), d_type), d_type)
    check(video.scalar(op, a, b, sat=True, **kinds), [a, b], lambda x, y: clamp(plain(x, y), d_type), d_type)
    total = video.scalar(op, a, b, c, second="add", **kinds)
    check(total, [a, b, c], lambda x, y, z: wrap(plain(x, y) + z, d_type), d_type)
    merged = video.scalar(op, a, b, c, d_part="b1", sat=True, **kinds)

    def merge(x: int, y: int, z: int) -> int:
        value = clamp(plain(x, y), "s8" if d_type == "s32" else "u8") & 255
        return wrap(z & ~0xFF00 | value << 8, d_type)

    check(merged, [a, b, c], merge, d_type)


def test_video_shifts() -> None:
    a, b = words(2, 19)
    b[::2] %= 40
    left = video.scalar("shl", a, b, a_part="h0")
    check(left, [a, b], lambda x, y: (x & 0xFFFF) << min(y, 32) & 0xFFFFFFFF)
    right = video.scalar("shr", a, b, a_type="s32", d_type="s32", clamp=False)
    check(right, [a, b], lambda x, y: signed(x) >> (y & 31))


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("op", ["add", "sub", "absdiff", "min", "max", "avrg", "ne"])
def test_simd_video(op: str, parts: int) -> None:
    a, b, c = words(3, 20)
    size = 32 // parts
    names = [name for name, (_, bits) in PARTS.items() if bits == size and name]

    def results(x: int, y: int, d_type: str, sat: bool) -> list[int]:
        out = [MATH[op](part_of(x, "s32", n), part_of(y, "u32", n)) for n in names]
        return [clamp(v, f"{d_type[0]}{size}") for v in out] if sat else out

    kinds = {"parts": parts, "a_type": "s32", "b_type": "u32"}

    def packed(x: int, y: int, z: int) -> int:
        values = results(x, y, "s32", True)
        keep = [part_of(z, "u32", n) for n in names]
        chosen = [keep[i] if i == 0 else values[i] for i in range(parts)]
        return signed(sum((v & ((1 << size) - 1)) << i * size for i, v in enumerate(chosen)))

    got = video.simd(op, a, b, c, d_type="s32", sat=True, mask=range(1, parts), **kinds)
    check(got, [a, b, c], packed, "s32")
    total = video.simd(op, a, b, c, d_type="u32", accumulate=True, **kinds)
    check(total, [a, b, c], lambda x, y, z: wrap(z + sum(results(x, y, "u32", False)), "u32"), "u32")


def test_simd_video_selectors() -> None:
    a, b = np.array([0x03020100], np.uint32), np.array([0x07060504], np.uint32)
    got = video.simd("max", a, b, a, parts=4, a_select=(7, 0, 6, 1), b_select=(2, 2, 2, 2))
    assert hex(got[0]) == "0x2060207"


@pytest.mark.parametrize(
    ("a_type", "negate_product", "negate_c"), list(itertools.product(["u32", "s32"], [0, 1], [0, 1]))
)
def test_vmad(a_type: str, negate_product: int, negate_c: int) -> None:
    a, b, c = words(3, 21)
    is_signed = a_type == "s32" or negate_product or negate_c

    def exact(x: int, y: int, z: int) -> int:
        product = part_of(x, a_type, None) * part_of(y, "u32", "h1") * (-1 if negate_product else 1)
        return product + (signed(z) if is_signed else z) * (-1 if negate_c else 1)

    kinds = {"a_type": a_type, "b_part": "h1", "negate_product": bool(negate_product), "negate_c": bool(negate_c)}
    type = "s32" if is_signed else "u32"
    check(video.mad(a, b, c, **kinds), [a, b, c], lambda x, y, z: wrap(exact(x, y, z), type), type)
    scaled = video.mad(a, b, c, shift=7, sat=True, **kinds)
    check(scaled, [a, b, c], lambda x, y, z: clamp(exact(x, y, z) >> 7, type), type)


@pytest.mark.parametrize("uniform", list(itertools.product([False, True], repeat=3)))
def test_video_takes_scalars_for_uniform_operands(uniform: tuple[bool, bool, bool]) -> None:
    arrays = [np.full(5, x[0]) if same else x[:5] for x, same in zip(words(3, 22), uniform, strict=True)]
    mixed = [x[0] if same else x for x, same in zip(arrays, uniform, strict=True)]
    functions = [
        lambda *x: video.scalar("max", *x, d_type="s32", a_type="s32", b_type="s32", d_part="h1", sat=True),
        lambda *x: video.scalar("add", *x, second="min"),
        lambda *x: video.scalar("shl", *x[:2]),
        lambda *x: video.mad(*x, a_type="s32", sat=True),
        lambda *x: video.mad(*x),
        lambda *x: video.simd("avrg", *x, parts=4, d_type="s32", a_type="s32", b_type="s32"),
        lambda *x: video.simd("add", *x, parts=2, accumulate=True),
        lambda *x: video.mad(*x, a_part="b1", shift=7, sat=True),
        lambda *x: integers.dot4(*x, "s32", "u32"),
        lambda *x: integers.dot2(*x, "u32", "s32", high=True),
    ]
    for function in functions:
        np.testing.assert_array_equal(np.broadcast_to(function(*mixed), 5), function(*arrays))


def test_errors_name_what_is_wrong() -> None:
    (a,) = words(1)
    with pytest.raises(EmulationError, match="prmt mode 'f5e'"):
        bits.prmt(a, a, a, "f5e")
    with pytest.raises(EmulationError, match="lop3 table 256"):
        bits.lop3(a, a, a, 256)
    with pytest.raises(EmulationError, match="video operation 'mul'"):
        video.scalar("mul", a, a)
    with pytest.raises(EmulationError, match="selector 'b4'"):
        video.scalar("add", a, a, a_part="b4")
    with pytest.raises(EmulationError, match="second operation 'sub'"):
        video.scalar("add", a, a, a, second="sub")


def test_scalars_give_the_same_as_arrays() -> None:
    """The engine passes uniform registers as NumPy scalars, and mixes them with arrays."""
    a, b, c = words(3, 22)
    calls = {
        "mul_hi": lambda x, y, z: integers.mul_hi(x, y, "s32"),
        "mul24": lambda x, y, z: integers.mul24(x, y, "s32", True),
        "dot4": lambda x, y, z: integers.dot4(x, y, z, "s32", "u32"),
        "div": lambda x, y, z: integers.div(x, y, "s32"),
        "rem": lambda x, y, z: integers.rem(x, y, "s32"),
        "shl": lambda x, y, z: integers.shl(x, z, "b32"),
        "shr": lambda x, y, z: integers.shr(x, z, "s32"),
        "shf": lambda x, y, z: integers.shf(x, y, z, True, False),
        "max": lambda x, y, z: integers.max_(x, y, "s16x2", relu=True),
        "bfe": lambda x, y, z: bits.bfe(x, y % 40, z % 40, "u32"),
        "bfe signed": lambda x, y, z: bits.bfe(x, y % 40, z % 40, "s32"),
        "bfi": lambda x, y, z: bits.bfi(x, y, z % 40, y % 40, "b32"),
        "prmt": bits.prmt,
        "prmt mode": lambda x, y, z: bits.prmt(x, y, z, "f4e"),
        "lop3": lambda x, y, z: bits.lop3(x, y, z, 0x1B),
        "popc": lambda x, y, z: bits.popc(x),
        "bfind": lambda x, y, z: bits.bfind(x, "s32"),
        "fns": lambda x, y, z: bits.fns(x, y % 32, z % 7),
    }
    for name, call in calls.items():
        whole = call(a, b, c)
        for lane in range(30):
            one = np.asarray(call(a[lane], b[lane], c[lane])).reshape(-1)[0]
            assert one == whole[lane], name
        mixed = call(a, b[0], c[0])
        np.testing.assert_array_equal(mixed, call(a, np.full_like(b, b[0]), np.full_like(c, c[0])), err_msg=name)
