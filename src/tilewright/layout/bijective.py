"""Whether a layout's values are the numbers below its size, each once: by reasoning, or tried where it is small."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.dynamic import Leaf, mul, same
from tilewright.layout.inttuple import flat
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static
from tilewright.layout.query import size
from tilewright.layout.simplify import int_modes, is_unit

MOST_POINTS = 1 << 18
"""The most indices that are tried one by one."""


def is_bijective(layout: Any) -> bool:
    """Whether the values are the numbers below the size, each once.

    Composed layouts outside of what swizzles and compositions tell are tried index by index, up to 2^18 of them.

    Raises:
        LayoutError: run-time extents leave it open, or there are too many indices to try.
    """
    if isinstance(layout, ComposedLayout):
        return _is_bijective_composed(layout)
    modes = [
        (step, extent)
        for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True)
        if not is_unit(extent)
    ]
    reach: Leaf = 1
    while modes:
        place = next((i for i, (step, _) in enumerate(modes) if same(step, reach)), None)
        if place is None:
            if is_static(layout):
                return False
            raise LayoutError(f"it is not known which mode has stride {reach}", values={"layout": layout})
        reach = mul(modes.pop(place)[1], reach)
    return True


def _is_bijective_composed(layout: ComposedLayout) -> bool:
    if not is_static(layout):
        raise LayoutError("only static composed layouts can be analysed", values={"layout": layout})
    count = size(layout)
    if count <= MOST_POINTS:
        return sorted(_numbers(layout, count)) == list(range(count))
    known = _known(layout, count)
    if known is None:
        raise LayoutError(
            f"a layout of {count} elements is too large to try each index",
            values={"layout": layout, "most": MOST_POINTS},
            hint="ask for one tile of it",
        )
    return known


def _numbers(layout: ComposedLayout, count: int) -> list[int]:
    values = [layout(index) for index in range(count)]
    return values if all(isinstance(value, int) for value in values) else []


def _known(layout: ComposedLayout, count: int) -> bool | None:
    """What reasoning tells of a large layout."""
    inner, outer = layout.inner, layout.outer
    if isinstance(inner, Swizzle):
        permutes = _permutes(inner, count)
        if permutes and isinstance(outer, Layout):
            return _covers(layout.offset, outer)
        if permutes and layout.offset == 0:
            return is_bijective(outer)
        # Beyond one block: values that reach every number of the whole blocks have no room for a mode that leaves
        # gaps, so they are the numbers below the size, which the swizzle does not keep.
        beyond = count >= inner.block and isinstance(outer, Layout)
        return False if permutes is False and beyond else None
    if isinstance(inner, Layout) and isinstance(outer, Layout) and layout.offset == 0:
        try:
            return is_bijective(composition(inner, outer))
        except LayoutError:
            return None
    return None


def _covers(offset: Any, outer: Layout) -> bool:
    """Whether `offset + outer` takes the numbers below the size, each once; modes may run backwards."""
    modes = int_modes(outer)
    if modes is None or not isinstance(offset, int):
        return False  # values are coordinates
    extents, strides = modes
    least = sum((n - 1) * d for n, d in zip(extents, strides, strict=True) if d < 0)
    forwards = Layout(tuple(extents), tuple(map(abs, strides)))
    return offset + least == 0 and is_bijective(forwards)


def _permutes(swizzle: Swizzle, count: int) -> bool | None:
    """Whether the swizzle maps the numbers below `count` onto themselves; None if that is too much to find out."""
    if swizzle.keeps(count):
        return True
    whole, rest = divmod(count, swizzle.block)
    start = whole * swizzle.block
    run, part = divmod(rest, 1 << swizzle.base)
    if run > MOST_POINTS:
        return None
    if part and swizzle(start + (run << swizzle.base)) != start + (run << swizzle.base):
        return False
    runs = range(start, start + (run << swizzle.base), 1 << swizzle.base)
    return all(swizzle(x) in runs for x in runs)
