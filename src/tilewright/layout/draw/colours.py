"""Colours that keep dark text readable."""

from __future__ import annotations

from colorsys import hls_to_rgb

from tilewright.layout.draw.cells import Cell


def rgb(cell: Cell) -> tuple[int, int, int]:
    """Red, green, blue of a cell, 0 to 255: its hue, darker with its shade."""
    if cell.hue is None:
        return 255, 255, 255
    red, green, blue = hls_to_rgb(cell.hue % 1.0, 0.93 - 0.23 * cell.shade, 0.72)
    return round(red * 255), round(green * 255), round(blue * 255)


def hexadecimal(cell: Cell) -> str:
    """The colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(cell))
