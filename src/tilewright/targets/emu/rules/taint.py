"""How values never written spread across the lanes of a warp: products, transpositions, votes, reductions.

A mark is a Boolean by thread, or one for all. Matrix products go by rows and columns, so that rows of padding that no
one has written leave the others' results alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder
from tilewright.targets.emu.flow import taint_register
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.numerics import ldmatrix, wgmma
from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS, Fragment, fragment_a
from tilewright.targets.emu.ptx import Operand, Reg, Sink
from tilewright.targets.emu.runtime import full, provide

ALL_ONES = np.uint32(0xFFFFFFFF)


def product(
    c: BlockCoder,
    text: str,
    results: list[tuple[Operand, str]],
    operands: Sequence[Sequence[Operand]],
    fragments: Sequence[Fragment],
) -> None:
    """A product `text` with a list of `results`, and the marks of these; `fragments` are those of A, B, C and D."""
    groups = [[c.taint_of(item) for item in items] for items in operands]
    if all(mark == "FALSE" for group in groups for mark in group):
        c.effect(text, [], results)
        return
    given = ", ".join(f"({', '.join(group)},)" for group in groups)
    places = ", ".join(c.owner.bind(fragment) for fragment in fragments)
    marks: list[Operand] = [taint_register(to.name) if isinstance(to, Reg) else Sink() for to, _ in results]
    c.effect(f"[*{text}, *product_taint(L, {given}, {places})]", [], [*results, *((mark, "pred") for mark in marks)])


@provide
def product_taint(
    L: Lanes, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], in_a: Fragment, in_b: Fragment, in_c: Fragment,
    in_d: Fragment,
) -> list[Any]:  # fmt: skip
    """The marks of the registers of D = A * B + C."""
    if not any(np.count_nonzero(mark) for group in (a, b, c) for mark in group):
        return [np.bool_(False)] * in_d.registers
    rows, columns, sums = (spread(L, group[: own.registers], own) for group, own in ((a, in_a), (b, in_b), (c, in_c)))
    by_row, by_column = (np.asarray(np.logical_or.reduce(x, axis)) for x, axis in ((rows, -1), (columns, -2)))
    marks = by_row[..., None] | by_column[..., None, :] | sums
    where = (in_d.row, in_d.column) if in_d.part is None else (in_d.part, in_d.row, in_d.column)
    found: Array = np.asarray(np.logical_or.reduce(marks[(..., *where)], -1))
    return [found[:, k].reshape(-1) for k in range(in_d.registers)]


def spread(L: Lanes, marks: Sequence[Any], own: Fragment) -> Array:
    """The marks of registers as those of a matrix's elements: (warps, rows, columns)."""
    table = np.stack([full(mark, L.n).reshape(-1, 32) for mark in marks], axis=-2)
    return np.asarray(table[..., own.register, own.lane])


def group_rows(L: Lanes, marks: Sequence[Any], kind: str) -> Array | None:
    """Which rows of wgmma's A have something never written, from the marks of its registers: (groups, 64)."""
    if not any(np.count_nonzero(mark) for mark in marks):
        return None
    own = fragment_a((16, 8, wgmma.ROW_BYTES * 8 // ELEMENT_BITS[kind]), kind)
    return np.asarray(np.logical_or.reduce(spread(L, marks, own), -1).reshape(-1, 64))


def group_taint(rows: Array | None, columns: Array | None, old: Sequence[Any], n: int, kind: str) -> list[Any]:
    """The marks of the registers of wgmma's D, from those of rows of A (groups, 64), columns of B (groups, n) and D's
    registers before."""
    if rows is None and columns is None:
        return list(old)
    shape = (-1, 64, 1), (-1, 1, n)
    parts = [marks.reshape(to) for marks, to in zip((rows, columns), shape, strict=True) if marks is not None]
    found = parts[0] if len(parts) == 1 else parts[0] | parts[1]
    table = np.broadcast_to(found, (len(found), 64, n)).astype(np.float16 if kind == "f16" else np.float32)
    return [
        (register != 0).reshape(-1) | mark
        for register, mark in zip(wgmma.d_to_registers(table, kind), old, strict=True)
    ]


@provide
def transposed_taint(L: Lanes, mark: Any) -> Array:
    """The marks of `movmatrix`."""
    words = np.where(full(mark, L.n), ALL_ONES, np.uint32(0)).reshape(-1, 32)
    return np.asarray(ldmatrix.transpose(words).reshape(-1) != 0)


@provide
def row_taint(L: Lanes, marks: Sequence[Any], transposed: bool) -> Array:
    """The marks of the bytes of the rows that `stmatrix` writes: (rows, 16)."""
    words = [np.where(full(mark, L.n), ALL_ONES, np.uint32(0)).reshape(-1, 32) for mark in marks]
    return np.asarray(ldmatrix.to_rows(words, transposed).reshape(-1, 16) != 0)


@provide
def shared_taint(L: Lanes, mark: Any, mask: Any) -> Array:
    """Whether any lane of a mask is marked."""
    table = L.table(full(mark, L.n))
    bits = np.packbits(np.ascontiguousarray(table).reshape(-1), bitorder="little").view(np.uint32)
    return np.asarray(L.spread(bits) & mask != 0)
