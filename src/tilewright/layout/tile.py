"""One tile of a layout, or one thread's share of it, and thread-value layouts."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.divide import tiled_divide, zipped_divide
from tilewright.layout.dynamic import Leaf
from tilewright.layout.inttuple import product_each, text, tuples, wrap
from tilewright.layout.inverse import right_inverse
from tilewright.layout.layout import ComposedLayout, Layout, as_layout
from tilewright.layout.modes import append, dice, slice_, slice_and_offset
from tilewright.layout.products import raked_product, tile_to_shape
from tilewright.layout.query import rank, size


def inner_coord(tiled: Any, coord: Any) -> tuple[Any, Any]:
    """The coordinate of a zipped layout that keeps the tile modes open and fixes the rest at `coord`.

    A short tuple leaves further rest modes open.

    Raises:
        LayoutError: `coord` has more modes than the rest.
    """
    return (None,) * rank(tiled, 0) if _is_tuple(tiled, 0) else None, _padded(coord, tiled, 1)


def outer_coord(tiled: Any, coord: Any) -> tuple[Any, Any]:
    """The coordinate of a zipped layout that fixes the tile modes at `coord` and keeps the rest open."""
    return _padded(coord, tiled, 0), (None,) * rank(tiled, 1) if _is_tuple(tiled, 1) else None


def _is_tuple(tiled: Any, mode: int) -> bool:
    return isinstance(tiled.shape[mode], tuple)


def _padded(coord: Any, tiled: Any, mode: int) -> Any:
    if not isinstance(coord, tuple):
        return coord
    modes = rank(tiled, mode)
    if len(coord) > modes:
        raise LayoutError("the coordinate has too many modes", values={"coord": text(coord), "layout": tiled})
    return append(coord, None, modes) if len(coord) < modes else coord


def inner_partition(layout: Any, tiler: Any, coord: Any) -> Any:
    """The tile at `coord` of `layout` cut by `tiler`; open modes of `coord` stay, behind the tile."""
    tiled = zipped_divide(layout, tiler)
    return slice_(tiled, inner_coord(tiled, tuples(coord)))


def outer_partition(layout: Any, tiler: Any, coord: Any) -> Any:
    """The element at `coord` of every tile of `layout` cut by `tiler`."""
    tiled = zipped_divide(layout, tiler)
    return slice_(tiled, outer_coord(tiled, tuples(coord)))


def local_tile(input: Any, tiler: Any, coord: Any, proj: Any = None) -> Any:
    """The tile at `coord` of `input` cut by `tiler`, without its offset.

    `proj` picks the modes of tiler and coordinate that `input` has: those where it is not `None`. A coordinate may be
    longer: its further modes are those of `input` beyond the tile.

    Raises:
        LayoutError: as `zipped_divide`, or `coord` does not fit.
    """
    return local_tile_and_offset(input, tiler, coord, proj)[0]


def local_tile_and_offset(input: Any, tiler: Any, coord: Any, proj: Any = None) -> tuple[Any, Any]:
    """`local_tile`, and the index at which the tile begins."""
    tiler, coord, proj = tuples(tiler), tuples(coord), tuples(proj)
    if proj is not None:
        tiler, coord = dice(tiler, proj), picked(coord, proj)
    tiled = zipped_divide(input, tiler)
    return slice_and_offset(inner_coord(tiled, coord), tiled)


def picked(coord: Any, proj: Any) -> Any:
    """The modes of a coordinate that `proj` picks, and those beyond it, which are of modes that have no tile."""
    if isinstance(coord, tuple) and isinstance(proj, tuple) and len(coord) > len(proj):
        proj = (*proj, *(1,) * (len(coord) - len(proj)))
    return dice(coord, proj)


def local_partition(target: Any, tiler: Any, index: Leaf, proj: Any = None) -> Any:
    """What thread `index` of the layout `tiler` gets when they cover `target` again and again, without its offset.

    Raises:
        LayoutError: as `zipped_divide`, or no coordinate of `tiler` can be read off an index.
    """
    return local_partition_and_offset(target, tiler, index, proj)[0]


def local_partition_and_offset(layout: Any, threads: Any, index: Leaf, proj: Any = None) -> tuple[Any, Any]:
    """`local_partition`, and the index of the thread's first element."""
    tiler, coord = partition_tiler(threads, index, proj)
    tiled = zipped_divide(layout, tiler)
    return slice_and_offset(outer_coord(tiled, coord), tiled)


def partition_tiler(threads: Any, index: Leaf, proj: Any = None) -> tuple[Any, Any]:
    """The tile that the layout `threads` covers, and the coordinate of thread `index` in it, both by `proj`."""
    grid = as_layout(threads)
    tiler, coord = product_each(grid.shape), wrap(grid.get_flat_coord(index))
    proj = tuples(proj)
    if isinstance(proj, tuple):
        tiler, coord = dice(tiler, proj), dice(coord, proj)
    return tiler, coord


def domain_offset(coord: Any, layout: Any) -> tuple[Any, Any]:
    """The layout, and the index of `coord` by which to move what it addresses.

    A composed layout takes the index into its own offset, and the second part is 0.
    """
    if isinstance(layout, ComposedLayout):
        return layout.with_outer(layout.outer, layout.outer(coord)), 0
    return layout, layout(coord)


def make_layout_tv(thr_layout: Any, val_layout: Any) -> tuple[tuple[Leaf, ...], Layout]:
    """(tiler, layout): the tile that threads, each with its values, cover, and (thread, value) -> index in it.

    Thread and value layouts map coordinates of the tile to thread and value numbers; each thread's values
    lie together.

    Raises:
        LayoutError: a layout is not injective.
    """
    tile = raked_product(as_layout(thr_layout), as_layout(val_layout))
    layout_tv = composition(right_inverse(tile), Layout((size(thr_layout), size(val_layout))))
    return product_each(tile.shape), layout_tv


def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None) -> Any:
    """`atom`, a layout of M and N (or K), repeated to a tile of MMAs: `((MMA_M,MMA_N), M_MMAs, N_MMAs, ...)`.

    `mma_tile_shape` has that form: the extents of one MMA, the counts of MMAs, then further modes such as stages.

    Raises:
        LayoutError: the shape is not of that form, or the atom does not divide it.
    """
    if not isinstance(mma_tile_shape, tuple) or len(mma_tile_shape) < 3 or len(wrap(mma_tile_shape[0])) != 2:
        raise LayoutError(
            "an MMA tile shape is ((MMA_M,MMA_N),M_MMAs,N_MMAs,...)", values={"shape": text(mma_tile_shape)}
        )
    (mma_m, mma_n), count_m, count_n, *further = mma_tile_shape
    tiled = tile_to_shape(atom, ((mma_m, count_m), (mma_n, count_n), *further), order)
    return tiled_divide(tiled, product_each(mma_tile_shape[0]))
