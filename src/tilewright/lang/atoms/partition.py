"""How a tiled operation cuts tensors and layouts into the parts of its threads."""

from __future__ import annotations

from typing import Any

from tilewright import layout as algebra
from tilewright.base import notices
from tilewright.lang import trace
from tilewright.lang.arch import is_thread_index
from tilewright.lang.locations import user_location
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout
from tilewright.layout.partition import modes
from tilewright.layout.views import cut

__all__ = ["joined", "modes", "part_of", "warn_of_few_threads"]


def joined(*parts: Layout) -> Layout:
    """The layout whose modes are `parts`."""
    return algebra.make_layout(*parts)


def part_of(target: Any, view: str, *arguments: Any) -> Any:
    """The part of a thread, `view(target, *arguments)`, of a tensor or a layout."""
    if isinstance(target, Tensor):
        return target.view(view, *arguments)
    kept = cut(target, view, arguments).kept
    return kept if isinstance(target, Layout) else target.with_outer(kept)


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
    notices.warn(message, place, stacklevel=3)
