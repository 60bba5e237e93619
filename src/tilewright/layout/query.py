"""Size, cosize, rank, depth and the like, of IntTuples, layouts, and anything with a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout import coordinates
from tilewright.layout.basis import ScaledBasis, coordinate_sum
from tilewright.layout.dynamic import Leaf, add, ceil_div_leaf, mul, sub
from tilewright.layout.inttuple import (
    IntTuple,
    compact_col_major,
    flat,
    is_congruent,
    product,
    text,
    tuples,
    wrap,
)
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static

Mode = int | Sequence[int] | None
"""A path to a mode: nothing for the whole, an int, or a list that leads inwards."""


def shape(input: Any, mode: Mode = None) -> IntTuple:
    """The shape of a layout or tensor, or of its mode at `mode`; of a tuple, itself."""
    return at_mode(shape_of(input), mode)


def stride(input: Any, mode: Mode = None) -> IntTuple:
    """The strides of a layout, or of its mode at `mode`."""
    return at_mode(input.stride, mode)


def shape_of(value: Any) -> IntTuple:
    """`value.shape` if it has one, else `value`."""
    return value if isinstance(value, tuple | int) else getattr(value, "shape", tuples(value))


def at_mode(value: IntTuple, mode: Mode) -> IntTuple:
    """The part of a tuple at a path.

    Raises:
        LayoutError: there is no such mode.
    """
    for index in [mode] if isinstance(mode, int) else mode or ():
        items = wrap(value)
        if not -len(items) <= index < len(items):
            raise LayoutError(f"there is no mode {index}", values={"tuple": text(value), "mode": mode})
        value = items[index]
    return value


def size(a: Any, mode: Mode = None) -> Leaf:
    """The number of elements: the product of the shape, or of its mode at `mode`."""
    return product(shape(a, mode))


def rank(a: Any, mode: Mode = None) -> int:
    """The number of modes; 1 for a leaf."""
    return len(wrap(shape(a, mode)))


def depth(a: Any, mode: Mode = None) -> int:
    """The deepest nesting: 0 for a leaf."""
    return _depth(shape(a, mode))


def _depth(value: IntTuple) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, tuple) else 0


def cosize(a: Any, mode: Mode = None) -> Any:
    """One more than the largest index: the least size of a buffer that holds the layout's image.

    With negative strides, which begin below 0, it is the distance from the least index to the largest, and 1. With
    basis strides, the shape of the least box from the origin that holds the image. For a swizzled layout, that
    of the outer layout rounded up to the blocks within which the swizzle moves.
    """
    if isinstance(a, ComposedLayout):
        return _composed_cosize(a if mode is None else a.with_outer(_mode_of(a.outer, mode)))
    extents, strides = flat(shape(a, mode)), flat(stride(a, mode))
    if any(isinstance(step, ScaledBasis) for step in strides):
        return _cosize_box(extents, strides)
    last: Leaf = 0
    for extent, step in zip(extents, strides, strict=True):
        if type(extent) is int and extent == 0:
            return 0
        last = add(last, mul(sub(extent, 1), abs(step) if type(step) is int else step))
    return add(last, 1)


def room(layout: Any) -> int:
    """The elements of memory that a static layout needs from index 0 on: `cosize`, exact for a swizzle too."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return int(cosize(layout))
    count = int(cosize(layout.outer)) + int(layout.offset)
    if layout.inner.keeps(count):
        return count
    return 1 + max(map(layout, range(size(layout)))) if size(layout) <= _MOST_POINTS else int(cosize(layout))


_MOST_POINTS = 1 << 20


def least(layout: Any) -> int:
    """The least index (of a swizzle: before it), as far as static modes of negative stride tell; 0 without them."""
    if isinstance(layout, ComposedLayout):
        below = least(layout.outer)
        return below + layout.offset if below and type(layout.offset) is int else below
    modes = zip(flat(layout.shape), flat(layout.stride), strict=True)
    return sum((n - 1) * d for n, d in modes if type(n) is type(d) is int and d < 0 < n)


def _mode_of(layout: Any, mode: Mode) -> Layout:
    return Layout(at_mode(layout.shape, mode), at_mode(layout.stride, mode))


def _cosize_box(extents: list[Leaf], strides: list[Leaf]) -> IntTuple:
    terms = [
        (step.mode, mul(sub(extent, 1), step.value)) if isinstance(step, ScaledBasis) else ((), 0)
        for extent, step in zip(extents, strides, strict=True)
    ]
    return _add_one(coordinate_sum(terms))


def _add_one(value: IntTuple) -> IntTuple:
    return tuple(map(_add_one, value)) if isinstance(value, tuple) else add(value, 1)


def _composed_cosize(layout: ComposedLayout) -> Leaf:
    if isinstance(layout.inner, Swizzle):
        reach = add(cosize(layout.outer), layout.offset)
        block = layout.inner.block
        return mul(ceil_div_leaf(reach, block), block)
    if not is_static(layout):
        raise LayoutError("cosize: needs static extents here", values={"layout": layout})
    if size(layout) > _MOST_POINTS:
        raise LayoutError("cosize: too large to try each index", values={"layout": layout, "most": _MOST_POINTS})
    return 1 + max((layout(index) for index in range(size(layout))), default=-1)


def crd2idx(coord: Any, layout: Any, stride: IntTuple = None) -> Any:
    """The value of `layout` at `coord`; `layout` may also be a shape, with strides or compact.

    Raises:
        LayoutError: `coord` does not fit the shape.
    """
    if isinstance(layout, Layout | ComposedLayout):
        return layout(coord)
    if stride is not None and not is_congruent(tuples(layout), tuples(stride)):
        raise LayoutError("shape and stride must nest alike", values={"shape": text(layout), "stride": text(stride)})
    coord, shape = tuples(coord), tuples(layout)
    coord, steps = coordinates.spread(coord, shape, compact_col_major(shape) if stride is None else tuples(stride))
    return coordinates.crd2idx(coord, shape, steps)


def idx2crd(idx: Any, shape: Any) -> Any:
    """The coordinate, congruent with `shape` (of a layout: its shape), at `idx`."""
    return coordinates.idx2crd(idx, shape_of(shape))


def size_in_bytes(bits: int, layout: Any) -> Leaf:
    """The bytes that a buffer of elements of `bits` bits under `layout` takes, rounded up."""
    count = cosize(layout)
    if isinstance(count, tuple):
        raise LayoutError("coordinates take no bytes", values={"layout": layout})
    return ceil_bytes(mul(count, bits))


def ceil_bytes(bits: Leaf) -> Leaf:
    """Bits as bytes, rounded up."""
    return -(-bits // 8) if type(bits) is int else add(bits, 7) // 8


def leading_dim(shape: IntTuple, stride: IntTuple) -> int | None:
    """The mode of stride 1, the one of extent greater than 1 if there are several; None if there is none.

    Raises:
        LayoutError: several modes qualify.
    """
    ones = [i for i, step in enumerate(wrap(stride)) if type(step) is int and step == 1]
    extents = wrap(shape)
    if len(extents) != len(wrap(stride)):
        raise LayoutError(
            "shape and stride have different ranks", values={"shape": text(shape), "stride": text(stride)}
        )
    if len(ones) > 1:
        ones = [i for i in ones if not (type(extents[i]) is int and extents[i] == 1)] or ones[:1]
    if len(ones) > 1:
        raise LayoutError("several modes have stride 1", values={"shape": text(shape), "stride": text(stride)})
    return ones[0] if ones else None


def is_major(mode: int, stride: Any) -> bool:
    """True if mode `mode` of the strides (or layout) has stride 1 at its first leaf."""
    step: Any = flat(at_mode(getattr(stride, "stride", stride), mode))[0]
    return type(step) is int and step == 1
