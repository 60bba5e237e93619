"""How a tiled operation cuts tensors and layouts into the parts of its threads."""

from __future__ import annotations

from typing import Any

from tilewright import layout as algebra
from tilewright.lang.tensor import Tensor
from tilewright.layout import Layout
from tilewright.layout.partition import modes
from tilewright.layout.views import cut

__all__ = ["joined", "modes", "part_of"]


def joined(*parts: Layout) -> Layout:
    """The layout whose modes are `parts`."""
    return algebra.make_layout(*parts)


def part_of(target: Any, view: str, *arguments: Any) -> Any:
    """The part of a thread, `view(target, *arguments)`, of a tensor or a layout."""
    if isinstance(target, Tensor):
        return target.view(view, *arguments)
    kept = cut(target, view, arguments).kept
    return kept if isinstance(target, Layout) else target.with_outer(kept)
