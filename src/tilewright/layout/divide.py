"""Divides: a layout split into tiles and the rest that says which tile."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.complement import complement, static_rest
from tilewright.layout.compose import assemble, compose, drop_trailing_units, leaves
from tilewright.layout.inttuple import product, text, tuples, wrap
from tilewright.layout.layout import ComposedLayout, Layout, as_layout, require_plain, trusted
from tilewright.layout.linear import Linear
from tilewright.layout.modes import on_tuples
from tilewright.layout.simplify import by_mode, coalesce, int_modes


def logical_divide(target: Any, tiler: Any) -> Any:
    """Each mode of `target` that `tiler` names, as (tile, rest).

    An int or layout tiles the whole domain, a tuple goes mode by mode, `None` and missing modes stay as they are. A
    tile that does not divide a mode is rounded up: the last tile reaches past the end.

    Raises:
        LayoutError: the tile is not injective, leaves gaps, or crosses modes that it does not divide.
    """
    if tiler is None:
        return target
    if isinstance(target, ComposedLayout):
        return target.with_outer(logical_divide(target.outer, tiler))
    require_plain(target, "logical_divide")
    if isinstance(tiler, tuple | list):
        return by_mode(target, tiler, logical_divide, "logical_divide")
    if type(tiler) is Layout:
        tile = tiler
    elif type(tiler) is int and tiler >= 0:
        tile = trusted(tiler, 0 if tiler == 1 else 1)
    else:
        tile = as_layout(tiler)
        if isinstance(tile, ComposedLayout):
            raise LayoutError("a tiler must be a plain layout", values={"tiler": tile})
    split = _divide_ints(target, tile)
    if split is not None:
        return split
    count = product(target.shape)
    rest = complement(tile, count if type(count) is int else coalesce(target).shape)
    return compose(target, trusted((tile.shape, rest.shape), (tile.stride, rest.stride)), past_unit_modes=False)


def _divide_ints(layout: Layout, tile: Layout) -> Layout | None:
    """`logical_divide` where all is static, None where it is not."""
    left, inside = int_modes(layout), int_modes(tile)
    if left is None or inside is None:
        return None
    extents, strides = left
    rest = static_rest(tile, *inside, prod(extents)) or [(1, 0)]
    drop_trailing_units(extents, strides)
    counts = inside[0] + [n for n, _ in rest]
    steps = inside[1] + [d for _, d in rest]
    found = leaves(Linear(extents, strides), counts, steps, layout, tile)
    count = len(inside[0])
    first = assemble(tile.shape, found[:count])
    if len(rest) == 1:
        shape, stride = found[count]
    else:
        shape, stride = zip(*found[count:], strict=True)
    return trusted((first.shape, shape), (first.stride, stride))


def zipped_divide(target: Any, tiler: Any) -> Any:
    """`logical_divide` with all tile modes together in mode 0 and all rests in mode 1.

    A mode that `tiler` leaves out, or names `None`, belongs to the rest whole (`None` takes part in the tile with
    extent 1).
    """
    tiler = tuples(tiler)
    return unzip(_split(target, tiler), tiler)


def _split(layout: Any, tiler: Any) -> Any:
    """`logical_divide` in which `None` leaves (1, mode)."""
    if isinstance(layout, ComposedLayout):
        return layout.with_outer(_split(layout.outer, tiler))
    if tiler is not None and not isinstance(tiler, tuple):
        return logical_divide(layout, tiler)
    require_plain(layout, "zipped_divide")
    if tiler is None:
        return trusted((1, layout.shape), (0, layout.stride))
    return by_mode(layout, tiler, _split, "zipped_divide")


def tiled_divide(target: Any, tiler: Any) -> Any:
    """`zipped_divide` with the rests as modes of their own: `(tile, rest0, rest1, ...)`."""
    return spread(zipped_divide(target, tiler), tile=False)


def flat_divide(target: Any, tiler: Any) -> Any:
    """`zipped_divide` with all modes side by side: `(tile0, tile1, ..., rest0, rest1, ...)`."""
    return spread(zipped_divide(target, tiler), tile=True)


def unzip(split: Any, tiler: Any) -> Any:
    """Modes `((t0,r0),(t1,r1),x)`, split as `tiler` says, as `((t0,t1),(r0,r1,x))`."""
    return on_tuples(split, lambda t: _unzip(t, tiler))


def _unzip(value: Any, tiler: Any) -> tuple[Any, Any]:
    if not isinstance(tiler, tuple):
        if not isinstance(value, tuple) or len(value) != 2:
            raise LayoutError("a tiled mode has two parts", values={"mode": text(value), "tiler": tiler})
        return value
    items = wrap(value)
    pairs = [_unzip(item, part) for item, part in zip(items, tiler, strict=False)]
    return tuple(pair[0] for pair in pairs), (*(pair[1] for pair in pairs), *items[len(tiler) :])


def spread(zipped: Any, *, tile: bool) -> Any:
    """The second mode (with `tile` also the first) opened into modes of their own."""
    return on_tuples(zipped, lambda t: (*(wrap(t[0]) if tile else (t[0],)), *wrap(t[1])))
