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
        problem = _problem(layout, extent, step, reach, cover)
        if problem and not (cover and type(target) is int and target < reach_of(modes)):
            raise problem
        if problem:
            return _least_cover(layout, modes, target, problem)
        shape.append(floor_div(step, reach))
        stride.append(reach)
        reach = mul(extent, step)
    rest = as_shape(ceil_div(target, reach)) if isinstance(target, tuple) else ceil_div_leaf(target, reach)
    return _packed([*shape, rest], [*stride, compact_col_major(rest, reach)])


def _packed(shape: list[IntTuple], stride: list[IntTuple]) -> Layout:
    return packed(coalesced_modes(trusted(tuple(shape), tuple(stride))))


def _order(step: Leaf) -> tuple[int, int]:
    if isinstance(step, ScaledBasis):
        raise LayoutError("complement: basis strides have no complement", values={"stride": step})
    return (0, step) if type(step) is int else (1, 0)


def _problem(layout: Layout, extent: Leaf, step: Leaf, reach: Leaf, cover: bool) -> LayoutError | None:
    """What keeps this mode from following the smaller ones, which end at `reach`."""
    mode = f"stride {step} of mode {extent}:{step}"
    if type(step) is int and type(reach) is int:
        if step < reach:
            why = "it is negative" if step < 0 else f"smaller modes already reach {reach}"
            return LayoutError(f"complement: {mode} clashes: {why}", values={"layout": layout})
        if cover and step % reach:
            return LayoutError(
                f"complement: {mode} is not a multiple of {reach}, where smaller modes end",
                values={"layout": layout, "gap": f"{step // reach * reach} to {step - 1}"},
            )
    elif not is_multiple(step, reach):
        require(Fact("multiple", step, reach), "complement", layout=layout)
    return None


def reach_of(modes: list[tuple[Leaf, Leaf]]) -> int:
    """The largest stride, beyond which nothing is decided by the modes; 0 if it is not known."""
    return max((step if type(step) is int else 0 for _, step in modes), default=0) + 1


def _least_cover(layout: Layout, modes: list[tuple[Leaf, Leaf]], target: int, problem: LayoutError) -> Layout:
    """R for a target so small that the modes which clash begin at or beyond its end."""
    shape: list[IntTuple] = []
    stride: list[IntTuple] = []
    reach = 1
    for extent, step in modes:
        if step >= target:
            break
        if step % reach or type(extent) is not int:
            raise problem
        shape.append(step // reach)
        stride.append(reach)
        reach = extent * step
    rest = _packed([*shape, -(-target // reach)], [*stride, reach])
    if not _is_injective([*modes, *coalesced_modes(rest)]):
        raise problem
    return rest


def _is_injective(modes: list[tuple[Leaf, Leaf]]) -> bool:
    """Whether all sums differ; tried point by point, so False for what is too large to try."""
    count = 1
    for extent, _ in modes:
        count *= extent
    if count > _SEARCH_LIMIT:
        return False
    sums = {0}
    for extent, step in modes:
        sums = {base + i * step for base in sums for i in range(extent)}
    return len(sums) == count


_SEARCH_LIMIT = 1 << 16
