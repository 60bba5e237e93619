"""The same memory as elements of another size."""

from __future__ import annotations

from math import gcd
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.assumptions import Fact, require
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import Leaf, ceil_div_leaf, divisibility, floor_div, mul
from tilewright.layout.inttuple import flat, transform_leaf, unflatten
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, trusted
from tilewright.layout.simplify import is_zero


def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any) -> Any:
    """`src_layout` of elements of `old_type_bits` bits, as one of elements of `new_type_bits` over the same memory.

    Raises:
        LayoutError: the elements do not fill whole new ones, or do not lie side by side.
    """
    if new_type_bits < 1 or old_type_bits < 1:
        raise LayoutError(
            "element sizes must be positive", values={"new bits": new_type_bits, "old bits": old_type_bits}
        )
    common = gcd(new_type_bits, old_type_bits)
    up, down = new_type_bits // common, old_type_bits // common
    if down > 1:
        src_layout = downcast(src_layout, down)
    return upcast(src_layout, up) if up > 1 else src_layout


def upcast(layout: Any, count: int) -> Any:
    """`count` elements taken as one: extents of small strides shrink, other strides are divided by `count`.

    Raises:
        LayoutError: the elements do not fill whole groups of `count`.
    """
    if isinstance(layout, Swizzle):
        return _upcast_swizzle(layout, count)
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, count, up=True)
    if count == 1:
        return layout
    _require_whole_groups(layout, count)
    pairs = transform_leaf(lambda extent, step: _Pair(*_upcast_leaf(extent, step, count)), layout.shape, layout.stride)
    return trusted(transform_leaf(lambda p: p.extent, pairs), transform_leaf(lambda p: p.step, pairs))


class _Pair:
    """Extent and stride of one leaf."""

    __slots__ = ("extent", "step")

    def __init__(self, extent: Leaf, step: Leaf) -> None:
        self.extent = extent
        self.step = step


def _upcast_leaf(extent: Leaf, step: Leaf, count: int) -> tuple[Leaf, Leaf]:
    if is_zero(step):
        return extent, step
    if isinstance(step, ScaledBasis):
        raise LayoutError("coordinates cannot be recast", values={"stride": step})
    if type(step) is not int:
        return extent, floor_div(step, count)
    sign = -1 if step < 0 else 1
    inside = -(-count // abs(step))
    return ceil_div_leaf(extent, inside), sign * -(-abs(step) // count)


def _require_whole_groups(layout: Layout, count: int) -> None:
    """The modes of stride below `count` must fill aligned groups, the others step over whole groups."""
    reach = 1
    small: list[tuple[int, Leaf]] = []
    for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True):
        if is_zero(step) or (type(extent) is int and extent == 1):
            continue
        if isinstance(step, ScaledBasis):
            raise LayoutError("coordinates cannot be recast", values={"layout": layout})
        if type(step) is not int:
            if divisibility(step) % count:
                require(Fact("multiple", step, count), "upcast", layout=layout)
        elif abs(step) >= count:
            if step % count:
                raise LayoutError(
                    f"upcast: stride {step} of mode {extent}:{step} is not a multiple of {count}",
                    values={"layout": layout},
                )
        else:
            small.append((step, extent))
    for step, extent in sorted(small, key=lambda mode: mode[0]):
        if step != reach or count % step:
            raise LayoutError(
                f"upcast: mode {extent}:{step} does not fill groups of {count} elements", values={"layout": layout}
            )
        inside = count // step
        if type(extent) is int and extent < inside:
            reach *= extent
            continue
        if divisibility(extent) % inside:
            if type(extent) is int:
                raise LayoutError(
                    f"upcast: extent {extent} of mode {extent}:{step} does not fill groups of {count} elements",
                    values={"layout": layout},
                )
            require(Fact("multiple", extent, inside), "upcast", layout=layout)
        reach = count
    if reach != count:
        raise LayoutError(f"upcast: only {reach} of each {count} elements are in the layout", values={"layout": layout})


def downcast(layout: Any, count: int) -> Any:
    """Each element taken as `count` smaller ones: the mode of stride 1 grows, other strides are multiplied.

    Without a mode of stride 1, the first mode of extent 1 takes the parts.

    Raises:
        LayoutError: no mode can take the parts of an element, or several have stride 1.
    """
    if isinstance(layout, Swizzle):
        return Swizzle(layout.bits, layout.base + _log2(count), layout.shift)
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, count, up=False)
    if count == 1:
        return layout
    extents, strides = flat(layout.shape), flat(layout.stride)
    grows = _mode_for_parts(layout, extents, strides)
    shape = [mul(s, count) if place == grows else s for place, s in enumerate(extents)]
    stride = [1 if place == grows else mul(count, d) for place, d in enumerate(strides)]
    return trusted(unflatten(shape, layout.shape), unflatten(stride, layout.shape))


def _mode_for_parts(layout: Layout, extents: list[Leaf], strides: list[Leaf]) -> int:
    """The flat mode that the parts of an element go to."""
    units = [type(extent) is int and extent == 1 for extent in extents]
    contiguous = [i for i, d in enumerate(strides) if type(d) is int and d == 1 and not units[i]]
    if any(isinstance(d, ScaledBasis) for d in strides):
        raise LayoutError("coordinates cannot be recast", values={"layout": layout})
    if len(contiguous) == 1:
        return contiguous[0]
    if contiguous or not any(units):
        raise LayoutError("downcast: exactly one mode must have stride 1", values={"layout": layout})
    return next((i for i, d in enumerate(strides) if units[i] and type(d) is int and d == 1), units.index(True))


def _upcast_swizzle(swizzle: Swizzle, count: int) -> Swizzle:
    base = swizzle.base - _log2(count)
    if base < 0 and swizzle.bits:
        raise LayoutError(f"the swizzle moves elements within groups of {count}", values={"swizzle": swizzle})
    return Swizzle(swizzle.bits, max(base, 0), swizzle.shift)


def _log2(count: int) -> int:
    if count & (count - 1):
        raise LayoutError("a swizzle can be recast by powers of two only", values={"count": count})
    return count.bit_length() - 1


def _recast_composed(layout: ComposedLayout, count: int, *, up: bool) -> ComposedLayout:
    cast = upcast if up else downcast
    if up and divisibility(layout.offset) % count:
        raise LayoutError(f"upcast: the offset is not known to be a multiple of {count}", values={"layout": layout})
    offset = floor_div(layout.offset, count) if up else mul(layout.offset, count)
    return ComposedLayout(cast(layout.inner, count), offset, cast(layout.outer, count))
