"""The functions that make a view of a tensor, by name: what they do to its layout, and where the view begins.

Every view is a layout that is cut, and a coordinate of the cut layout that fixes some of its modes: the modes left open
are the layout of the view, and the index of the coordinate is its first element. The compiler records views by name and
arguments and computes them later; the same call on an identity layout gives the coordinates of a view's elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.base.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from tilewright.layout.dynamic import DynamicInt, Multiple
from tilewright.layout.inttuple import transform_leaf
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static, trusted
from tilewright.layout.modes import (
    append,
    append_ones,
    flatten,
    get,
    group_modes,
    prepend,
    prepend_ones,
    select,
    slice_,
)
from tilewright.layout.partition import mma_operand, retile, thread_values
from tilewright.layout.products import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tiled_product,
    zipped_product,
)
from tilewright.layout.recast import recast_layout
from tilewright.layout.simplify import coalesce, filter_, filter_zeros
from tilewright.layout.tile import inner_coord, outer_coord


class Cut(NamedTuple):
    """A layout and a coordinate of it: None in the coordinate keeps a mode."""

    layout: Any
    coord: Any = None

    @property
    def kept(self) -> Any:
        """The layout of the modes left open."""
        return slice_(self.layout, self.coord)

    @property
    def start(self) -> Any:
        """The index of the first element."""
        return 0 if self.coord is None else self.layout(self.coord)


class _Moved(Cut):
    """A layout that keeps all its modes and begins at a coordinate."""

    @property
    def kept(self) -> Any:
        return self.layout


def _local_tile(layout: Any, tiler: Any, coord: Any) -> Cut:
    tiled = zipped_divide(layout, tiler)
    return Cut(tiled, inner_coord(tiled, coord))


def _local_partition(layout: Any, tiler: Any, coord: Any) -> Cut:
    tiled = zipped_divide(layout, tiler)
    return Cut(tiled, outer_coord(tiled, coord))


def _of_thread(cut: Layout, thread: Any) -> Cut:
    rests = cut.shape[1][1]
    return Cut(cut, (thread, (None, (None,) * len(rests) if isinstance(rests, tuple) else None)))


_CUTS: dict[str, Callable[..., Cut]] = {
    "slice": Cut,
    "local_tile": _local_tile,
    "local_partition": _local_partition,
    "domain_offset": _Moved,
    "partition": lambda layout, tiler, tv, thread: _of_thread(thread_values(layout, tiler, tv), thread),
    "partition_mma": lambda layout, tile, atom, tv, threads, thread: _of_thread(
        mma_operand(layout, tile, atom, tv, threads), thread
    ),
    "retile": lambda layout, tiler, order: Cut(retile(layout, tiler, order)),
}
"""Views whose arguments count coordinates: of a swizzled layout they cut what the swizzle is applied to."""

_REARRANGED: dict[str, Callable[..., Any]] = {
    "append": append,
    "append_ones": append_ones,
    "blocked_product": blocked_product,
    "coalesce": coalesce,
    "composition": composition,
    "filter": filter_,
    "filter_zeros": filter_zeros,
    "flat_divide": flat_divide,
    "flat_product": flat_product,
    "flatten": flatten,
    "get": get,
    "group_modes": group_modes,
    "logical_divide": logical_divide,
    "logical_product": logical_product,
    "prepend": prepend,
    "prepend_ones": prepend_ones,
    "raked_product": raked_product,
    "recast": lambda layout, new_bits, old_bits: recast_layout(new_bits, old_bits, layout),
    "select": select,
    "tiled_divide": tiled_divide,
    "tiled_product": tiled_product,
    "zipped_divide": zipped_divide,
    "zipped_product": zipped_product,
}
"""Views that begin where the tensor does."""

NAMES = frozenset((*_CUTS, *_REARRANGED))


def cut(layout: Any, algebra: str, arguments: tuple[Any, ...]) -> Cut:
    """The view `algebra(layout, *arguments)`. Functions that fix coordinates cut the outer part of a composed layout.

    Raises:
        LayoutError: there is no view of that name, or what the function raises.
    """
    if algebra in _CUTS:
        return _CUTS[algebra](outer_of(layout), *arguments)
    if algebra not in _REARRANGED:
        raise LayoutError(f"no view is called {algebra!r}", hint=f"views: {', '.join(sorted(NAMES))}")
    return Cut(_REARRANGED[algebra](layout, *arguments))


def outer_of(layout: Any) -> Any:
    """What a swizzle is applied to; a plain layout is itself."""
    return layout.outer if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle) else layout


def start_divisor(view: Cut) -> Any:
    """The index of the view's first element as far as it is known without computing it: an int or a `Multiple`."""
    if view.coord is None:
        return 0
    if is_static(view.layout) and _is_static_coord(view.coord):
        return view.start
    return type(view)(_known_layout(view.layout), known(view.coord)).start


def _is_static_coord(coord: Any) -> bool:
    if isinstance(coord, tuple):
        return all(map(_is_static_coord, coord))
    return not isinstance(coord, DynamicInt)


def _known_layout(layout: Any) -> Any:
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, known(layout.offset), _known_layout(layout.outer))
    return trusted(transform_leaf(known, layout.shape), transform_leaf(known, layout.stride))


def known(item: Any) -> Any:
    """A coordinate whose leaves of run time are each a `Multiple`."""
    if isinstance(item, tuple):
        return tuple(map(known, item))
    return Multiple(item.divisibility, item.width) if isinstance(item, DynamicInt) else item
