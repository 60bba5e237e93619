"""How tiled operations cut a layout: the threads' modes first, then what one thread holds."""

from __future__ import annotations

from typing import Any

from tilewright.layout.compose import composition
from tilewright.layout.construct import make_layout
from tilewright.layout.divide import logical_divide, zipped_divide
from tilewright.layout.layout import Layout


def modes(layout: Any) -> list[Any]:
    """The modes of a layout; one for a layout of rank 1 without a tuple."""
    return list(layout) if isinstance(layout.shape, tuple) else [layout]


def thread_values(layout: Layout, tiler: Any, tv: Layout) -> Layout:
    """`layout` cut by `tiler`, its tile seen through `tv`, which maps (thread, value) to an index in the tile.

    Gives (thread, (value, (rests...))).
    """
    tile, rest = modes(zipped_divide(layout, tiler))
    threads, values = modes(composition(tile, tv))
    return make_layout(threads, make_layout(values, rest))


def mma_operand(layout: Layout, tile: Any, atom: Any, tv: Layout, threads: Any) -> Layout:
    """`layout` of two modes of M, N, K as a tiled MMA cuts it.

    `tile` permutes each mode, `atom` are the extents of one instruction, `tv` maps its (thread, value) to an index in
    them, and `threads` are the instructions side by side along both modes.

    Gives ((thread of the instruction, (threads, threads)), (value, (rest, rest, ...))).
    """
    inside, rest = modes(zipped_divide(logical_divide(layout, tile), atom))
    thread, value = modes(composition(inside, tv))
    over, rests = modes(zipped_divide(rest, threads))
    return make_layout(make_layout(thread, over), make_layout(value, rests))


def retile(layout: Layout, tiler: Any, order: Layout) -> Layout:
    """A fragment as another tiled operation sees it: its tile of extents `tiler` through `order`, then the rests."""
    if not isinstance(layout.shape, tuple):
        layout = make_layout(layout)
    tile, rest = modes(zipped_divide(layout, tiler))
    return make_layout(composition(tile, order), *modes(rest)[1:])
