"""Inverses of layouts, and what two layouts have in common."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.compose import compose, composition
from tilewright.layout.dynamic import Leaf, mul
from tilewright.layout.inverse_search import SEARCH_LIMIT, search_left_inverse, values
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static, require_plain, trusted
from tilewright.layout.query import size
from tilewright.layout.simplify import coalesce, coalesced_modes, packed


def right_inverse(input: Any) -> Any:
    """The layout `R` with `input(R(i)) = i` for every `i < size(R)`.

    R follows the modes of `input` as long as each starts where the last ends, from stride 1 on; without a
    mode of stride 1 it is `1:0`. Run-time strides end it.
    """
    if input is None:
        return None
    if isinstance(input, ComposedLayout):
        return _inverse_of_swizzled(input, right_inverse(input.outer))
    steps: list[tuple[int, Leaf, Leaf]] = []
    below: Leaf = 1
    for extent, step in coalesced_modes(require_plain(input, "right_inverse")):
        if type(step) is int:  # a run-time stride has no place in the order
            steps.append((step, extent, below))
        below = mul(extent, below)  # the index at which the next mode's coordinate begins to count
    steps.sort(key=lambda item: item[0])
    # A mode of the inverse undoes `value = coordinate * step` by `index = coordinate * below`.
    shape: list[Leaf] = [1]
    stride: list[Leaf] = [0]
    reach: Leaf = 1
    for step, extent, index in steps:
        # A gap ends it: values in the gap have no index. A mode that overlaps the last ones is passed over.
        if type(reach) is int and step == reach:
            shape.append(extent)
            stride.append(index)
            reach = mul(extent, reach)
    return packed_modes(shape, stride)


def left_inverse(input: Any) -> Any:
    """The layout `R` with `R(input(k)) = k` for every `k < size(input)`.

    Raises:
        LayoutError: `input` is not injective, or no layout undoes it (or, for large layouts whose strides do not
            nest, none was looked for).
    """
    if input is None:
        return None
    if isinstance(input, ComposedLayout):
        return _inverse_of_swizzled(input, left_inverse(input.outer))
    steps: list[tuple[int, int, int]] = []
    below = 1
    for extent, step in coalesced_modes(require_plain(input, "left_inverse")):
        if type(step) is not int or type(extent) is not int:
            raise LayoutError("left_inverse: extents and strides must be static", values={"layout": input})
        if step <= 0 and extent > 1:
            # `R` takes indices from 0 on: values below 0 it could undo only with an offset.
            why = "is not injective" if step == 0 else "begins below 0, where no inverse is looked for"
            raise LayoutError(f"left_inverse: mode {extent}:{step} {why}", values={"layout": input})
        steps.append((step, extent, below))
        below = mul(extent, below)
    steps.sort(key=lambda item: item[0])
    return _nested_inverse(steps) or _searched_inverse(input, steps)


def _nested_inverse(steps: list[tuple[int, int, int]]) -> Layout | None:
    """The inverse by digits, if each stride is a multiple of the one below and clears its mode."""
    if len(steps) == 1 and steps[0][1] == 1:
        return trusted(1, 0)
    # Mode k of the value `x` is the digit `x // step_k % (step_{k+1} // step_k)`. The first digit, below the smallest
    # stride, is always 0; its stride 0 makes `R` total. The last digit has the extent of its mode.
    shape: list[Leaf] = []
    stride: list[Leaf] = [0]
    reach, taken = 1, 1
    for step, extent, index in steps:
        if step % taken or step < reach:  # digits would overlap, or carry into each other
            return None
        shape.append(step // taken)
        stride.append(index)
        taken, reach = step, step * extent
    return packed_modes([*shape, steps[-1][1]], stride)


def _searched_inverse(layout: Layout, steps: list[tuple[int, int, int]]) -> Layout:
    # The search is exponential in the number of digits, hence the limit; beyond it the error names the first clash.
    cosize = 1 + sum((extent - 1) * step for step, extent, _ in steps)
    if cosize <= SEARCH_LIMIT:
        points = values(layout)
        if len(set(points)) < len(points):
            raise LayoutError("left_inverse: the layout is not injective", values={"layout": layout})
        found = search_left_inverse(layout, cosize)
        if found is not None:
            return found
    reach = 1
    clash = steps[-1]
    for step, extent, index in steps:
        if step % reach:
            clash = step, extent, index
            break
        reach = step * extent
    raise LayoutError(
        f"left_inverse: stride {clash[0]} of mode {clash[1]}:{clash[0]} does not nest with the strides below it",
        values={"layout": layout, "strides below reach": reach},
    )


def packed_modes(shape: list[Leaf], stride: list[Leaf]) -> Layout:
    """The coalesced layout of these modes."""
    return packed(coalesced_modes(trusted(tuple(shape), tuple(stride))))


def _inverse_of_swizzled(layout: ComposedLayout, inverse: Layout) -> ComposedLayout:
    """`inverse` after the swizzle, which undoes itself."""
    # With an offset, the inverse would have to subtract it between the swizzle and the inverse of the outer layout.
    swizzle = layout.inner
    if not isinstance(swizzle, Swizzle) or not (type(layout.offset) is int and layout.offset == 0):
        raise LayoutError("only a swizzle at offset 0 can be inverted", values={"layout": layout})
    count = size(inverse)
    if not is_static(count) or not swizzle.keeps(count):
        raise LayoutError(
            f"the swizzle moves within blocks of {swizzle.block}, which do not divide the inverse's size",
            values={"layout": layout, "size": count},
        )
    return ComposedLayout(inverse, 0, ComposedLayout(swizzle, 0, Layout(count)))


def max_common_layout(a: Any, b: Any) -> Any:
    """The layout `R` of most elements with `a(R(i)) = b(R(i)) = i` inside both, starting at index 0.

    A composed layout where both have a swizzle that moves them. A size known only at run time sets no limit: two
    layouts between which elements are copied have one size.
    """
    inverse, count = _in_common(a, b)
    if count == 1:
        return trusted(1, 0)
    if isinstance(inverse, ComposedLayout) and count <= _unmoved(b.inner):
        inverse = inverse.inner
    return coalesce(composition(inverse, Layout(count)))


def max_common_vector(a: Any, b: Any) -> int:
    """The number of elements that are contiguous in both layouts and face each other there, from index 0."""
    return _in_common(a, b)[1]


def _in_common(a: Any, b: Any) -> tuple[Any, int]:
    """A right inverse of `b`, and how many elements from its start on are in place in `a` too.

    Under one swizzle, that is how many are in place without it, if it keeps them; else at most 2^16 are compared.
    """
    inverse, most = _inverse_to_follow(b)
    # With one swizzle S, `S(A(B'(S(i)))) = i` is `A(B'(j)) = j` if S maps the indices below `count` among themselves.
    alike = isinstance(a, ComposedLayout) and isinstance(inverse, ComposedLayout) and isinstance(a.outer, Layout)
    if alike and a.inner == b.inner and a.offset == b.offset and isinstance(b.outer, Layout):
        count = _common(a.outer, right_inverse(b.outer), None)
        if b.inner.keeps(count):
            return inverse, count
    return inverse, _common(a, inverse, most)


def _inverse_to_follow(layout: Any) -> tuple[Any, int | None]:
    """The right inverse, and up to where it holds: a swizzle that has none leaves the indices below it reads alone."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return right_inverse(layout), None
    try:
        return right_inverse(layout), None
    except LayoutError:
        whole = type(layout.offset) is int and layout.offset == 0
        return right_inverse(layout.outer), _unmoved(layout.inner) if whole else 1


def _unmoved(swizzle: Swizzle) -> int:
    """How many indices from 0 on the swizzle leaves alone, as far as the bits that it reads are 0."""
    return swizzle.source_mask & -swizzle.source_mask if swizzle.bits else 1 << 62


def _common(a: Any, inverse: Any, most: int | None) -> int:
    """The most `i` with `a(inverse(i)) = i` up to it and at most `most`, read off the modes of `inverse`."""
    if most is not None:
        return _common_below(a, inverse, most)
    if isinstance(a, ComposedLayout) or isinstance(inverse, ComposedLayout):
        return _common_below(a, inverse, size(inverse))
    # `count` indices are in place. The next mode of the inverse goes on from there where `a` turns its `step` into
    # steps of `count`; where it does so only for a part, the part ends the run.
    count = 1
    total = size(a)
    room = total - 1 if type(total) is int else None
    for extent, step in coalesced_modes(inverse):
        if type(extent) is not int or type(step) is not int:
            break
        run = _contiguous_run(a, extent, step, count, room)
        room = None if room is None else room - (run - 1) * step
        count *= run
        if run != extent:
            break
    return count


def _contiguous_run(a: Layout, extent: int, step: int, count: int, room: int | None) -> int:
    """How far `a(i*step) = i*count` holds for the first `extent` numbers, as a divisor of `extent`.

    All `i*step` are at most `room`, where that is known.
    """
    # A divisor, since only then the run is a mode of its own and the rest another. The longest comes first.
    for length in _divisors(extent):
        if length == 1:
            return 1
        if room is not None and (length - 1) * step > room:
            continue
        try:
            part = coalesce(compose(a, trusted(length, step)))
        except LayoutError:  # the modes of `a` cut it elsewhere; a shorter one may fit
            continue
        if type(part.stride) is int and part.stride == count:
            return length
    return 1


def _divisors(number: int) -> Iterator[int]:
    """The divisors from the number itself down; of a number above 2^32 some in the middle may be missing."""
    small = [d for d in range(1, min(isqrt(number), _MOST_POINTS) + 1) if number % d == 0]
    yield from (number // d for d in small)
    yield from (d for d in reversed(small) if d * d < number)


_MOST_POINTS = 1 << 16


def _common_below(a: Any, inverse: Any, most: Any) -> int:
    """As `_common`, point by point."""
    if not is_static(a) or not is_static(inverse):
        return 1
    count = 0
    most = min(size(inverse), most, _MOST_POINTS)
    while count < most and inverse(count) < size(a) and a(inverse(count)) == count:
        count += 1
    # The first `count` points agree, but the caller needs them as a layout, which only some counts make.
    while count > 1 and not _splits(inverse, count):
        count -= 1
    return max(count, 1)


def _splits(inverse: Any, count: int) -> bool:
    """Whether the first `count` indices of `inverse` make a layout."""
    if size(inverse) % count:
        return False
    try:
        composition(inverse, Layout(count))
    except LayoutError:
        return False
    return True
