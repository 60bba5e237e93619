"""Products: a block repeated as another layout says."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.complement import places_for
from tilewright.layout.compose import compose
from tilewright.layout.construct import make_ordered_layout
from tilewright.layout.divide import spread, unzip
from tilewright.layout.dynamic import ceil_div_leaf, is_multiple
from tilewright.layout.inttuple import product_each, text, tuples
from tilewright.layout.layout import ComposedLayout, Layout, as_layout, is_static, require_plain, trusted
from tilewright.layout.modes import append_ones, select, zip_modes
from tilewright.layout.query import cosize, rank
from tilewright.layout.simplify import by_mode


def logical_product(block: Any, tiler: Any) -> Any:
    """(block, repetitions): disjoint copies of `block`, placed as `tiler` orders them.

    A tuple goes mode by mode; `None` and missing modes stay as they are.

    Raises:
        LayoutError: `block` is not injective, or `tiler` crosses the gaps of `block` without dividing them.
    """
    if tiler is None:
        return block
    if isinstance(block, ComposedLayout):
        return block.with_outer(logical_product(block.outer, tiler))
    require_plain(block, "logical_product")
    if isinstance(tiler, tuple | list):
        return by_mode(block, tiler, logical_product, "logical_product")
    copies = as_layout(tiler)
    if isinstance(copies, ComposedLayout):
        raise LayoutError("a product repeats as a plain layout says", values={"tiler": copies})
    count = cosize(copies)
    if isinstance(count, tuple):
        raise LayoutError("a product repeats at offsets, not at coordinates", values={"tiler": copies})
    placed = compose(places_for(block, count), copies, past_unit_modes=False)
    return trusted((block.shape, placed.shape), (block.stride, placed.stride))


def zipped_product(block: Any, tiler: Any) -> Any:
    """`logical_product` with all blocks in mode 0 and all repetitions in mode 1."""
    tiler = tuples(tiler)
    return unzip(_repeated(block, tiler), tiler)


def _repeated(block: Any, tiler: Any) -> Any:
    """`logical_product` in which `None` leaves (mode, 1)."""
    if isinstance(block, ComposedLayout):
        return block.with_outer(_repeated(block.outer, tiler))
    if tiler is not None and not isinstance(tiler, tuple):
        return logical_product(block, tiler)
    require_plain(block, "zipped_product")
    if tiler is None:
        return trusted((block.shape, 1), (block.stride, 0))
    return by_mode(block, tiler, _repeated, "zipped_product")


def tiled_product(block: Any, tiler: Any) -> Any:
    """`zipped_product` with the repetitions as modes of their own: `(block, rep0, rep1, ...)`."""
    return spread(zipped_product(block, tiler), tile=False)


def flat_product(block: Any, tiler: Any) -> Any:
    """`zipped_product` with all modes side by side: `(block0, block1, ..., rep0, rep1, ...)`."""
    return spread(zipped_product(block, tiler), tile=True)


def blocked_product(block: Any, tiler: Any) -> Any:
    """Blocks laid side by side: mode i is (mode i of `block`, mode i of `tiler`)."""
    return _ranked_product(block, tiler, (0, 1))


def raked_product(block: Any, tiler: Any) -> Any:
    """Blocks interleaved: mode i is (mode i of `tiler`, mode i of `block`)."""
    return _ranked_product(block, tiler, (1, 0))


def _ranked_product(block: Any, tiler: Any, order: tuple[int, int]) -> Any:
    if isinstance(block, ComposedLayout):
        return block.with_outer(_ranked_product(block.outer, tiler, order))
    copies = as_layout(tiler)
    modes = max(rank(block), rank(copies))
    result = logical_product(_with_modes(block, modes), _with_modes(copies, modes))
    return zip_modes(select(result, order))


def _with_modes(layout: Any, count: int) -> Any:
    """`layout` as a tuple of `count` modes: a bare leaf might be split into several."""
    if isinstance(layout, Layout) and not isinstance(layout.shape, tuple):
        layout = trusted((layout.shape,), (layout.stride,))
    return append_ones(layout, count)


def tile_to_shape(atom: Any, trg_shape: Any, order: Any = None) -> Any:
    """`atom` repeated until it has the shape `trg_shape`; `order` says over which modes first (smaller first).

    Mode i of the result is (mode i of `atom`, repetitions). Without `order` from left to right. Where extents are
    known only at run time the repetitions are rounded up.

    Raises:
        LayoutError: a mode of `atom` does not divide that of `trg_shape`.
    """
    if isinstance(atom, ComposedLayout):
        return atom.with_outer(tile_to_shape(atom.outer, trg_shape, order))
    modes = rank(trg_shape)
    padded = append_ones(atom, modes)
    counts = []
    for extent, part in zip(product_each(trg_shape), product_each(padded.shape), strict=True):
        if is_static((extent, part)) and not is_multiple(extent, part):
            raise LayoutError(
                f"tile_to_shape: extent {part} of the block does not divide {extent} of the target",
                values={"block": atom, "target": text(trg_shape)},
            )
        counts.append(ceil_div_leaf(extent, part))
    places = tuple(range(modes)) if order is None else order
    return blocked_product(padded, make_ordered_layout(tuple(counts), places))
