"""How a tiled operation cuts a layout: thread modes first, then what a thread holds.

The functions here take plain layouts; `on_outer` applies them to composed ones, `sliced` to tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tilewright import layout as algebra
from tilewright.lang import trace
from tilewright.lang.arch import is_thread_index
from tilewright.lang.locations import user_location
from tilewright.lang.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout


def on_outer(function: Callable[[Layout], Layout], layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """`function` of the layout that gives the domain."""
    return (
        layout.with_outer(on_outer(function, layout.outer)) if isinstance(layout, ComposedLayout) else function(layout)
    )


def modes(layout: Layout) -> list[Layout]:
    """The modes of a layout; one for a layout of rank 1 without a tuple."""
    return list(layout) if isinstance(layout.shape, tuple) else [layout]


def joined(*parts: Layout) -> Layout:
    """The layout whose modes are `parts`."""
    return algebra.make_layout(*parts)


def sliced(target: Any, tiled: Callable[[Layout], Layout], thread: Any) -> Any:
    """The part of `thread` of a tensor (or layout), cut by `tiled` into (thread, (value, (rests...)))."""
    layout = target.layout if isinstance(target, Tensor) else target
    cut = on_outer(tiled, layout)
    rests = cut.shape[1][1]
    open_rests = (None,) * len(rests) if isinstance(rests, tuple) else None
    coord = (thread, (None, open_rests))
    if isinstance(target, Tensor):
        return Tensor(target.iterator, cut, target._element_type).slice(coord)
    return algebra.slice_(cut, coord)


def warn_of_few_threads(what: str, threads: int, thread: Any) -> None:
    """Warn where the threads of a block, as it is launched, are fewer than those that share the tile."""
    block = trace.current().block if trace.tracing() else ()
    if not block or not isinstance(block[0], int) or block[0] >= threads or not is_thread_index(thread):
        return
    message = (
        f"the {what} shares its tile among {threads} threads, but the block has {block[0]} along x: the parts of the"
        " others are left out"
    )
    place = user_location(3)
    if place is None:
        warnings.warn(message, stacklevel=3)
    else:
        warnings.warn_explicit(message, UserWarning, place.file, place.line)


def thread_values(layout: Layout, tiler: Any, tv: Layout) -> Layout:
    """`layout` cut by `tiler`, its tile seen through `tv`, which maps (thread, value) to an index in the tile.

    Gives (thread, (value, (rests...))).
    """
    tile, rest = modes(algebra.zipped_divide(layout, tiler))
    threads, values = modes(algebra.composition(tile, tv))
    return joined(threads, joined(values, rest))
