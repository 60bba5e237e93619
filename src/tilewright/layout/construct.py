"""Making layouts."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.dynamic import add
from tilewright.layout.inttuple import (
    IntTuple,
    clean,
    compact_order,
    flat,
    make_basis_like,
    product,
    text,
    unflatten,
)
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, trusted
from tilewright.layout.modes import slice_and_offset
from tilewright.layout.query import shape_of, size
from tilewright.layout.simplify import filter_zeros, is_zero


def make_layout(shape: Any, *rest: Any, stride: IntTuple = None) -> Layout:
    """A layout of a shape and strides; compact and column-major without strides.

    `make_layout(shape)`, `make_layout(shape, stride)`, `make_layout(shape, stride=stride)`; or layouts, as arguments
    or in one list or tuple, which become the modes of one.

    Raises:
        LayoutError: shape and stride nest differently, or layouts are mixed with tuples.
    """
    listed = isinstance(shape, tuple | list) and len(shape) > 0 and isinstance(shape[0], Layout) and not rest
    parts = tuple(shape) if listed else (shape, *rest)
    if all(isinstance(part, Layout) for part in parts) and stride is None:
        return trusted(tuple(part.shape for part in parts), tuple(part.stride for part in parts))
    if stride is None and len(rest) == 1:
        stride, rest = rest[0], ()
    if rest or any(isinstance(part, Layout) for part in parts):
        raise LayoutError("make_layout takes a shape and a stride, or layouts", values={"arguments": parts})
    return Layout(shape, stride)


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """The compact layout whose modes of smaller `order` are more contiguous.

    `make_ordered_layout((4, 8), order=(1, 0))` is row-major.

    Raises:
        LayoutError: `order` does not name each mode of `shape`.
    """
    shape = clean(shape)
    return trusted(shape, compact_order(shape, order))


def make_layout_like(input: Any) -> Layout:
    """The compact layout of the shape and mode order of `input`; strides 0 stay 0."""
    outer = input.outer if isinstance(input, ComposedLayout) else input
    strides = flat(outer.stride)
    extents = flat(outer.shape)
    kept = tuple(1 if is_zero(d) else s for s, d in zip(extents, strides, strict=True))
    return trusted(outer.shape, unflatten(flat(compact_order(kept, tuple(strides))), outer.shape))


def make_identity_layout(shape: Any) -> Layout:
    """The layout that maps each coordinate of `shape` to itself: basis strides `1@0, 1@1, ...`."""
    extents = clean(shape_of(shape))
    return trusted(extents, make_basis_like(extents))


def make_composed_layout(inner: Any, offset: Any, outer: Any) -> ComposedLayout:
    """`inner o offset o outer`: the function `c -> inner(offset + outer(c))`."""
    return ComposedLayout(inner, offset, outer)


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """The swizzle `S<b,m,s>`."""
    return Swizzle(b, m, s)


def make_layout_image_mask(lay: Layout, coord: Any, mode: int) -> int:
    """Bits of the indices that `lay` takes when the coordinate of `mode` varies and the others are `coord`'s.

    Used for multicast: the CTAs of a cluster that share a tile.

    Raises:
        LayoutError: an index is not a static number below 64, or there is no such mode.
    """
    shape = lay.shape
    if not isinstance(shape, tuple) or not 0 <= mode < len(shape) or len(coord) != len(shape):
        raise LayoutError("the coordinate does not fit", values={"layout": lay, "coord": text(coord), "mode": mode})
    extent = product(shape[mode])
    if type(extent) is not int:
        raise LayoutError("a mask of a mode known only at run time", values={"layout": lay, "mode": mode})
    fixed = (*coord[:mode], 0, *coord[mode + 1 :])
    part, offset = slice_and_offset((*fixed[:mode], None, *fixed[mode + 1 :]), lay)
    part = filter_zeros(part)  # a stride of 0 names no further bits
    mask = 0
    for index in range(size(part)):
        bit = add(offset, part(index))
        if type(bit) is not int or not 0 <= bit < _MASK_BITS:
            raise LayoutError(
                f"a mask has bits 0 to {_MASK_BITS - 1}, not {bit}", values={"layout": lay, "coord": text(coord)}
            )
        mask |= 1 << bit
        if index == _MOST_POINTS:
            raise LayoutError("a mask of a mode too large to try", values={"layout": lay, "mode": mode})
    return mask


_MOST_POINTS = 1 << 16
_MASK_BITS = 64
