"""The complement: what to add to a layout so that the two together reach every index once."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import Leaf, ceil_div_leaf, floor_div, is_multiple, mul
from tilewright.layout.facts import Fact, require
from tilewright.layout.inttuple import IntTuple, ceil_div, compact_col_major, product
from tilewright.layout.layout import Layout, is_static, trusted
from tilewright.layout.query import cosize, shape_of
from tilewright.layout.simplify import as_shape, coalesced_modes, filter_, packed


def complement(layout: Any, cotarget: Any = None) -> Layout:
    """The layout `R`, ordered by stride, such that `layout(i) + R(j)` reach each index below `cotarget`, none twice.

    `cotarget` is a size, a shape or a layout; without it, the cosize of `layout`. Modes of stride 0 count once.
    If `layout` does not divide `cotarget`, R reaches past it.

    Raises:
        LayoutError: `layout` is not injective, or leaves gaps below `cotarget` that no layout can fill.
    """
    return disjoint_rest(Layout(layout) if isinstance(layout, int) else layout, cotarget, cover=True)


def disjoint_rest(layout: Layout, cotarget: Any, *, cover: bool) -> Layout:
    """`complement`; without `cover` gaps may stay, and R only keeps the copies of `layout` apart."""
    filtered = filter_(layout)
    target = cosize(filtered) if cotarget is None else shape_of(cotarget)
    if is_static(target):
        target = product(target)
    modes = sorted(coalesced_modes(filtered), key=lambda mode: _order(mode[1]))
    if len(modes) == 1 and type(modes[0][1]) is int and modes[0][1] == 0:
        return packed(coalesced_modes(Layout(target)))
    shape: list[IntTuple] = []
    stride: list[IntTuple] = []
    reach: Leaf = 1
    for extent, step in modes:
        _require_beyond(layout, extent, step, reach, target if cover else 1)
        shape.append(floor_div(step, reach))
        stride.append(reach)
        reach = mul(extent, step)
    rest = as_shape(ceil_div(target, reach)) if isinstance(target, tuple) else ceil_div_leaf(target, reach)
    whole = trusted((*shape, rest), (*stride, compact_col_major(rest, reach)))
    return packed(coalesced_modes(whole))


def _order(step: Leaf) -> tuple[int, int]:
    if isinstance(step, ScaledBasis):
        raise LayoutError("complement: basis strides have no complement", values={"stride": step})
    return (0, step) if type(step) is int else (1, 0)


def _require_beyond(layout: Layout, extent: Leaf, step: Leaf, reach: Leaf, target: IntTuple) -> None:
    """The next mode must step over all that lies below it, in whole multiples unless nothing there is wanted."""
    if type(step) is int and type(reach) is int:
        if step < reach:
            problem = "it is negative" if step < 0 else f"smaller modes already reach {reach}"
            raise LayoutError(
                f"complement: stride {step} of mode {extent}:{step} clashes: {problem}", values={"layout": layout}
            )
        filled = step // reach * reach
        if step % reach and not (type(target) is int and target <= filled):
            raise LayoutError(
                f"complement: stride {step} of mode {extent}:{step} is not a multiple of {reach}, "
                f"where smaller modes end",
                values={"layout": layout, "gap": f"{filled} to {step - 1}"},
            )
        return
    if not is_multiple(step, reach):
        require(Fact("multiple", step, reach), "complement", layout=layout)
