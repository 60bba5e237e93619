"""`wmma`: every shape, type and layout, from memory to memory, against integers; fragments against those of ptxas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.numerics import reference as ref
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.numerics import matrix, wmma

Array = np.ndarray[Any, Any]
HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}
# As ptxas 13.0 builds the loads for sm_90: matrix, shape, type, lane, the (row, column) of its elements in order.
LAID = [
    ("a", (16, 16, 16), "f16", 5, [(1, 2), (1, 3), (9, 2), (9, 3), (1, 10), (1, 11), (9, 10), (9, 11)]),
    ("b", (16, 16, 16), "f16", 5, [(2, 1), (3, 1), (10, 1), (11, 1), (2, 9), (3, 9), (10, 9), (11, 9)]),
    ("c", (16, 16, 16), "f32", 5, [(1, 2), (1, 3), (9, 2), (9, 3), (1, 10), (1, 11), (9, 10), (9, 11)]),
    ("a", (8, 32, 16), "f16", 6, [(1, 4), (1, 5), (1, 12), (1, 13)]),
    ("c", (8, 32, 16), "s32", 6, [(4, 1), (5, 1), (4, 9), (5, 9), (4, 17), (5, 17), (4, 25), (5, 25)]),
    ("c", (32, 8, 16), "f32", 6, [(1, 4), (1, 5), (9, 4), (9, 5), (17, 4), (17, 5), (25, 4), (25, 5)]),
    ("a", (32, 8, 16), "s8", 6, [(row, 8 + byte) for row in (1, 9, 17, 25) for byte in range(4)]),
    ("b", (8, 32, 16), "s8", 6, [(8 + byte, column) for column in (1, 9, 17, 25) for byte in range(4)]),
    ("a", (16, 16, 8), "tf32", 6, [(1, 2), (9, 2), (1, 6), (9, 6)]),
    ("b", (16, 16, 8), "tf32", 6, [(2, 1), (6, 1), (2, 9), (6, 9)]),
    ("a", (8, 8, 4), "f64", 6, [(1, 2)]),
    ("c", (8, 8, 4), "f64", 6, [(1, 4), (1, 5)]),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize(("name", "shape", "type", "lane", "elements"), LAID)
def test_fragments_are_those_of_ptxas(
    name: str, shape: wmma.Shape, type: str, lane: int, elements: list[tuple[int, int]]
) -> None:
    own = wmma.fragment(name, shape, type)
    found = zip(own.row[:, lane].reshape(-1).tolist(), own.column[:, lane].reshape(-1).tolist(), strict=True)
    assert list(found) == elements


def forms() -> list[tuple[wmma.Shape, str, str, str]]:
    """Shape, type of A and B, types of D and C."""
    return [
        (shape, type, d, c)
        for type, (shapes, sums) in wmma.FORMS.items()
        for shape in shapes
        for d, c in itertools.product(sums, sums)
    ]


@pytest.mark.parametrize(("shape", "type", "d_type", "c_type"), forms())
def test_fragments_hold_each_element_once(shape: wmma.Shape, type: str, d_type: str, c_type: str) -> None:
    for name, kind in (("a", type), ("b", type), ("c", c_type), ("c", d_type)):
        own = wmma.fragment(name, shape, kind)
        cells = set(zip(own.row.reshape(-1).tolist(), own.column.reshape(-1).tolist(), strict=True))
        m, n, k = shape
        assert len(cells) == own.row.size == {"a": m * k, "b": k * n, "c": m * n}[name]


# ---- through the engine ---------------------------------------------------------------------------------------


def kernel(
    shape: wmma.Shape, type: str, d_type: str, c_type: str, layouts: str, space: str, strides: bool, words: str = ""
) -> str:
    """Two warps, each with its own matrices at a, b, c and d; `layouts` has a letter for each (r or c)."""
    size, full = "m{}n{}k{}".format(*shape), [{"r": "row", "c": "col"}[letter] for letter in layouts]
    kinds = dict(zip("abcd", (type, type, c_type, d_type), strict=True))
    names = {x: [f"%{x}{r}" for r in range(wmma.registers("c" if x == "d" else x, shape, kinds[x]))] for x in "abcd"}
    vectors = {x: "{" + ", ".join(names[x]) + "}" for x in names}
    width = {x: "b64" if kinds[x] == "f64" else "f32" if kinds[x] == "f32" else "b32" for x in "abcd"}
    lines = [f".reg .{width[x]} {', '.join(names[x])};" for x in "abcd"]
    lines += [f"ld.param.u64 %p{x}, [{x}]; mad.wide.u32 %p{x}, %w, {bytes_of(x, shape, kinds)}, %p{x};" for x in "abcd"]
    where = "" if space == "generic" else f".{space}"
    rest = {
        x: f", {wmma.stride_of('c' if x == 'd' else x, shape, layout)}" if strides else ""
        for x, layout in zip("abcd", full, strict=True)
    }
    for x, layout in zip("abc", full, strict=False):
        source = f"%p{x}"
        if space == "shared":
            lines.append(copy_in(x, bytes_of(x, shape, kinds)))
            source = f"%s{x}"
        form = f"wmma.load.{x}.sync.aligned.{layout}.{size}{where}.{kinds[x]}"
        lines.append(f"{form} {vectors[x]}, [{source}]{rest[x]};")
    types = f"{d_type}.{c_type}" if type == "f16" else f"{d_type}.{type}.{type}.{c_type}"
    op, _, tail = words.partition(" ")
    lines.append(
        f"wmma.mma{op}.sync.aligned.{full[0]}.{full[1]}.{size}.{types}{tail} "
        f"{vectors['d']}, {vectors['a']}, {vectors['b']}, {vectors['c']};"
    )
    lines.append(f"wmma.store.d.sync.aligned.{full[3]}.{size}.global.{d_type} [%pd], {vectors['d']}{rest['d']};")
    return (
        HEAD + ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
        ".reg .pred %p; .reg .b32 %w, %t, %l, %v; .reg .b64 %pa, %pb, %pc, %pd, %q, %o; .reg .b32 %sa, %sb, %sc;\n"
        ".shared .align 32 .b8 room[16384];\n"
        "mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31;\n" + "\n".join(lines) + "\nret;\n}\n"
    )


def copy_in(x: str, size: int) -> str:
    """Copy a warp's matrix to shared memory, word by word."""
    start = {"a": 0, "b": 2048, "c": 4096}[x]
    return (
        f"mov.u32 %s{x}, room; mad.lo.u32 %s{x}, %w, 8192, %s{x}; add.u32 %s{x}, %s{x}, {start};\n"
        f"mov.u32 %v, %l; L{x}: setp.ge.u32 %p, %v, {size // 4}; @%p bra E{x};\n"
        f"mad.wide.u32 %q, %v, 4, %p{x}; .reg .b32 %x{x}, %y{x}; ld.global.u32 %x{x}, [%q];\n"
        f"mad.lo.u32 %y{x}, %v, 4, %s{x}; st.shared.u32 [%y{x}], %x{x}; add.u32 %v, %v, 32; bra L{x}; E{x}:\n"
        f"bar.warp.sync 0xffffffff;"
    )


def bytes_of(x: str, shape: wmma.Shape, kinds: dict[str, str]) -> int:
    m, n, k = shape
    return {"a": m * k, "b": k * n, "c": m * n, "d": m * n}[x] * ref_bits(kinds[x]) // 8


def ref_bits(type: str) -> int:
    return {"s4": 4, "u4": 4, "b1": 1}.get(type) or np.dtype(DTYPES[type]).itemsize * 8


def packed(values: Array, type: str, layout: str) -> Array:
    """Bytes of matrices (2, rows, columns) in a layout."""
    values = np.ascontiguousarray(values if layout == "r" else np.swapaxes(values, 1, 2))
    if type in ("s4", "u4"):
        pairs = values.reshape(2, -1, 2).astype(np.uint8) & 15
        return pairs[..., 0] | pairs[..., 1] << 4
    if type == "b1":
        return np.packbits(values.reshape(2, -1).astype(np.uint8), axis=-1, bitorder="little")
    return values.astype(DTYPES[type]).view(np.uint8)


def numbers(type: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    low, high = {"u8": (0, 256), "s8": (-128, 128), "u4": (0, 16), "s4": (-8, 8), "b1": (0, 2)}.get(type, (-4, 5))
    return rng.integers(low, high, shape)


def product(
    shape: wmma.Shape, type: str, d_type: str, c_type: str, layouts: str, space: str, strides: bool, checks: bool
) -> tuple[Array, Array]:
    """What the kernel gives, and the integers it should."""
    m, n, k = shape
    rng = np.random.default_rng(sum(map(ord, f"{shape}{type}{layouts}")))
    a, b, c = (numbers(t, s, rng) for t, s in ((type, (2, m, k)), (type, (2, k, n)), (c_type, (2, m, n))))
    memory = [packed(x, t, layout) for x, t, layout in zip((a, b, c), (type, type, c_type), layouts, strict=False)]
    out = np.zeros((2, m, n) if layouts[3] == "r" else (2, n, m), DTYPES[d_type])
    words = ".and.popc" if type == "b1" else ""
    text = kernel(shape, type, d_type, c_type, layouts, space, strides, words)
    run_ptx(text, "k", 1, 64, [*memory, out], checks=checks)
    return (out if layouts[3] == "r" else np.swapaxes(out, 1, 2)), a @ b + c


@pytest.mark.parametrize("layouts", ["rcrr", "crcc", "rrrc", "ccrr"])
@pytest.mark.parametrize(("shape", "type", "d_type", "c_type"), forms())
def test_products_of_whole_matrices(shape: wmma.Shape, type: str, d_type: str, c_type: str, layouts: str) -> None:
    if type in ("s4", "u4", "b1") and layouts[:2] != "rc":
        layouts = "rc" + layouts[2:]  # the only one of these types
    got, wanted = product(shape, type, d_type, c_type, layouts, "global", True, False)
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("space", ["global", "shared", "generic"])
@pytest.mark.parametrize(("shape", "type"), [((16, 16, 16), "f16"), ((8, 32, 16), "s8"), ((8, 8, 4), "f64")])
def test_matrices_lie_in_any_memory(shape: wmma.Shape, type: str, space: str, checks: bool) -> None:
    sums = {"f16": "f32", "s8": "s32", "f64": "f64"}[type]
    got, wanted = product(shape, type, sums, sums, "rcrr", space, False, checks)
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


def test_matrices_within_greater_ones() -> None:
    """Strides that are given at run time."""
    rng = np.random.default_rng(3)
    a, b, c = (numbers("f16", (48, 64), rng) for _ in range(3))
    d = np.zeros((48, 64), np.float32)
    text = HEAD + (
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u32 s) {\n"
        ".reg .b64 %pa, %pb, %pc, %pd; .reg .b32 %s, %a<8>, %b<8>; .reg .f32 %c<8>;\n"
        "ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d];\n"
        "ld.param.u32 %s, [s];\n"
        + "".join(
            f"wmma.load.{x}.sync.aligned.row.m16n16k16.global.{t} {{{', '.join(f'%{x}{r}' for r in range(8))}}}, "
            f"[%p{x} + {offset}], %s;\n"
            for x, t, offset in (("a", "f16", 2 * 16), ("b", "f16", 2 * 16 * 64), ("c", "f32", 4 * (16 * 64 + 32)))
        )
        + "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, "
        "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, "
        "{%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%pd + 4096], "
        "{%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, %s;\nret;\n}\n"
    )
    run_ptx(text, "k", 1, 32, [a.astype(np.float16), b.astype(np.float16), c.astype(np.float32), d, 64])
    wanted = np.zeros((48, 64))
    wanted[16:32, :16] = a[:16, 16:32] @ b[16:32, :16] + c[16:32, 32:48]
    np.testing.assert_array_equal(d, wanted)


# ---- sums -----------------------------------------------------------------------------------------------------


def fragments(shape: wmma.Shape, type: str, c_type: str, seed: int) -> list[list[Array]]:
    """Registers of random bits, finite and near one, with the repetitions that a load gives."""
    rng = np.random.default_rng(seed)
    made = []
    for name, kind in (("a", type), ("b", type), ("c", c_type)):
        per = 32 // ref.width(kind) if kind != "tf32" else 1
        used, count = wmma.fragment(name, shape, kind).registers, wmma.registers(name, shape, kind)
        values = rng.standard_normal((used, 32, per))
        dtype = DTYPES[kind]
        words = values.astype(dtype).view(np.uint32)[..., 0]
        made.append([words[r % used] for r in range(count)])
    return made


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_a_product_is_two_of_mma(type: str) -> None:
    a, b, c = fragments((16, 16, 16), type, "f32", 1)
    got = wmma.mma((16, 16, 16), type, "f32", "f32", a, b, c)
    halves = [
        matrix.mma("m16n8k16", type, type, "f32", a[:4], b[2 * h : 2 * h + 2], c[4 * h : 4 * h + 4]) for h in (0, 1)
    ]
    np.testing.assert_array_equal(np.stack(got), np.stack([*halves[0], *halves[1]]))


def test_a_wide_product_is_that_of_the_transposed_matrices() -> None:
    a, b, c = fragments((8, 32, 16), "f16", "f32", 2)
    got = wmma.mma((8, 32, 16), "f16", "f32", "f32", a, b, c)
    halves = [
        matrix.mma("m16n8k16", "f16", "f16", "f32", b[4 * h : 4 * h + 4], a[:2], c[4 * h : 4 * h + 4]) for h in (0, 1)
    ]
    np.testing.assert_array_equal(np.stack(got), np.stack([*halves[0], *halves[1]]))


def test_tf32_sums_in_two_steps() -> None:
    a, b, c = fragments((16, 16, 8), "tf32", "f32", 3)
    got = wmma.mma((16, 16, 8), "tf32", "f32", "f32", a, b, c)
    for half in (0, 1):
        total = c[4 * half : 4 * half + 4]
        for step in (0, 1):
            total = matrix.mma(
                "m16n8k4", "tf32", "tf32", "f32", a[2 * step : 2 * step + 2], [b[2 * half + step]], total
            )
        np.testing.assert_array_equal(np.stack(got[4 * half : 4 * half + 4]), np.stack(total))


def test_f16_results_of_f32_sums_are_rounded_twice() -> None:
    a, b, c = fragments((16, 16, 16), "f16", "f32", 4)
    wide = np.stack(wmma.mma((16, 16, 16), "f16", "f32", "f32", a, b, c)).view(np.float32)
    got = np.ascontiguousarray(np.stack(wmma.mma((16, 16, 16), "f16", "f16", "f32", a, b, c), axis=-1))
    pairs = np.stack([wide[0::2], wide[1::2]], axis=-1).astype(np.float16)
    np.testing.assert_array_equal(got.view(np.float16).reshape(32, 4, 2), np.moveaxis(pairs, 0, 1))


def test_integers_wrap_or_clamp() -> None:
    shape, ones = (16, 16, 16), [np.full(32, 0x01010101, np.uint32)] * 2
    c = [np.full(32, 0x7FFFFFFF, np.uint32)] * 8
    assert {int(x) for x in np.stack(wmma.mma(shape, "s8", "s32", "s32", ones, ones, c)).reshape(-1)} == {0x8000000F}
    clamped = np.stack(wmma.mma(shape, "s8", "s32", "s32", ones, ones, c, satfinite=True))
    assert (clamped == 0x7FFFFFFF).all()


@pytest.mark.parametrize("op", ["and", "xor"])
def test_binary_products_count_ones(op: str) -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.integers(0, 2**32, (n, 32), dtype=np.uint32) for n in (1, 1, 2))
    c >>= np.uint32(4)
    got = np.stack(wmma.mma((8, 8, 128), "b1", "s32", "s32", list(a), list(b), list(c), op=op))
    for lane, element in itertools.product(range(32), range(2)):
        row, column = lane // 4, 2 * (lane % 4) + element
        words = [(int(a[0, 4 * row + w]), int(b[0, 4 * column + w])) for w in range(4)]
        count = sum(bin(x & y if op == "and" else x ^ y).count("1") for x, y in words)
        assert int(got[element, lane]) == count + int(c[element, lane])


# ---- errors ---------------------------------------------------------------------------------------------------


def refused(line: str) -> str:
    text = HEAD + (
        ".visible .entry k(.param .u64 a) { .reg .b64 %p; .reg .b32 %r<8>, %s; ld.param.u64 %p, [a]; mov.u32 %s, 12;\n"
        + line
        + " ret; }"
    )
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", 1, 32, [np.zeros(4096, np.uint8)])
    return str(caught.value)


EIGHT = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"


def test_shared_memory_that_was_never_written_is_found() -> None:
    text = HEAD + (
        ".visible .entry k(.param .u64 a) { .reg .b64 %p; .reg .b32 %r<4>; .shared .align 32 .b8 room[512];\n"
        "ld.param.u64 %p, [a]; wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3}, [room];\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%p], {%r0, %r1, %r2, %r3}; ret; }"
    )
    with pytest.raises(EmulationError, match="never written is used as a value stored to global memory"):
        run_ptx(text, "k", 1, 32, [np.zeros(256, np.float16)], checks=True)


def test_errors_name_what_is_wrong() -> None:
    text = refused(f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {EIGHT}, [%p], %s;")
    assert "stride of a matrix of f16 is no multiple of 16 bytes" in text and "wmma.load.a" in text
    text = refused("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1}, [%p];")
    assert "moves 8 registers, not 2" in text
    text = refused("wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r0}, [%p];")
    assert "a of s4 in the other layout only" in text and "A is row, B is col" in text
    text = refused(f"wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {EIGHT}, [%p];")
    assert "no such combination" in text and "m16n16k16 m8n32k16 m32n8k16 into f16 f32" in text
    text = refused(f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.u8.s8.f32 {EIGHT}, {{%r0}}, {{%r0}}, {EIGHT};")
    assert "A and B alike" in text
    text = refused(f"wmma.store.c.sync.aligned.row.m16n16k16.global.f32 [%p], {EIGHT};")
    assert "does not exist" in text
    with pytest.raises(EmulationError, match="fragment of b has the wrong number of registers"):
        word = np.zeros(32, np.uint32)
        wmma.mma((16, 16, 16), "bf16", "f32", "f32", [word] * 4, [word] * 2, [word] * 8)
