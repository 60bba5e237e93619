"""Operands of `wgmma.mma_async`: fragments across 128 lanes, matrix descriptors, the product (PTX ISA 9.7.15.5).

Warp w of a warpgroup holds rows 16w to 16w + 15 of A and D, in each the fragments of `mma.sync` with M = 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import matrix, sparse
from tilewright.targets.emu.numerics.formats import Array
from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS, fragment_a, parse_shape

ROW_BYTES = 32  # what one instruction takes of K, in every type
SWIZZLE_BYTES = {0: 16, 1: 128, 2: 64, 3: 32}
COMBINATIONS = {  # types of A and B: (K, types of D)
    "f16": (16, ("f16", "f32")),
    "bf16": (16, ("f32",)),
    "tf32": (8, ("f32",)),
    "e4m3": (32, ("f16", "f32")),
    "e5m2": (32, ("f16", "f32")),
    "s8": (32, ("s32",)),
    "u8": (32, ("s32",)),
    "b1": (256, ("s32",)),
}


@dataclass(frozen=True)
class Descriptor:
    """A matrix descriptor, in bytes (PTX ISA 9.7.15.5.1.2.2): start, leading and stride offsets, `span` of the
    swizzle (16 for none), and the base offset in rows of 128 bytes."""

    start: int
    leading: int
    stride: int
    span: int
    base: int


def decode_descriptor(word: int) -> Descriptor:
    """The fields of a 64-bit descriptor."""
    word = int(word)
    start, leading, stride = ((word >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    return Descriptor(start, leading, stride, SWIZZLE_BYTES[word >> 62 & 3], word >> 49 & 7)


def encode_descriptor(start: int, leading: int, stride: int, span: int = 16, base: int = 0) -> int:
    """The 64-bit descriptor of byte quantities; `span` is 16 (no swizzle), 32, 64 or 128."""
    mode = {size: code for code, size in SWIZZLE_BYTES.items()}[span]
    fields = [(value & 0x3FFFF) >> 4 for value in (start, leading, stride)]
    return fields[0] | fields[1] << 16 | fields[2] << 32 | base << 49 | mode << 62


def operand_addresses(
    descriptor: Descriptor | int, rows: int, columns: int, element_bits: int, transposed: bool = False
) -> Array:
    """Shared-memory byte addresses of a matrix, int64 of shape (rows, columns).

    Rows are M (or N), columns K; sub-byte elements are addressed by the byte that holds them. K is contiguous, or with
    `transposed` (16-bit elements only) M or N is. The canonical layouts of PTX ISA 9.7.15.5.1.2.1.3; the swizzle
    exchanges address bits 4 and up by bits 7 and up. The array is read-only.
    """
    fields = descriptor if isinstance(descriptor, Descriptor) else decode_descriptor(descriptor)
    return _addresses(fields, rows, columns, element_bits, transposed)


@lru_cache(maxsize=256)
def _addresses(fields: Descriptor, rows: int, columns: int, element_bits: int, transposed: bool) -> Array:
    if transposed and element_bits != 16:
        raise EmulationError(
            "wgmma transposes 16-bit elements only", values={"element bits": element_bits}, hint="store it K-major"
        )
    row, column = np.arange(rows, dtype=np.int64)[:, None], np.arange(columns, dtype=np.int64)[None, :]
    offset = (
        _offset_across(fields, 2 * row, column)
        if transposed
        else _offset_along(fields, row, column * element_bits // 8)
    )
    addresses = swizzled(fields.start + offset, fields.span, fields.base)
    addresses.setflags(write=False)  # shared by all who ask again
    return addresses


def _offset_along(fields: Descriptor, row: Array, byte: Array) -> Array:
    """K-major: rows of `span` bytes in groups of eight; without swizzle 16-byte columns lie `leading` apart."""
    inner = byte % 16 + byte // 16 * fields.leading if fields.span == 16 else byte
    return np.asarray(row % 8 * fields.span + row // 8 * fields.stride + inner)


def _offset_across(fields: Descriptor, byte: Array, k: Array) -> Array:
    """MN-major: blocks of `span` bytes by eight of K; `leading` and `stride` trade places without swizzle."""
    across, along = (fields.stride, fields.leading) if fields.span == 16 else (fields.leading, fields.stride)
    return np.asarray(byte % fields.span + byte // fields.span * across + k % 8 * fields.span + k // 8 * along)


def swizzled(address: Array, span: int, base: int = 0) -> Array:
    """Addresses with the 16-byte chunk exchanged within rows of `span` bytes, by the row of 128 bytes."""
    chunks = span // 16 - 1
    return np.asarray(address ^ ((((address >> 7) - base) & chunks) << 4))


# ---- registers ------------------------------------------------------------------------------------------------


def a_from_registers(registers: Sequence[Array], type: str) -> Array:
    """A (..., 64, K) as float64 from its four registers (..., 128)."""
    k = ROW_BYTES * 8 // ELEMENT_BITS[type]
    split = [np.reshape(r, (*r.shape[:-1], 4, 32)) for r in registers]
    quarters = matrix.gather(split, type, fragment_a((16, 8, k), type))
    return quarters.reshape(*quarters.shape[:-3], 64, k)


def d_places(n: int, type: str) -> tuple[Array, Array]:
    """Row and column of every element of D: int64 of shape (registers, 128, elements in a register)."""
    places = max(32 // ELEMENT_BITS[type], 1)
    lane = np.arange(128)[None, :, None]
    element = np.arange(n // 2).reshape(-1, 1, places)
    row = lane // 32 * 16 + lane % 32 // 4 + 8 * (element // 2 % 2)
    column = 8 * (element // 4) + 2 * (lane % 4) + element % 2
    shape = (n // 2 // places, 128, places)
    return np.broadcast_to(row, shape), np.broadcast_to(column, shape)


def d_from_registers(registers: Sequence[Array], n: int, type: str) -> Array:
    """D (..., 64, n) as float64 from its registers (..., 128)."""
    row, column = d_places(n, type)
    if len(registers) != row.shape[0]:
        raise EmulationError(
            "wgmma's accumulator has the wrong number of registers",
            values={"given": len(registers), "needed": row.shape[0], "shape": f"m64n{n}", "type": type},
        )
    elements = matrix.unpack(np.stack(registers, axis=-2), type)
    out = np.zeros((*elements.shape[:-3], 64, n))
    out[..., row, column] = elements
    return out


def d_to_registers(product: Array, type: str) -> list[Array]:
    """The registers (..., 128), uint32, of D (..., 64, n) of float16, float32 or int32."""
    row, column = d_places(product.shape[-1], type)
    words = np.ascontiguousarray(product[..., row, column]).view(np.uint32)[..., 0]
    return [words[..., r, :] for r in range(row.shape[0])]


def from_bytes(octets: Array, type: str) -> Array:
    """Elements as float64 from bytes at the addresses of `operand_addresses`.

    `octets` is uint8 (..., rows, columns, bytes per element), for b1 (..., rows, bytes along K).
    """
    if type == "b1":
        return np.unpackbits(octets, axis=-1, bitorder="little").astype(np.float64)
    size = ELEMENT_BITS[type] // 8
    words = np.zeros((*octets.shape[:-1], 4), np.uint8)
    words[..., :size] = octets
    return matrix.unpack(words.view(np.uint32)[..., 0], type)[..., 0]


def product(
    a: Array,
    b: Array,
    d: Array,
    a_type: str,
    b_type: str,
    d_type: str,
    *,
    scale_d: Array | bool = True,
    negate_a: bool = False,
    negate_b: bool = False,
    satfinite: bool = False,
    taken: Array | None = None,
) -> Array:
    """D = A * B + D, or A * B where `scale_d` is false.

    `a` is float64 (..., 64, K), `b` (..., N, K), `d` (..., 64, N); the result has `d_type`'s dtype. Summation and
    `taken` are those of `matrix.multiply`; b1 counts the ones of the conjunction. `check` says which combinations there
    are.
    """
    keep = np.asarray(scale_d, bool)
    start = np.where(keep[..., None, None], d, 0.0)
    return matrix.multiply(
        -a if negate_a else a,
        np.swapaxes(-b if negate_b else b, -1, -2),
        start,
        (a_type, b_type, d_type, d_type),
        satfinite=satfinite,
        op="and" if a_type == "b1" else None,
        instruction="wgmma",
        taken=taken,
    )


def widened(a: Array, metadata: Array, type: str, k: int, selector: int) -> tuple[Array, Array]:
    """`sparse.widened` of A (..., 64, K / 2); `metadata` is uint32 (..., 4, 32).

    Warp w gives the metadata of rows 16w to 16w + 15 as for `mma.sp` with M = 16 (PTX ISA 9.7.15.6.2).
    """
    columns = sparse.columns_of(metadata, type, k, selector)
    return sparse.widened(a, columns.reshape(*columns.shape[:-3], 64, k // 2), k)


def check(shape: str, a_type: str, b_type: str, d_type: str, sparse: bool = False) -> None:
    """`EmulationError` unless `wgmma.mma_async` (or its `.sp`, with twice the K) has these types in this shape."""
    m, n, k = parse_shape(shape)
    fp8, bytes_ = {"e4m3", "e5m2"}, {"s8", "u8"}
    alike = a_type == b_type or {a_type, b_type} in (fp8, bytes_)
    if a_type in COMBINATIONS and alike and not (sparse and a_type == "b1"):
        wanted, sums = COMBINATIONS[a_type]
        fits = n % 8 == 0 and 8 <= n <= 256 and (d_type != "s32" or n % 16 == 0 or n in (8, 24))
        if m == 64 and fits and k == wanted * (1 + sparse) and d_type in sums:
            return
    raise EmulationError(
        f"wgmma{'.sp' if sparse else ''} has no such combination of types and shape",
        values={"types": f"{a_type} times {b_type} into {d_type}", "shape": shape},
        hint="see the tables of wgmma.mma_async in the PTX ISA",
    )
