"""Operands of `wgmma`: descriptors against the manual's worked examples and layouts, fragments, products."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import wgmma


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def test_descriptor_fields() -> None:
    word = wgmma.encode_descriptor(0x12340, 512, 1024, span=64, base=5)
    assert word == (0x1234 | 32 << 16 | 64 << 32 | 5 << 49 | 2 << 62)
    fields = wgmma.decode_descriptor(word)
    assert (fields.start, fields.leading, fields.stride, fields.span, fields.base) == (0x12340, 512, 1024, 64, 5)
    assert wgmma.decode_descriptor(1 << 62).span == 128
    assert wgmma.decode_descriptor(3 << 62).span == 32


def layout(coordinate: int, shape, stride) -> int:
    """A CuTe layout of one nested mode, evaluated colexicographically."""
    total = 0
    for extent, step in zip(shape, stride, strict=True):
        total += coordinate % extent * step
        coordinate //= extent
    return total


def swizzle(byte: int, bits: int) -> int:
    """CuTe's Swizzle<bits, 4, 3> on a byte address."""
    return byte ^ ((byte >> 3) & (((1 << bits) - 1) << 4))


# The exact layouts of PTX ISA 9.7.15.5.1.2.1.3's examples, in elements: rows, columns, element bytes, MN-major.
EXAMPLES = [
    ("K none tf32", 16, ((8, 2), (4, 32)), ((4, 4), (1, 64)), 4, 0, False, 64 * 4, 32 * 4),
    ("K 32B tf32", 32, ((8, 2), (8, 64)), ((4, 2), (1, 4)), 4, 1, False, 16, 64 * 4),
    ("MN none bf16", 16, ((8, 1, 2), (1, 8, 64)), ((8, 2), (8, 128)), 2, 0, True, 128 * 2, 64 * 2),
    ("MN 32B bf16", 32, ((8, 2, 2), (1, 8, 128)), ((8, 2), (16, 256)), 2, 1, True, 128 * 2, 256 * 2),
    ("MN 64B bf16", 64, ((8, 4, 2), (1, 8, 256)), ((8, 2), (32, 512)), 2, 2, True, 256 * 2, 512 * 2),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_canonical_layouts_are_the_manuals(example) -> None:
    _, span, row_mode, column_mode, size, bits, transposed, leading, stride = example
    rows, columns = int(np.prod(row_mode[0])), int(np.prod(column_mode[0]))
    start = 0x4000
    word = wgmma.encode_descriptor(start, leading, stride, span)
    got = wgmma.operand_addresses(word, rows, columns, size * 8, transposed)
    for r, c in itertools.product(range(rows), range(columns)):
        element = layout(r, *row_mode) + layout(c, *column_mode)
        assert got[r, c] == start + swizzle(element * size, bits), (r, c)


@pytest.mark.parametrize("span", [32, 64, 128])
def test_k_major_swizzles_cover_the_tile_once(span: int) -> None:
    """A tile of 64 rows by `span` bytes as TMA writes it: chunk c of row r lands at a chunk that r exchanges."""
    bits = {32: 1, 64: 2, 128: 3}[span]
    word = wgmma.encode_descriptor(0x8000, 16, 8 * span, span)
    seen = set()
    for step in range(span // 32):  # a K step advances the start address by 32 bytes inside the swizzled row
        got = wgmma.operand_addresses(word + (step * 32 >> 4), 64, 16, 16)
        for r, c in itertools.product(range(64), range(16)):
            assert got[r, c] == 0x8000 + swizzle(r * span + step * 32 + 2 * c, bits)
            seen.add(int(got[r, c]))
    assert len(seen) == 64 * span // 2


def test_mn_major_128_byte_swizzle() -> None:
    word = wgmma.encode_descriptor(0x400, 4096, 1024, 128)
    got = wgmma.operand_addresses(word, 128, 16, 16, transposed=True)
    for r, k in itertools.product(range(128), range(16)):
        plain = 2 * (r % 64) + r // 64 * 4096 + k % 8 * 128 + k // 8 * 1024
        assert got[r, k] == 0x400 + swizzle(plain, 3)


def test_base_offset_moves_the_pattern() -> None:
    """A tile that starts 3 * 128 bytes past its 1024-byte boundary, with base offset 3, is swizzled from there on."""
    start = 0x400 + 3 * 128
    got = wgmma.operand_addresses(wgmma.encode_descriptor(start, 16, 1024, 128, base=3), 8, 32, 8)
    for r, c in itertools.product(range(8), range(32)):
        assert got[r, c] - start == swizzle(r * 128 + c, 3)


def test_fragments_of_d_and_a() -> None:
    for n, type in itertools.product((8, 24, 256), ("f32", "f16", "s32")):
        row, column = wgmma.d_places(n, type)
        places = 2 if type == "f16" else 1
        assert row.shape == (n // 2 // places, 128, places)
        for register, lane, part in itertools.product(range(row.shape[0]), range(128), range(places)):
            i = register * places + part
            wanted = (16 * (lane // 32) + lane % 32 // 4 + 8 * (i % 4 // 2), 8 * (i // 4) + lane % 4 * 2 + i % 2)
            assert (row[register, lane, part], column[register, lane, part]) == wanted
        assert len({(r, c) for r, c in zip(row.flat, column.flat, strict=True)}) == 64 * n


def test_registers_round_trip() -> None:
    rng = np.random.default_rng(1)
    d = rng.standard_normal((2, 64, 16)).astype(np.float32)
    registers = wgmma.d_to_registers(d, "f32")
    assert len(registers) == 8
    assert registers[0].shape == (2, 128)
    np.testing.assert_array_equal(wgmma.d_from_registers(registers, 16, "f32"), d)
    half = d.astype(np.float16)
    np.testing.assert_array_equal(wgmma.d_from_registers(wgmma.d_to_registers(half, "f16"), 16, "f16"), half)


def test_a_from_registers() -> None:
    a = np.arange(64 * 16).reshape(64, 16).astype(np.float16)
    registers = []
    for r in range(4):
        words = np.zeros(128, np.uint32)
        for lane in range(128):
            row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (r % 2)
            column = 2 * (lane % 4) + 8 * (r // 2)
            words[lane] = np.ascontiguousarray(a[row, column : column + 2]).view(np.uint32)[0]
        registers.append(words)
    np.testing.assert_array_equal(wgmma.a_from_registers(registers, "f16"), a)


@pytest.mark.parametrize(
    ("type", "k", "d_type"),
    [
        ("f16", 16, "f32"),
        ("f16", 16, "f16"),
        ("bf16", 16, "f32"),
        ("tf32", 8, "f32"),
        ("e4m3", 32, "f16"),
        ("s8", 32, "s32"),
    ],
)
def test_products(type: str, k: int, d_type: str) -> None:
    rng = np.random.default_rng(k)
    a, b = rng.integers(-3, 4, (64, k)).astype(float), rng.integers(-3, 4, (24, k)).astype(float)
    d = rng.integers(-9, 10, (64, 24)).astype(float)
    np.testing.assert_array_equal(wgmma.product(a, b, d, type, type, d_type), a @ b.T + d)
    np.testing.assert_array_equal(wgmma.product(a, b, d, type, type, d_type, scale_d=False), a @ b.T)
    if d_type != "s32":
        np.testing.assert_array_equal(wgmma.product(a, b, d, type, type, d_type, negate_a=True), d - a @ b.T)
        both = wgmma.product(a, b, d, type, type, d_type, negate_a=True, negate_b=True)
        np.testing.assert_array_equal(both, a @ b.T + d)


def test_fp8_sums_keep_thirteen_bits() -> None:
    """1 + 2**-12 + 2**-13 + 2**-14: the last term lies below the 13 fractional bits; f16 keeps it."""
    a, b = np.zeros((64, 32)), np.zeros((8, 32))
    a[:, :3] = 1.0, 2.0**-6, 2.0**-6
    b[:, :3] = 1.0, 2.0**-6, 2.0**-7
    d = np.full((64, 8), 2.0**-14)
    assert (wgmma.product(a, b, d, "e4m3", "e4m3", "f32") == 1 + 2.0**-12 + 2.0**-13).all()
    half = wgmma.product(a[:, :16], b[:, :16], d, "f16", "f16", "f32")
    assert (half == 1 + 2.0**-12 + 2.0**-13 + 2.0**-14).all()


def test_without_scale_d_old_values_do_not_count() -> None:
    a, b, d = np.ones((64, 16)), np.ones((8, 16)), np.full((64, 8), np.nan)
    assert (wgmma.product(a, b, d, "f16", "f16", "f32", scale_d=False) == 16).all()


def test_binary_product() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 256, (64, 32), dtype=np.uint8), rng.integers(0, 256, (8, 32), dtype=np.uint8)
    got = wgmma.product(wgmma.from_bytes(a, "b1"), wgmma.from_bytes(b, "b1"), np.ones((64, 8)), "b1", "b1", "s32")
    wanted = [[1 + sum(int(x & y).bit_count() for x, y in zip(p, q, strict=True)) for q in b] for p in a]
    np.testing.assert_array_equal(got, wanted)


def test_from_bytes() -> None:
    octets = np.array([[[0x00, 0x3C], [0x00, 0xC0]]], np.uint8)
    assert wgmma.from_bytes(octets, "f16").tolist() == [[1.0, -2.0]]
    assert wgmma.from_bytes(np.array([[[0xFF], [0x7F]]], np.uint8), "s8").tolist() == [[-1.0, 127.0]]
    assert wgmma.from_bytes(np.array([[[0x38], [0xBC]]], np.uint8), "e4m3").tolist() == [[1.0, -1.5]]


def test_errors_name_what_is_wrong() -> None:
    for shape, types in (
        ("m64n8k16", ("bf16", "bf16", "f16")),
        ("m64n8k16", ("f16", "bf16", "f32")),
        ("m64n8k8", ("f16", "f16", "f32")),
        ("m64n12k16", ("f16", "f16", "f32")),
        ("m64n40k32", ("s8", "s8", "s32")),
        ("m64n264k16", ("f16", "f16", "f32")),
    ):
        with pytest.raises(EmulationError, match="wgmma has no such combination of types and shape"):
            wgmma.check(shape, *types)
    with pytest.raises(EmulationError, match=r"wgmma\.sp has no such combination of types and shape"):
        wgmma.check("m64n8k512", "b1", "b1", "s32", True)
    wgmma.check("m64n24k64", "s8", "u8", "s32", True)
    with pytest.raises(EmulationError, match="transposes 16-bit elements only"):
        wgmma.operand_addresses(0, 64, 32, 8, transposed=True)
    with pytest.raises(EmulationError, match="wrong number of registers"):
        wgmma.d_from_registers([np.zeros(128, np.uint32)], 8, "f32")
