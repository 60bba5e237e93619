"""The complement: what to add to a layout so that the two together reach every index once."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.assumptions import Fact, require
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import Leaf, ceil_div_leaf, exact_div, is_multiple, mul
from tilewright.layout.inttuple import IntTuple, flat, product
from tilewright.layout.layout import Layout, is_static, require_plain, trusted
from tilewright.layout.query import cosize, shape_of
from tilewright.layout.simplify import coalesced_modes, filter_, int_modes, is_unit, is_zero, packed


def complement(input: Any, cotarget: Any = None) -> Layout:
    """The layout `R`, ordered by stride, such that `input(i) + R(j)` reach each index below `cotarget`, none twice.

    `cotarget` is a size, a shape or a layout; without it, the cosize of `input`. Modes of stride 0 count once.
    If `input` does not divide `cotarget`, R reaches past it.

    Raises:
        LayoutError: `input` is not injective, or leaves gaps below `cotarget` that no layout can fill.
    """
    if isinstance(input, int):
        input = Layout(input)
    require_plain(input, "complement")
    modes = int_modes(input) if type(cotarget) is int else None
    if modes is not None:
        return _static_complement(input, *modes, cotarget)
    return _complement(input, cotarget)


def _static_complement(layout: Layout, extents: list[int], strides: list[int], target: int) -> Layout:
    """As `_complement`, for ints alone."""
    return packed(static_rest(layout, extents, strides, target) or [(1, 0)])


def static_rest(layout: Layout, extents: list[int], strides: list[int], target: int) -> list[tuple[Leaf, Leaf]]:
    """The modes of the complement of these modes, which `layout` has; none for `1:0`."""
    modes = [(d, n) for n, d in zip(extents, strides, strict=True) if n != 1 and d != 0]
    _require_elements(layout, extents)
    modes.sort()
    rest: list[tuple[Leaf, Leaf]] = []
    reach = 1
    for step, extent in modes:
        if step % reach or step < reach:
            problem = _problem(layout, extent, step, reach, gapless=True)
            if problem and target <= modes[-1][0]:
                cover = _least_cover([(n, d) for d, n in modes], target, problem)
                return [mode for mode in coalesced_modes(cover) if mode[0] != 1]
            if problem:
                raise problem
        if step != reach:
            rest.append((step // reach, reach))
        reach = extent * step
    if target > reach or target == 0:
        rest.append((-(-target // reach), reach))
    return rest


def _require_elements(layout: Layout, extents: list[Leaf]) -> None:
    if any(type(extent) is int and extent == 0 for extent in extents):
        raise LayoutError("complement: the layout is empty, and copies of it cover nothing", values={"layout": layout})


def _complement(layout: Layout, cotarget: Any) -> Layout:
    _require_elements(layout, flat(layout.shape))
    filtered = filter_(layout)
    target = cosize(filtered) if cotarget is None else shape_of(cotarget)
    if is_static(target):
        target = product(target)
    modes = _sorted_modes(filtered)
    if is_zero(modes[0][1]):
        return packed(coalesced_modes(Layout(target)))
    gaps: list[tuple[Leaf, Leaf]] = []
    reach: Leaf = 1
    for extent, step in modes:
        problem = _problem(layout, extent, step, reach, gapless=True)
        if problem and type(target) is int and target <= max(d for _, d in modes if type(d) is int):
            return _least_cover(modes, target, problem)
        if problem:
            raise problem
        gaps.append((exact_div(step, reach), reach))
        reach = mul(extent, step)
    copies = _copies(target, reach) if isinstance(target, tuple) else None
    if copies is not None:
        return _joined(gaps, *copies)
    return _joined(gaps, ceil_div_leaf(product(target), reach), reach)


def _copies(target: IntTuple, reach: Leaf) -> tuple[IntTuple, IntTuple] | None:
    """Extents and strides of what covers `target` in steps of `reach`; None if it is not known to split there."""
    modes: list[tuple[Leaf, Leaf]] = []
    below: Leaf = 1
    inside = reach  # what is left of it in the modes to come
    *extents, last = flat(target)
    for extent in extents:
        if modes:
            modes.append((extent, below))
        elif is_multiple(extent, inside):
            part = exact_div(extent, inside)
            inside = 1
            if not is_unit(part):
                modes.append((part, reach))
        elif is_multiple(inside, extent):
            inside = exact_div(inside, extent)
        else:
            return None
        below = mul(extent, below)
    modes.append((last, below) if modes else (ceil_div_leaf(last, inside), reach))
    rest = packed([mode for mode in modes if not is_unit(mode[0])] or [(1, 0)])
    return rest.shape, rest.stride


def places_for(block: Layout, count: Leaf) -> Layout:
    """The layout of the indices, in order, at which at least `count` copies of `block` do not overlap.

    Raises:
        LayoutError: `block` overlaps or interleaves with itself.
    """
    modes = _sorted_modes(filter_(block))
    if is_zero(modes[0][1]):
        return trusted(count, 1)
    if any(type(extent) is int and extent == 0 for extent, _ in modes):
        return trusted(count, 0)  # nothing, wherever it is put
    gaps: list[tuple[Leaf, Leaf]] = []
    reach: Leaf = 1
    inside: Leaf = 1
    for extent, step in modes:
        problem = _problem(block, extent, step, reach, gapless=False)
        if problem:
            raise problem
        gaps.append((exact_div(step, reach), reach))
        inside = mul(gaps[-1][0], inside)
        reach = mul(extent, step)
    rest = ceil_div_leaf(count, inside)
    target = ceil_div_leaf(mul(product(block.shape), count), reach)  # CuTe's bound: more where strides are 0
    return _joined(gaps, max(rest, target) if type(rest) is type(target) is int else rest, reach)


def _sorted_modes(filtered: Layout) -> list[tuple[Leaf, Leaf]]:
    return sorted(coalesced_modes(filtered), key=lambda mode: _order(mode[1]))


def _joined(gaps: list[tuple[Leaf, Leaf]], rest: IntTuple, stride: IntTuple) -> Layout:
    shape = (*(extent for extent, _ in gaps), rest)
    return packed(coalesced_modes(trusted(shape, (*(step for _, step in gaps), stride))))


def _order(step: Leaf) -> tuple[int, int]:
    if isinstance(step, ScaledBasis):
        raise LayoutError("complement: basis strides have no complement", values={"stride": step})
    return (0, step) if type(step) is int else (1, 0)


def _problem(layout: Layout, extent: Leaf, step: Leaf, reach: Leaf, *, gapless: bool) -> LayoutError | None:
    """What keeps this mode from following the smaller ones, which end at `reach`."""
    mode = f"stride {step} of mode {extent}:{step}"
    if type(step) is int and type(reach) is int:
        if step < reach:
            why = "it is negative" if step < 0 else f"smaller modes already reach {reach}"
            return LayoutError(f"complement: {mode} clashes: {why}", values={"layout": layout})
        if gapless and step % reach:
            return LayoutError(
                f"complement: {mode} is not a multiple of {reach}, where smaller modes end",
                values={"layout": layout, "gap": f"{step // reach * reach} to {step - 1}"},
            )
    elif not is_multiple(step, reach):
        require(Fact("multiple", step, reach), "complement", layout=layout)
    return None


def _least_cover(modes: list[tuple[Leaf, Leaf]], target: int, problem: LayoutError) -> Layout:
    """R for a target so small that the modes which clash begin at or beyond its end."""
    gaps: list[tuple[Leaf, Leaf]] = []
    reach = 1
    for extent, step in modes:
        if type(extent) is not int or type(step) is not int or (step < target and (step % reach or step < reach)):
            raise problem
        if step >= target:
            break
        gaps.append((step // reach, reach))
        reach = extent * step
    rest = _joined(gaps, -(-target // reach), reach)
    if not _is_injective([*modes, *coalesced_modes(rest)]):
        raise problem
    return rest


def _is_injective(modes: list[tuple[Leaf, Leaf]]) -> bool:
    """Whether all sums differ; tried point by point, so False for what is too large to try."""
    count = 1
    for extent, step in modes:
        if type(extent) is not int or type(step) is not int:
            return False
        count *= extent
    if count > _SEARCH_LIMIT:
        return False
    sums = {0}
    for extent, step in modes:
        sums = {base + i * step for base in sums for i in range(extent)}
    return len(sums) == count


_SEARCH_LIMIT = 1 << 16
