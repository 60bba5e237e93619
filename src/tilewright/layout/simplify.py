"""Layouts with fewer modes and the same function: coalesce, filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import Leaf, mul
from tilewright.layout.inttuple import flat, text, transform_leaf, wrap
from tilewright.layout.layout import ComposedLayout, Layout, require_plain, trusted


def coalesce(input: Any, target_profile: Any = None) -> Any:
    """The layout with fewest modes that has the same value at each index.

    With `target_profile` (a tuple whose leaves' values do not matter; a missing mode is left as it is) each part that
    faces a leaf is coalesced by itself. Run-time extents merge only where it costs no arithmetic to see it.

    Raises:
        LayoutError: `target_profile` has modes that the layout has not.
    """
    if isinstance(input, ComposedLayout):
        return input.with_outer(coalesce(input.outer, target_profile))
    if isinstance(target_profile, tuple | list):
        return by_mode(input, target_profile, coalesce, "coalesce")
    return packed(coalesced_modes(input))


def by_mode(layout: Layout, guide: Sequence[Any], function: Any, name: str, *, rest: bool = True) -> Layout:
    """`function(mode, item)` for each mode and item of `guide`; further modes stay, without `rest` they go."""
    shapes, strides = wrap(layout.shape), wrap(layout.stride)
    if len(guide) > len(shapes):
        raise LayoutError(f"{name}: there are more items than modes", values={"layout": layout, "by mode": text(guide)})
    parts = [function(trusted(s, d), item) for s, d, item in zip(shapes, strides, guide, strict=False)]
    first = len(guide) if rest else len(shapes)
    return trusted(
        (*(part.shape for part in parts), *shapes[first:]), (*(part.stride for part in parts), *strides[first:])
    )


_ONLY_INTS = {int}


def int_modes(layout: Layout) -> tuple[list[int], list[int]] | None:
    """Flat extents and strides, or None if some are not ints."""
    shape, stride = layout.shape, layout.stride
    if type(shape) is int and type(stride) is int:
        return [shape], [stride]
    if type(shape) is tuple and {*map(type, shape), *map(type, stride)} == _ONLY_INTS:
        return list(shape), list(stride)
    extents, strides = flat(shape), flat(stride)
    return (extents, strides) if {*map(type, extents), *map(type, strides)} <= _ONLY_INTS else None


def coalesced_modes(layout: Layout) -> list[tuple[Leaf, Leaf]]:
    """Extent and stride of each mode left after merging; at least one."""
    modes: list[tuple[Leaf, Leaf]] = []
    static = int_modes(layout)
    if static is not None:
        ends = None
        for extent, step in zip(*static, strict=True):
            if extent == 1:
                continue
            if step == ends:
                last = modes[-1]
                modes[-1] = last[0] * extent, last[1]
            else:
                modes.append((extent, step))
            ends = modes[-1][0] * modes[-1][1]
        return modes or [(1, 0)]
    for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True):
        if type(extent) is int and extent == 1:
            continue
        if modes and _continues(*modes[-1], step):
            last = modes.pop()
            modes.append((mul(last[0], extent), last[1]))
        else:
            modes.append((extent, step))
    return modes or [(1, 0)]


def _continues(extent: Leaf, step: Leaf, following: Leaf) -> bool:
    """True if a mode of stride `following` goes on where `extent:step` ends."""
    if type(following) is int:
        if type(step) is not int:
            return False
        return step * extent == following if type(extent) is int else step == 0 == following
    if isinstance(following, ScaledBasis) and isinstance(step, ScaledBasis) and following.mode == step.mode:
        return _continues(extent, step.value, following.value)
    return False


def packed(modes: list[tuple[Leaf, Leaf]]) -> Layout:
    """The flat layout of these modes; a single mode stands bare."""
    if len(modes) == 1:
        return trusted(*modes[0])
    return trusted(tuple([extent for extent, _ in modes]), tuple([step for _, step in modes]))


def filter_zeros(input: Any, target_profile: Any = None) -> Any:
    """The layout with extent 1 for every leaf of stride 0 (with `target_profile`, only inside modes it names)."""
    if isinstance(input, ComposedLayout):
        return input.with_outer(filter_zeros(input.outer, target_profile))
    if isinstance(target_profile, tuple | list):
        return by_mode(input, target_profile, filter_zeros, "filter_zeros")
    shape = transform_leaf(lambda extent, step: 1 if is_zero(step) else extent, input.shape, input.stride)
    return trusted(shape, input.stride)


def is_zero(step: Leaf) -> bool:
    """True for the stride 0."""
    return type(step) is int and step == 0


def is_unit(extent: Leaf) -> bool:
    """True for the extent 1."""
    return type(extent) is int and extent == 1


def filter_(input: Any, target_profile: Any = None) -> Any:
    """The layout coalesced, without modes of stride 0. Exported as `filter`."""
    if isinstance(input, ComposedLayout):
        return input.with_outer(filter_(input.outer, target_profile))
    if isinstance(target_profile, tuple | list):
        return by_mode(input, target_profile, filter_, "filter")
    return coalesce(filter_zeros(input))


def nullspace(layout: Layout) -> Layout:
    """The layout of all indices that a mode of stride 0 leads to: `layout(nullspace(i)) = layout(0)`."""
    require_plain(layout, "nullspace")
    modes: list[tuple[Leaf, Leaf]] = []
    below: Leaf = 1
    for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True):
        if is_zero(step) and not (type(extent) is int and extent == 1):
            modes.append((extent, below))
        below = mul(extent, below)
    return packed(modes or [(1, 0)])
