"""`mma.sync`, `ldmatrix` and relatives: fragments against the manual's formulas, products against exact integers."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.numerics import reference as ref
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import ldmatrix, matrix
from tilewright.targets.emu.numerics.fragments import (
    ELEMENT_BITS,
    SHAPES,
    fragment_a,
    fragment_b,
    fragment_c,
    is_quad,
    parse_shape,
)

CASES = [
    (shape, a, b, acc)
    for shape, rows in SHAPES.items()
    for inputs, sums in rows
    for a, b in itertools.product(sorted(inputs), repeat=2)
    for acc in sorted(sums)
]
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def a_place(shape: tuple[int, int, int], type: str, lane: int, i: int) -> tuple[int, int]:
    """Row and column of element i of a lane, from the formulas of PTX ISA 9.7.14.5.2 to 9.7.14.5.13."""
    group, member = lane >> 2, lane % 4
    bits, m = ELEMENT_BITS[type], shape[0]
    if m == 8:
        e = max(32 // bits, 1)
        return group, member * e + i
    if bits >= 32:
        return group + (8 if i % 2 else 0), member + 4 * (i // 2)
    if bits == 16:
        row = group if i % 4 < 2 else group + 8
        return row, member * 2 + (i & 1) + (8 if i >= 4 else 0)
    e = 32 // bits  # 8, 4 or 1 bits: 4, 8 or 32 elements in a register
    row = group if i < e or 2 * e <= i < 3 * e else group + 8
    return row, member * e + i % e + (4 * e if i >= 2 * e else 0)


def b_place(shape: tuple[int, int, int], type: str, lane: int, i: int) -> tuple[int, int]:
    group, member = lane >> 2, lane % 4
    e = max(32 // ELEMENT_BITS[type], 1)
    return member * e + i % e + 4 * e * (i // e), group


def c_place(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (8 if i >= 2 else 0), (lane % 4) * 2 + (i & 1)


def quad_a(layout: str, lane: int, i: int) -> tuple[int, int]:
    upper = 0 if lane < 16 else 4
    return (lane % 4 + upper, i) if layout == "row" else (i % 4 + upper, lane % 4)


def quad_b(layout: str, lane: int, i: int) -> tuple[int, int]:
    right = 0 if lane < 16 else 4
    return (lane % 4, i + right) if layout == "row" else (i, lane % 4 + right)


def quad_c(type: str, lane: int, i: int) -> tuple[int, int]:
    upper = 0 if lane < 16 else 4
    if type == "f16":
        return lane % 4 + upper, i
    return (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)


def check_places(fragment, place: Callable[[int, int], tuple[int, int]]) -> None:
    """The map is the manual's, and every element of the matrix has exactly one register place."""
    registers, _, places = fragment.row.shape
    seen = set()
    for register, lane, part in itertools.product(range(registers), range(32), range(places)):
        row, column = place(lane, register * places + part)
        assert (fragment.row[register, lane, part], fragment.column[register, lane, part]) == (row, column)
        index = (row, column) if fragment.part is None else (lane // 4 % 4, row, column)
        assert index not in seen
        seen.add(index)
        found = (fragment.register[index], fragment.lane[index], fragment.place[index])
        assert found == (register, lane, part)
    assert len(seen) == np.prod(fragment.shape)


@pytest.mark.parametrize(("shape", "type"), sorted({(shape, a) for shape, a, _, _ in CASES}))
def test_fragments_are_the_manuals_and_bijections(shape: tuple[int, int, int], type: str) -> None:
    if is_quad(shape, type):
        for layout in ("row", "col"):
            check_places(fragment_a(shape, type, layout), lambda lane, i, y=layout: quad_a(y, lane, i))
            check_places(fragment_b(shape, type, layout), lambda lane, i, y=layout: quad_b(y, lane, i))
        for acc in ("f16", "f32"):
            check_places(fragment_c(shape, type, acc), lambda lane, i, t=acc: quad_c(t, lane, i))
        return
    check_places(fragment_a(shape, type), lambda lane, i: a_place(shape, type, lane, i))
    check_places(fragment_b(shape, type), lambda lane, i: b_place(shape, type, lane, i))
    for acc in sorted({acc for s, a, _, acc in CASES if (s, a) == (shape, type)}):
        check_places(fragment_c(shape, type, acc), c_place)


# ---- products -------------------------------------------------------------------------------------------------


def small_values(type: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values whose products and sums every accumulator here holds exactly."""
    if type == "b1":
        return rng.integers(0, 2, shape)
    if type[0] == "u":
        return rng.integers(0, 16 if type == "u4" else 256, shape)
    if type[0] == "s" and type != "s32":
        bound = 8 if type == "s4" else 128
        return rng.integers(-bound, bound, shape)
    if type in ("e4m3", "e5m2"):
        return rng.integers(-2, 3, shape) * 0.5
    if type == "s32":
        return rng.integers(-(2**31), 2**31, shape)
    return rng.integers(-3, 4, shape) * 0.5


def pack_element(value: float, type: str) -> int:
    """The bits of one element."""
    if type in ("s4", "u4", "b1"):
        return int(value) & ((1 << ELEMENT_BITS[type]) - 1)
    raw = np.array([value]).astype(DTYPES[type]).tobytes()
    return int.from_bytes(raw, "little")


def pack(values: np.ndarray, type: str, count: int, place: Callable[[int, int], tuple[int, int]]) -> list[np.ndarray]:
    """Registers of one warp, filled lane by lane through a manual formula; `values` may carry a leading quad axis."""
    bits = ELEMENT_BITS[type]
    e = max(32 // bits, 1)
    registers = [np.zeros(32, np.uint64 if bits == 64 else np.uint32) for _ in range(count)]
    for r, lane, part in itertools.product(range(count), range(32), range(e)):
        index = place(lane, r * e + part)
        value = values[index] if values.ndim == 2 else values[(lane // 4 % 4, *index)]
        registers[r][lane] |= registers[r].dtype.type(pack_element(value, type) << (bits * part % 32))
    return registers


def unpack(registers: list[np.ndarray], type: str, out: np.ndarray, place) -> np.ndarray:
    for r, register in enumerate(registers):
        lanes = np.ascontiguousarray(register)[:, None].view(DTYPES[type])
        for lane, part in itertools.product(range(32), range(lanes.shape[1])):
            index = place(lane, r * lanes.shape[1] + part)
            out[index if out.ndim == 2 else (lane // 4 % 4, *index)] = lanes[lane, part]
    return out


def places_of(shape, a_type, acc, a_layout="row", b_layout="col"):
    if is_quad(shape, a_type):
        return (
            lambda lane, i: quad_a(a_layout, lane, i),
            lambda lane, i: quad_b(b_layout, lane, i),
            lambda lane, i: quad_c(acc, lane, i),
        )
    return (
        lambda lane, i: a_place(shape, a_type, lane, i),
        lambda lane, i: b_place(shape, a_type, lane, i),
        c_place,
    )


def counts(shape, a_type, acc):
    m, n, k = shape
    per_lane = 32 if not is_quad(shape, a_type) else 8  # lanes that share one product
    a_bits, c_bits = ELEMENT_BITS[a_type], ELEMENT_BITS[acc]
    return (
        m * k * a_bits // per_lane // max(32, a_bits),
        n * k * a_bits // per_lane // max(32, a_bits),
        m * n * c_bits // per_lane // max(32, c_bits),
    )


def exact_product(a, b, c, a_type: str, op: str | None) -> np.ndarray:
    if op == "xor":
        return c + (a[:, :, None] != b[None]).sum(axis=1)
    return c + (a.astype(object) @ b.astype(object))


@pytest.mark.parametrize(("shape", "a_type", "b_type", "acc"), CASES)
def test_exact_products(shape, a_type: str, b_type: str, acc: str) -> None:
    rng = np.random.default_rng(zlib.crc32(f"{shape} {a_type} {b_type} {acc}".encode()))
    m, n, k = shape
    quad = (4,) if is_quad(shape, a_type) else ()
    layouts = list(itertools.product(["row", "col"], repeat=2)) if quad else [("row", "col")]
    for (a_layout, b_layout), op in itertools.product(layouts, ["xor", "and"] if a_type == "b1" else [None]):
        a, b = small_values(a_type, (*quad, m, k), rng), small_values(b_type, (*quad, k, n), rng)
        c = small_values(acc, (*quad, m, n), rng)
        if acc == "s32":
            c //= 4  # no wrapping here
        place_a, place_b, place_c = places_of(shape, a_type, acc, a_layout, b_layout)
        na, nb, nc = counts(shape, a_type, acc)
        d = matrix.mma(
            "m{}n{}k{}".format(*shape),
            a_type,
            b_type,
            acc,
            pack(a, a_type, na, place_a),
            pack(b, b_type, nb, place_b),
            pack(c, acc, nc, place_c),
            a_layout=a_layout,
            b_layout=b_layout,
            op=op,
        )
        assert len(d) == nc
        assert d[0].dtype == (np.uint64 if acc == "f64" else np.uint32)
        got = unpack(d, acc, np.zeros((*quad, m, n)), place_c)
        for q in range(4) if quad else [()]:
            wanted = exact_product(a[q], b[q], c[q], a_type, op).astype(np.float64)
            np.testing.assert_array_equal(got[q], wanted)


def dense(a, b, c, acc="f32", type="f16", shape=(16, 8, 16), **keywords):
    place_a, place_b, place_c = places_of(shape, type, acc)
    na, nb, nc = counts(shape, type, acc)
    d = matrix.mma(
        shape,
        type,
        type,
        acc,
        pack(a, type, na, place_a),
        pack(b, type, nb, place_b),
        pack(c, acc, nc, place_c),
        **keywords,
    )
    return unpack(d, keywords.get("d_type", acc), np.zeros(shape[:2]), place_c)


def exponent_of(value: Fraction, type: str) -> int:
    """As the multiplier sees it: subnormals have the least normal exponent, zero has -126."""
    return max(ref.floor_log2(abs(value)), 1 - ref.bias(type)) if value else -126


def cut(value: Fraction, unit: Fraction) -> Fraction:
    """Towards zero, to a multiple of `unit`."""
    steps = abs(value) // unit * unit
    return steps if value >= 0 else -steps


def fused_step(x: list[Fraction], y: list[Fraction], c: Fraction, types: tuple[str, str, str], bits: int) -> Fraction:
    """The model of arXiv:2511.10909 in exact fractions."""
    a_type, b_type, c_type = types
    products = [(p * q, exponent_of(p, a_type) + exponent_of(q, b_type)) for p, q in zip(x, y, strict=True)]
    terms = [*products, (c, exponent_of(c, c_type))]
    unit = Fraction(2) ** (max(e for _, e in terms) - bits)
    return sum((cut(value, unit) for value, _ in terms), Fraction(0))


def varied(type: str, shape: tuple[int, ...], rng: np.random.Generator, spread: int) -> np.ndarray:
    """Values over many binades, zeros and subnormals among them, on the grid of `type`."""
    size = np.where(rng.integers(0, 8, shape) == 0, 0.0, rng.standard_normal(shape))
    values = size * 2.0 ** rng.integers(-spread, spread // 2, shape)
    bits = [ref.round_to(Fraction(v), type) for v in values.ravel().tolist()]
    return np.array([float(ref.value(b, type)) for b in bits]).reshape(shape)


MODELS = [("f16", "f32", 16, 10), ("f16", "f16", 16, 5), ("bf16", "f32", 16, 60), ("tf32", "f32", 8, 60)]


@pytest.mark.parametrize(("type", "acc", "k", "spread"), MODELS)
def test_sums_are_cut_as_the_published_model_says(type: str, acc: str, k: int, spread: int) -> None:
    rng = np.random.default_rng(spread)
    a, b = varied(type, (16, k), rng, spread), varied(type, (k, 8), rng, spread)
    c = varied(acc, (16, 8), rng, spread)
    got = dense(a, b, c, acc=acc, type=type, shape=(16, 8, k)).astype(DTYPES[acc])
    inexact = 0
    for i, j in itertools.product(range(16), range(8)):
        x, y, z = [Fraction(v) for v in a[i]], [Fraction(v) for v in b[:, j]], Fraction(c[i, j])
        total = fused_step(x, y, z, (type, type, acc), 25)
        bits = ref.round_to(total, acc, "rz" if acc == "f32" else "rn")
        assert int(got[i, j].view(np.uint32 if acc == "f32" else np.uint16)) == bits
        exact = sum((p * q for p, q in zip(x, y, strict=True)), z)
        top = max(exponent_of(v, acc) for v in (z, *(p * q for p, q in zip(x, y, strict=True))))
        step = Fraction(2) ** (max(ref.floor_log2(abs(total)), -126) - (23 if acc == "f32" else 10)) if total else 0
        assert abs(Fraction(float(got[i, j])) - exact) <= (k + 1) * Fraction(2) ** (top + 1 - 25) + step
        inexact += total != exact
    assert inexact > 10


def test_fp8_takes_two_steps_of_f16_and_adds_c_last() -> None:
    rng = np.random.default_rng(12)
    a, b = varied("e4m3", (16, 32), rng, 6), varied("e4m3", (32, 8), rng, 6)
    c = varied("f32", (16, 8), rng, 10)
    got = dense(a, b, c, type="e4m3", shape=(16, 8, 32)).astype(np.float32)
    for i, j in itertools.product(range(16), range(8)):
        total = Fraction(0)
        for pair in ((0, 1), (2, 3)):
            chosen = [k for k in range(32) if k % 4 in pair]
            x, y = [Fraction(a[i, k]) for k in chosen], [Fraction(b[k, j]) for k in chosen]
            bits = ref.round_to(fused_step(x, y, total, ("f16", "f16", "f32"), 25), "f32", "rz")
            total = Fraction(ref.value(bits, "f32"))
        assert got[i, j] == np.float32(ref.value(ref.round_to(total + Fraction(c[i, j]), "f32"), "f32"))


def test_special_values_and_denormals() -> None:
    a, b, c = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
    a[0, 0], b[0, :] = np.inf, 0.0  # inf * 0
    a[1, 1], b[1, :] = 2.0**-24, 2.0**-24  # f16 denormals
    a[2, 2], b[2, :], c[2] = 1.0, 1.0, np.inf
    got = dense(a, b, c).astype(np.float32)
    assert np.isnan(got[0]).all()
    assert (got[1] == 2.0**-48).all()
    assert np.isinf(got[2]).all()
    words = matrix.mma((16, 8, 16), "f16", "f16", "f32", [np.full(32, 0x7C007C00, np.uint32)] * 4,
                       [np.zeros(32, np.uint32)] * 2, [np.zeros(32, np.uint32)] * 4)  # fmt: skip
    assert all((w == 0x7FFFFFFF).all() for w in words)


def test_half_accumulator_overflows_to_infinity() -> None:
    a, b, c = np.full((16, 16), 100.0), np.full((16, 8), 100.0), np.zeros((16, 8))
    assert np.isinf(dense(a, b, c, acc="f16")).all()
    assert (dense(a, b, c, acc="f32") == 160000).all()


def test_tf32_ignores_the_low_bits() -> None:
    c = [np.zeros(32, np.uint32)] * 4
    one = np.full(32, 0x3F801FFF, np.uint32)
    got = matrix.mma("m16n8k4", "tf32", "tf32", "f32", [one, one], [one], c)
    assert all((w.view(np.float32) == 4.0).all() for w in got)


@pytest.mark.parametrize("satfinite", [False, True])
def test_integer_overflow(satfinite: bool) -> None:
    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    c = np.full((16, 8), 2**31 - 1)
    got = dense(a, b, c, acc="s32", type="s8", shape=(16, 8, 32), satfinite=satfinite)
    total = 2**31 - 1 + 32 * 127 * 127
    assert (got == (2**31 - 1 if satfinite else total - 2**32)).all()


def test_doubles_are_a_chain_of_fma() -> None:
    rng = np.random.default_rng(3)
    a, b, c = rng.standard_normal((16, 8)), rng.standard_normal((8, 8)), rng.standard_normal((16, 8))
    for rnd in ("rn", "rz", "rm", "rp"):
        got = dense(a, b, c, acc="f64", type="f64", shape=(16, 8, 8), rnd=rnd)
        for i, j in itertools.product(range(16), range(8)):
            total: ref.Number = Fraction(c[i, j])
            for k in range(8):
                bits = ref.round_to(Fraction(a[i, k]) * Fraction(b[k, j]) + Fraction(total), "f64", rnd)
                total = ref.value(bits, "f64")
            assert got[i, j] == float(total)


def test_many_warps_at_once() -> None:
    rng = np.random.default_rng(5)
    registers = [
        [rng.integers(0, 2**32, (3, 2, 32), dtype=np.uint32) & 0x3BFF3BFF for _ in range(n)] for n in (4, 2, 4)
    ]
    together = matrix.mma("m16n8k16", "f16", "f16", "f32", *registers)
    for i, j in itertools.product(range(3), range(2)):
        one = matrix.mma("m16n8k16", "f16", "f16", "f32", *[[r[i, j] for r in part] for part in registers])
        for x, y in zip(together, one, strict=True):
            np.testing.assert_array_equal(x[i, j], y)


def test_mixed_accumulators_of_m8n8k4() -> None:
    place_a, place_b, place_c = places_of((8, 8, 4), "f16", "f16")
    rng = np.random.default_rng(6)
    a, b, c = (small_values("f16", (4, *size), rng) for size in ((8, 4), (4, 8), (8, 8)))
    registers = pack(a, "f16", 2, place_a), pack(b, "f16", 2, place_b), pack(c, "f16", 4, place_c)
    d = matrix.mma("m8n8k4", "f16", "f16", "f16", *registers, d_type="f32")
    got = unpack(d, "f32", np.zeros((4, 8, 8)), lambda lane, i: quad_c("f32", lane, i))
    np.testing.assert_array_equal(got, a @ b + c)


# ---- ldmatrix and relatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_lane_its_elements(count: int, transposed: bool) -> None:
    elements = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    rows = elements.reshape(count * 8, 8).view(np.uint8)
    registers = ldmatrix.from_rows(rows, count, transposed)
    assert len(registers) == count
    for m, lane in itertools.product(range(count), range(32)):
        outer, inner = lane // 4, lane % 4 * 2
        low, high = [elements[m, *((inner + i, outer) if transposed else (outer, inner + i))] for i in (0, 1)]
        assert registers[m][lane] == int(high) << 16 | int(low)
    np.testing.assert_array_equal(ldmatrix.to_rows(registers, transposed), rows)
    lane, offset = ldmatrix.pieces(count, transposed)
    assert len({(int(x), int(y)) for x, y in zip(lane.flat, offset.flat, strict=True)}) == count * 64


def test_movmatrix_transposes() -> None:
    elements = np.arange(64, dtype=np.uint16).reshape(8, 8)
    (register,) = ldmatrix.from_rows(elements.view(np.uint8), 1)
    (wanted,) = ldmatrix.from_rows(np.ascontiguousarray(elements.T).view(np.uint8), 1)
    np.testing.assert_array_equal(ldmatrix.transpose(register), wanted)
    np.testing.assert_array_equal(ldmatrix.transpose(np.stack([register, wanted])), np.stack([wanted, register]))


def test_ldmatrix_feeds_mma() -> None:
    """Row-major A by x4, column-major B by x2: the usual pairing gives the plain product."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(-4, 5, (16, 16)).astype(np.float16), rng.integers(-4, 5, (16, 8)).astype(np.float16)
    tiles = [a[:8, :8], a[8:, :8], a[:8, 8:], a[8:, 8:]]
    a_rows = np.ascontiguousarray(np.concatenate(tiles)).view(np.uint8)
    b_rows = np.ascontiguousarray(np.concatenate([b.T[:, :8], b.T[:, 8:]])).view(np.uint8)
    zero = [np.zeros(32, np.uint32)] * 4
    d = matrix.mma("m16n8k16", "f16", "f16", "f32", ldmatrix.from_rows(a_rows, 4), ldmatrix.from_rows(b_rows, 2), zero)
    np.testing.assert_array_equal(unpack(d, "f32", np.zeros((16, 8)), c_place), a.astype(float) @ b.astype(float))


# ---- errors ---------------------------------------------------------------------------------------------------


def test_errors_name_what_is_wrong() -> None:
    word = [np.zeros(32, np.uint32)]
    with pytest.raises(EmulationError, match="no such combination of shape and types"):
        matrix.mma("m16n8k16", "tf32", "tf32", "f32", word * 4, word * 2, word * 4)
    with pytest.raises(EmulationError, match="wrong number of registers"):
        matrix.mma("m16n8k16", "f16", "f16", "f32", word * 3, word * 2, word * 4)
    with pytest.raises(EmulationError, match="is no matrix shape"):
        parse_shape("16x8x16")
    with pytest.raises(EmulationError, match="binary operation 'or'"):
        matrix.mma("m8n8k128", "b1", "b1", "s32", word, word, word * 2, op="or")
    with pytest.raises(EmulationError, match="move 1, 2 or 4 matrices"):
        ldmatrix.pieces(3)
