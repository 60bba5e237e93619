"""Swizzled layouts drawn with their banks, beside the same layout without the swizzle."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.analysis import BANK_BYTES, BANKS, bank_conflicts
from tilewright.layout.draw.cells import Cell, Table, grid_size, idle_swizzle, rulers
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle
from tilewright.layout.modes import slice_
from tilewright.layout.query import rank
from tilewright.layout.widths import bits_of


def bank_table(layout: Any, dtype: Any) -> Table:
    """Each coordinate with its offset and bank; below each column the cost when each row's thread reads from it.

    Raises:
        LayoutError: the layout's values are coordinates.
    """
    bits = bits_of(dtype)
    rows, columns = grid_size(layout)
    cells = tuple(tuple(_banked(layout(row + column * rows), bits) for column in range(columns)) for row in range(rows))
    footers = tuple(f"×{_degree(layout, column, bits)}" for column in range(columns)) if rank(layout) == 2 else ()
    legend = (
        f"second number and colour: bank of shared memory in which the element begins (32 banks of 4 bytes, {bits}-bit "
        "elements); below: words that one bank serves when every row is read at this column (×1: no conflict)"
    )
    return Table(str(layout), legend + idle_swizzle(layout), cells, footers, rulers(layout))


def _banked(offset: Any, bits: int) -> Cell:
    if not isinstance(offset, int):
        raise LayoutError("coordinates have no banks", values={"value": offset})
    bank = offset * bits // (8 * BANK_BYTES) % BANKS
    return Cell((str(offset), f"b{bank}"), bank / BANKS, 0.15 + 0.45 * (bank % 2))


def _degree(layout: Any, column: int, bits: int) -> int:
    """The degree of conflict when thread i reads element (i, column)."""
    mode: Any = slice_(layout, (None, column))
    if isinstance(mode, Layout):
        mode = ComposedLayout(Swizzle(0, 0, 0), layout((0, column)), mode)
    return bank_conflicts(mode, bits).degree


def plain(layout: Any) -> Any:
    """The layout without its swizzle."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout
