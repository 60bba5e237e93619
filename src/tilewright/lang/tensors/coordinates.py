"""Coordinates: what is known of them while tracing."""

from __future__ import annotations

from typing import Any

from tilewright.lang.numbers.numeric import Integer
from tilewright.layout import Layout, size
from tilewright.layout.dynamic import DynamicInt


def may_be_inside(coord: Any, shape: Any) -> bool:
    """False when a known index is negative, or not below a known extent."""
    if isinstance(coord, tuple) and isinstance(shape, tuple) and len(coord) == len(shape):
        return all(may_be_inside(part, extent) for part, extent in zip(coord, shape, strict=True))
    index = coord.value if isinstance(coord, Integer) and coord.is_static else coord
    if not isinstance(index, int):
        return True
    extent = size(Layout(shape)) if isinstance(shape, tuple) else shape
    return index >= 0 and (not isinstance(extent, int) or index < extent)


def is_negative(coord: Any) -> bool:
    """True when an index, at any depth, is known to be negative."""
    if isinstance(coord, tuple):
        return any(is_negative(part) for part in coord)
    index = coord.value if isinstance(coord, Integer) and coord.is_static else coord
    return isinstance(index, int) and index < 0


def coord_text(coord: Any) -> str:
    """A coordinate as messages show it."""
    if isinstance(coord, tuple):
        return "(" + ",".join(coord_text(part) for part in coord) + ")"
    if isinstance(coord, Integer) and coord.is_static:
        return str(coord.value)
    return coord.dynamic_text() if isinstance(coord, DynamicInt) else str(coord)
