"""`mma.sp`: products with a structured sparse A (PTX ISA 9.7.14.6).

A holds half of its K columns, in the fragments that the dense instruction has for them; the metadata say which. Four
bits stand for a chunk of four columns (f16, bf16, s8, u8, fp8: two indices of two bits), of two columns (tf32: 0100
the first, 1110 the second), or of eight (s4, u4: two indices of pairs). Lanes 4g to 4g + 3 give the metadata of rows
g and g + 8: with 16 bits a row one lane, row g in the low half; with 32 bits two lanes, one for each row (8- and 4-bit
elements) or one for each half of K with both rows (others); with 64 bits all four, first the low half of K. The columns
that are left out have no products: an infinity or a NaN of B does not reach a sum by them. Recorded on an H100 (kernels
sparse_*).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics.formats import Array
from tilewright.targets.emu.numerics.fragments import fragment_a, fragment_b, fragment_c, parse_shape
from tilewright.targets.emu.numerics.matrix import Registers, gather, multiply, scatter

CHUNK = {**dict.fromkeys(("f16", "bf16", "s8", "u8", "e4m3", "e5m2"), 4), "tf32": 2, **dict.fromkeys(("s4", "u4"), 8)}
BYTES_OR_LESS = ("s8", "u8", "e4m3", "e5m2", "s4", "u4")
SHAPES = {  # types of A: depths K, types of C
    "f16": ((16, 32), ("f16", "f32")),
    "bf16": ((16, 32), ("f32",)),
    "tf32": ((8, 16), ("f32",)),
    **dict.fromkeys(("e4m3", "e5m2"), ((64,), ("f32",))),
    **dict.fromkeys(("s8", "u8"), ((32, 64), ("s32",))),
    **dict.fromkeys(("s4", "u4"), ((64, 128), ("s32",))),
}
FAMILIES = ({"e4m3", "e5m2"}, {"s8", "u8"}, {"s4", "u4"})


def mma_sp(
    shape: str | tuple[int, int, int],
    a_type: str,
    b_type: str,
    acc_type: str,
    a: Registers,
    b: Registers,
    c: Registers,
    metadata: Array,
    selector: int,
    *,
    satfinite: bool = False,
) -> list[Array]:
    """D = A * B + C with sparse A; registers as those of `matrix.mma`, `metadata` uint32 (..., 32).

    Raises `EmulationError` for a combination that the PTX ISA does not have, a selector out of range, or metadata that
    name a column twice or, ordered as the manual wants them, the greater first.
    """
    m, n, k = size = parse_shape(shape)
    check(size, a_type, b_type, acc_type)
    columns = columns_of(metadata, a_type, k, selector)
    packed = gather(a, a_type, fragment_a((m, n, k // 2), a_type))
    full, taken = widened(packed, columns, k)
    layout = fragment_c(size, a_type, acc_type)
    product = multiply(
        full,
        gather(b, b_type, fragment_b(size, b_type)),
        gather(c, acc_type, layout),
        (a_type, b_type, acc_type, acc_type),
        satfinite=satfinite,
        instruction="mma.sp",
        taken=taken,
    )
    return scatter(product, layout)


def check(shape: tuple[int, int, int], a_type: str, b_type: str, acc_type: str) -> None:
    """`EmulationError` unless `mma.sp` of sm_80 to sm_90 has this combination."""
    depths, sums = SHAPES.get(a_type, ((), ()))
    alike = a_type == b_type or any({a_type, b_type} <= family for family in FAMILIES)
    if shape[:2] == (16, 8) and shape[2] in depths and acc_type in sums and alike:
        return
    raise EmulationError(
        "mma.sp has no such combination of shape and types",
        values={"shape": "m{}n{}k{}".format(*shape), "types": f"{a_type} times {b_type} into {acc_type}"},
    )


def widened(packed: Array, columns: Array, k: int) -> tuple[Array, Array]:
    """A sparse A (..., M, K / 2) as a dense one (..., M, K), and which of its elements there are."""
    full = np.zeros((*packed.shape[:-1], k))
    taken = np.zeros(full.shape, bool)
    np.put_along_axis(full, columns, packed, axis=-1)
    np.put_along_axis(taken, columns, True, axis=-1)
    return full, taken


def columns_of(metadata: Array, type: str, k: int, selector: int) -> Array:
    """The column of A of each packed element: int64 (..., 16, K / 2)."""
    lane, shift = _nibbles(type, k, selector)
    nibbles = (metadata[..., lane].astype(np.int64) >> shift) & 15
    first, second = nibbles & 3, nibbles >> 2
    if np.any(first >= second):
        raise EmulationError(
            "mma.sp got metadata that are no two different columns in order",
            values={"metadata bits": " ".join(sorted({f"{x:04b}" for x in nibbles[first >= second].flat}))},
            hint="valid are 0100 1000 1001 1100 1101 1110; check which lanes the sparsity selector names",
        )
    base = CHUNK[type] * np.arange(k // CHUNK[type])
    if type == "tf32":
        return np.asarray(base + first // 2)
    pairs = np.stack((first, second), axis=-1)
    if CHUNK[type] == 8:
        pairs = (2 * pairs[..., None] + np.arange(2)).reshape(*pairs.shape[:-1], 4)
    return np.asarray((base[:, None] + pairs).reshape(*pairs.shape[:-2], k // 2))


@cache
def _nibbles(type: str, k: int, selector: int) -> tuple[Array, Array]:
    """The lane and the shift of the four bits of each row and chunk: two arrays (16, chunks)."""
    chunks = k // CHUNK[type]
    choices = {4: 4, 8: 2, 16: 1}[chunks]
    if not 0 <= selector < choices:
        raise EmulationError("the sparsity selector is out of range", values={"given": selector, "choices": choices})
    row, chunk = np.arange(16)[:, None], np.arange(chunks)[None, :]
    group, lower = row % 8 * 4, row // 8
    if chunks == 4:
        return np.broadcast_to(group + selector, (16, 4)), 4 * chunk + 16 * lower
    if type in BYTES_OR_LESS:
        return np.broadcast_to(group + 2 * selector + lower + chunk // 8 * 2, (16, chunks)), 4 * (chunk % 8) + 0 * row
    return np.broadcast_to(group + 2 * selector + chunk // 4, (16, 8)), 4 * (chunk % 4) + 16 * lower
