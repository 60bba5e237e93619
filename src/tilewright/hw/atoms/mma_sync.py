"""`mma.sync`: which element of A, B and C each lane of a warp holds.

Source: PTX ISA 9.0, 9.7.14.5 "Matrix multiply-accumulate operation using mma instruction", sections "Matrix Fragments
for mma.m8n8k4 / m16n8k4 / m16n8k8 / m16n8k16 / m16n8k32" and the table of types of "mma". All shapes here follow one
rule. With group = lane / 4, member = lane % 4, e elements of A or B in a register and p = M / 8:

    A  register r, element i: row group + 8 (r % p), column 4e (r / p) + e member + i
    B  register r, element i: row (K) 4e r + e member + i, column (N) group
    C  element i:             row group + 8 (i / 2), column 2 member + i % 2

Layouts map (lane, value) to the column-major index in the (M,K), (N,K) or (M,N) tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.layout import Layout

WARP = 32


@dataclass(frozen=True)
class MmaSync:
    """One form of `mma.sync`. Types are PTX names; `feature` is its row in `hw.features`."""

    shape: tuple[int, int, int]
    a_type: str
    b_type: str
    c_type: str
    feature: str
    a: Layout
    b: Layout
    c: Layout

    @property
    def name(self) -> str:
        """As PTX writes it: `m16n8k16.row.col.f32.f16.f16.f32`."""
        m, n, k = self.shape
        return f"m{m}n{n}k{k}.row.col.{self.c_type}.{self.a_type}.{self.b_type}.{self.c_type}"


BITS: Final = {
    "f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
}  # fmt: skip
"""Bits of an element of a PTX type."""

# Shape, types of A, types of B, types of C and D, feature. Types of A and B: equal where only one list is given.
_ROWS: Final[tuple[tuple[tuple[int, int, int], str, str, str, str], ...]] = (
    ((16, 8, 8), "f16", "", "f16 f32", "mma.m16n8k8.f16"),
    ((16, 8, 16), "f16", "", "f16 f32", "mma.m16n8k16.f16"),
    ((16, 8, 8), "bf16", "", "f32", "mma.bf16"),
    ((16, 8, 16), "bf16", "", "f32", "mma.bf16"),
    ((16, 8, 4), "tf32", "", "f32", "mma.tf32"),
    ((16, 8, 8), "tf32", "", "f32", "mma.tf32"),
    ((8, 8, 4), "f64", "", "f64", "mma.f64"),
    ((16, 8, 16), "s8 u8", "s8 u8", "s32", "mma.s8"),
    ((16, 8, 32), "s8 u8", "s8 u8", "s32", "mma.s8"),
    ((16, 8, 32), "e4m3 e5m2", "e4m3 e5m2", "f32", "mma.f8"),
)


def _layout(thread: tuple[tuple[int, int], ...], value: tuple[tuple[int, int], ...]) -> Layout:
    """(lane, value) from (extent, stride) pairs, modes of extent 1 left out."""

    def mode(pairs: tuple[tuple[int, int], ...]) -> tuple[object, object]:
        kept = [pair for pair in pairs if pair[0] > 1]
        if len(kept) < 2:
            return kept[0] if kept else (1, 0)
        return tuple(extent for extent, _ in kept), tuple(step for _, step in kept)

    (lanes, lane_steps), (values, value_steps) = mode(thread), mode(value)
    return Layout((lanes, values), (lane_steps, value_steps))


def operand_a(shape: tuple[int, int, int], bits: int) -> Layout:
    """(lane, value) -> index in the (M,K) tile of A, elements of `bits` bits."""
    m, _, k = shape
    e, p = max(32 // bits, 1), m // 8
    return _layout(((4, e * m), (8, 1)), ((e, m), (p, 8), (k // (4 * e), 4 * e * m)))


def operand_b(shape: tuple[int, int, int], bits: int) -> Layout:
    """(lane, value) -> index in the (N,K) tile of B, elements of `bits` bits."""
    _, n, k = shape
    e = max(32 // bits, 1)
    return _layout(((4, e * n), (8, 1)), ((e, n), (k // (4 * e), 4 * e * n)))


def operand_c(shape: tuple[int, int, int]) -> Layout:
    """(lane, value) -> index in the (M,N) tile of C and D."""
    m, _, _ = shape
    return _layout(((4, 2 * m), (8, 1)), ((2, m), (m // 8, 8)))


def _forms() -> Iterator[MmaSync]:
    for shape, a_types, b_types, c_types, feature in _ROWS:
        for a_type in a_types.split():
            for b_type in b_types.split() or [a_type]:
                for c_type in c_types.split():
                    a, b = operand_a(shape, BITS[a_type]), operand_b(shape, BITS[b_type])
                    yield MmaSync(shape, a_type, b_type, c_type, feature, a, b, operand_c(shape))


FORMS: Final[dict[tuple[tuple[int, int, int], str, str, str], MmaSync]] = {
    (form.shape, form.a_type, form.b_type, form.c_type): form for form in _forms()
}
"""Every form by shape and the types of A, B and C."""
