"""Showing layouts: printed, written as SVG, in notebooks."""

from __future__ import annotations

import os
import sys
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import LayoutError
from tilewright.layout.draw.cells import MOST_CELLS, layout_table, tv_table
from tilewright.layout.draw.latex import latex
from tilewright.layout.draw.svg import Picture, escape, svg
from tilewright.layout.draw.swizzle import bank_table, plain
from tilewright.layout.draw.terminal import terminal
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static, late
from tilewright.layout.query import size


def layout_text(layout: Any, colour: bool = False) -> str:
    """The layout as a table: rows are mode 0, columns the other modes, cells the values.

    Raises:
        LayoutError: the layout is not static, empty, or too large to be read.
    """
    return terminal(layout_table(layout), colour)


def _on_terminal() -> bool:
    """Whether colours can be shown, and are wanted."""
    plain = settings.get("no_color") or settings.get("terminal") == "dumb"
    return sys.stdout is not None and sys.stdout.isatty() and not plain


def print_layout(layout: Any, colour: bool | None = None) -> None:
    """Print the layout as a table, coloured on a terminal; see `layout_text`."""
    print(layout_text(layout, _on_terminal() if colour is None else colour))


def print_layout_tv(layout_tv: Any, tiler: Any, colour: bool | None = None) -> None:
    """Print the tile `tiler` with thread and value at each place."""
    print(terminal(tv_table(layout_tv, tiler), _on_terminal() if colour is None else colour))


def layout_svg(layout: Any) -> Picture:
    """The layout as SVG: each coordinate with its value, shaded from the first value to the last."""
    return svg(layout_table(layout))


def tv_layout_svg(layout_tv: Any, tiler: Any) -> Picture:
    """A tile as SVG: each place with the thread and value that `layout_tv` puts there, one colour a thread.

    `layout_tv` maps (thread, value) to an index into `tiler` (column-major) or to a coordinate of it.

    Raises:
        LayoutError: a layout is not static or too large, or leads outside the tile.
    """
    return svg(tv_table(layout_tv, tiler))


def swizzle_svg(layout: Any, dtype: Any = 16) -> Picture:
    """A swizzled layout as SVG with its banks, beside the same layout without the swizzle.

    `dtype` gives the bits of an element; a bare swizzle is drawn on 8 rows of 64 elements.
    """
    if isinstance(layout, Swizzle):
        layout = ComposedLayout(layout, 0, Layout((8, 64), (64, 1)))
    if isinstance(layout, ComposedLayout):
        return svg(bank_table(plain(layout), dtype), bank_table(layout, dtype))
    return svg(bank_table(layout, dtype))


def render_layout_svg(layout: Any, path: str | os.PathLike[str] = "layout.svg") -> None:
    """Write `layout_svg` to a file."""
    _write(path, layout_svg(layout))


def render_tv_layout_svg(layout_tv: Any, tiler: Any, path: str | os.PathLike[str] = "tv_layout.svg") -> None:
    """Write `tv_layout_svg` to a file."""
    _write(path, tv_layout_svg(layout_tv, tiler))


def render_swizzle_svg(layout: Any, path: str | os.PathLike[str] = "swizzle.svg", dtype: Any = 16) -> None:
    """Write `swizzle_svg` to a file."""
    _write(path, swizzle_svg(layout, dtype))


def _write(path: str | os.PathLike[str], picture: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture)


def print_latex(layout: Any) -> None:
    """Print a LaTeX document that draws the layout."""
    print(latex(layout_table(layout)))


def print_latex_tv(layout_tv: Any, tiler: Any) -> None:
    """Print a LaTeX document that draws the tile with thread and value at each place."""
    print(latex(tv_table(layout_tv, tiler)))


def html(layout: Any) -> str:
    """What notebooks show: the text, and the picture if there is one."""
    shown = f"<code>{escape(str(layout))}</code>"
    if not is_static(layout) or not 0 < size(layout) <= MOST_CELLS:
        return shown
    try:
        return f"<div>{layout_svg(layout)}</div>"
    except LayoutError:
        return shown


late["html"] = html
