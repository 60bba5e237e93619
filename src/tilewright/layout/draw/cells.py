"""Layouts as tables of cells: what every drawing, in the terminal or as SVG or LaTeX, is made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.base.errors import LayoutError
from tilewright.layout.coordinates import crd2idx
from tilewright.layout.inttuple import product, text, wrap
from tilewright.layout.layout import ComposedLayout, Swizzle, is_static
from tilewright.layout.query import rank, size

MOST_CELLS = 64 * 128
"""Larger tables are refused: nobody could read them, and a notebook that holds one is slow."""
SMALLER = "draw a part of it, such as cute.composition(layout, cute.make_layout((8, 64)))"


class Cell(NamedTuple):
    """One place: the lines of text in it, and where its colour lies, from 0 to 1.

    `shade` orders cells of one colour from light (0) to dark (1).
    """

    lines: tuple[str, ...]
    hue: float | None
    shade: float = 0.0


class Table(NamedTuple):
    """A grid of cells with a title and a sentence that says what the colours mean.

    After each `rulers[0]` rows and `rulers[1]` columns stands a border, where a tile or a mode ends; 0 for none.
    Rows are numbered where they have no `names`.
    """

    title: str
    legend: str
    cells: tuple[tuple[Cell | None, ...], ...]
    footers: tuple[str, ...] = ()
    rulers: tuple[int, int] = (0, 0)
    names: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.cells)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.cells[0]) if self.cells else 0


def grid_size(value: Any) -> tuple[int, int]:
    """Rows and columns of a drawing: mode 0, and all other modes together. A layout of rank 1 is one row.

    Raises:
        LayoutError: the layout is not static, empty, or too large to be read.
    """
    if not is_static(value):
        raise LayoutError("only static layouts can be drawn", values={"layout": value})
    rows = size(value, 0) if rank(value) > 1 else 1
    columns = size(value) // rows if rows else 0
    if rows * columns == 0:
        raise LayoutError("the layout has no elements to draw", values={"layout": value})
    if rows * columns > MOST_CELLS:
        raise LayoutError(
            "the layout is too large to draw", values={"layout": value, "cells": rows * columns}, hint=SMALLER
        )
    return rows, columns


def layout_table(layout: Any) -> Table:
    """Each coordinate with its value; the shade runs from the smallest value to the largest."""
    rows, columns = grid_size(layout)
    values = [[layout(row + column * rows) for column in range(columns)] for row in range(rows)]
    shade = _shades(values)
    cells = tuple(tuple(Cell((text(value),), 0.58, shade(value)) for value in line) for line in values)
    legend = "colour: from the first value (light) to the last (dark)" + idle_swizzle(layout)
    return Table(str(layout), legend, cells, rulers=rulers(layout))


def rulers(layout: Any) -> tuple[int, int]:
    """The rows and columns after which an inner mode ends; 0 where there is one mode only."""
    modes = wrap(layout.shape)
    rows, columns = (modes[0], modes[1:]) if len(modes) > 1 else (1, modes)
    return _inner(rows), _inner(columns[0] if len(columns) == 1 else columns)


def _inner(shape: Any) -> int:
    """The extent of the first mode of several."""
    return product(shape[0]) if isinstance(shape, tuple) and len(shape) > 1 else 0


def idle_swizzle(layout: Any) -> str:
    """A remark about a swizzle that moves none of the layout's values; empty for one that does."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle) or not layout.inner.bits:
        return ""
    swizzle, moved = layout.inner, [layout.outer(i) for i in range(size(layout))]
    offset = layout.offset
    if not isinstance(offset, int) or any(not isinstance(value, int) for value in moved):
        return ""
    return (
        ""
        if any(swizzle(offset + value) != offset + value for value in moved)
        else "; the swizzle changes nothing here"
    )


def _shades(values: list[list[Any]]) -> Callable[[Any], float]:
    """From a value to its place among all values, between 0 and 1."""
    order = sorted({value for line in values for value in line})
    place = {value: index / max(len(order) - 1, 1) for index, value in enumerate(order)}
    return lambda value: place[value]


def tv_table(layout_tv: Any, tiler: Any) -> Table:
    """The tile, each place with its thread and value; one hue for each thread, darker with the value's number.

    `layout_tv` maps (thread, value) to an index into the tile (column-major), or to a coordinate of it; `tiler` is
    the tile's shape, of rank 1 or 2.

    Raises:
        LayoutError: a place lies outside the tile, or belongs to more threads than can be shown.
    """
    tiler = getattr(tiler, "shape", tiler)
    extents = [product(mode) for mode in wrap(tiler)]
    if not extents:
        raise LayoutError("a tile has at least one mode", values={"tiler": text(tiler)})
    rows, columns = (1, extents[0]) if len(extents) == 1 else (extents[0], product(tuple(extents[1:])))
    threads, values = grid_size(layout_tv)
    if rank(layout_tv) < 2:
        threads, values = values, 1
    if rows * columns > MOST_CELLS:
        raise LayoutError("the tile is too large to draw", values={"tiler": text(tiler)}, hint="draw a smaller tile")
    table: list[list[list[tuple[int, int]]]] = [[[] for _ in range(columns)] for _ in range(rows)]
    for thread in range(threads):
        for value in range(values):
            place = layout_tv(thread + value * threads)
            index = crd2idx(place, tiler) if isinstance(place, tuple) else place
            if not 0 <= index < rows * columns:
                raise LayoutError(
                    "the layout leads outside the tile",
                    values={"layout": layout_tv, "tiler": text(tiler), "thread": thread, "value": value},
                )
            table[index % rows][index // rows].append((thread, value))
    cells = tuple(tuple(_owned(owners, threads, values) for owners in line) for line in table)
    title = f"{layout_tv} on {text(tiler)}"
    return Table(title, "T: thread, V: value; colour: one for each thread, darker with each value", cells)


def _owned(owners: list[tuple[int, int]], threads: int, values: int) -> Cell | None:
    if not owners:
        return None
    thread, value = owners[0]
    more = f"+{len(owners) - 1}" if len(owners) > 1 else ""
    hue = (thread % 8) / 8 + (thread // 8 % 4) / 32
    return Cell((f"T{thread}", f"V{value}{more}"), hue, value / max(values - 1, 1) if values > 1 else 0.0)
