"""Picking, grouping and adding modes: on tuples, layouts and composed layouts alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout import inttuple
from tilewright.layout.inttuple import IntTuple, text, tuples, wrap
from tilewright.layout.layout import ComposedLayout, Layout, require_plain, trusted
from tilewright.layout.query import Mode, at_mode, rank


def on_tuples(value: Any, change: Callable[[IntTuple], IntTuple]) -> Any:
    """`change` applied to a tuple, or to the shape and the strides of a layout."""
    if isinstance(value, Layout):
        return trusted(change(value.shape), change(value.stride))
    if isinstance(value, ComposedLayout):
        return value.with_outer(on_tuples(value.outer, change))
    return change(value)


def flatten(a: Any) -> Any:
    """All leaves side by side; a leaf stays a leaf."""
    return on_tuples(a, lambda t: inttuple.flatten_to_tuple(t) if isinstance(t, tuple) else t)


def get(input: Any, mode: Mode = None) -> Any:
    """The part at a path of modes: `get(L, mode=[1, 0])`.

    Raises:
        LayoutError: there is no such mode.
    """
    return on_tuples(input, lambda t: at_mode(t, mode))


def select(input: Any, mode: Sequence[int]) -> Any:
    """The outermost modes named, in that order.

    Raises:
        LayoutError: there is no such mode.
    """
    return on_tuples(input, lambda t: tuple(at_mode(t, index) for index in mode))


def take(value: Any, begin: int, end: int) -> Any:
    """The outermost modes from `begin` up to `end`."""
    return on_tuples(value, lambda t: wrap(t)[begin:end])


def group_modes(input: Any, begin: int, end: int | None = None) -> Any:
    """Modes `begin` up to `end` (to the last without it, or with -1) made one.

    Raises:
        LayoutError: the range is not within the modes.
    """
    last = rank(input) if end is None or end == -1 else end
    if not 0 <= begin <= last <= rank(input):
        raise LayoutError("group_modes: no such modes", values={"value": input, "begin": begin, "end": end})

    def grouped(t: IntTuple) -> IntTuple:
        items = wrap(t)
        return (*items[:begin], items[begin:last], *items[last:]) if begin < last else items

    return on_tuples(input, grouped)


def append(input: Any, elem: Any, up_to_rank: int | None = None) -> Any:
    """`input` with `elem` as a further last mode; with `up_to_rank`, until it has that many modes."""
    return _extend(input, elem, up_to_rank, lambda items, extra: (*items, *extra))


def prepend(input: Any, elem: Any, up_to_rank: int | None = None) -> Any:
    """`input` with `elem` as a further first mode; with `up_to_rank`, until it has that many modes."""
    return _extend(input, elem, up_to_rank, lambda items, extra: (*extra, *items))


def append_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """`append` of extents 1 (in a layout with stride 0)."""
    return append(t, _one(t), up_to_rank)


def prepend_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """`prepend` of extents 1 (in a layout with stride 0)."""
    return prepend(t, _one(t), up_to_rank)


def _one(value: Any) -> Any:
    return Layout(1, 0) if isinstance(value, Layout | ComposedLayout) else 1


def _extend(value: Any, element: Any, up_to_rank: int | None, join: Callable[..., tuple[Any, ...]]) -> Any:
    if isinstance(value, ComposedLayout):
        return value.with_outer(_extend(value.outer, element, up_to_rank, join))
    count = 1 if up_to_rank is None else up_to_rank - rank(value)
    if count < 0:
        raise LayoutError("there are more modes than the rank asked for", values={"value": value, "rank": up_to_rank})
    if up_to_rank is not None and count == 0:
        return value
    if not isinstance(value, Layout):
        return join(wrap(value), (element,) * count)
    extra = element if isinstance(element, Layout) else Layout(element)
    return trusted(join(wrap(value.shape), (extra.shape,) * count), join(wrap(value.stride), (extra.stride,) * count))


def replace(value: Any, mode: int, element: Any) -> Any:
    """`value` with its outermost mode `mode` replaced."""
    if isinstance(value, Layout):
        require_plain(element, "replace")
        return trusted(_replaced(value.shape, mode, element.shape), _replaced(value.stride, mode, element.stride))
    if isinstance(value, ComposedLayout):
        return value.with_outer(replace(value.outer, mode, element))
    return _replaced(value, mode, element)


def _replaced(value: IntTuple, mode: int, element: IntTuple) -> IntTuple:
    at_mode(value, mode)
    items = list(wrap(value))
    items[mode] = element
    return tuple(items)


def zip_modes(value: Any) -> Any:
    """`((a,b),(c,d))` turned into `((a,c),(b,d))`.

    Raises:
        LayoutError: the two modes have different ranks.
    """

    def zipped(t: IntTuple) -> IntTuple:
        if not isinstance(t, tuple) or len({len(wrap(item)) for item in t}) != 1:
            raise LayoutError("zip_modes: the modes have different ranks", values={"tuple": text(t)})
        return tuple(zip(*map(wrap, t), strict=True))

    return on_tuples(value, zipped)


def slice_(src: Any, coord: Any) -> Any:
    """The modes that `coord` leaves open with `None`; a nested coordinate opens modes inside a mode.

    The offset of the fixed coordinates is dropped (a composed layout takes it into its own offset); see
    `slice_and_offset`.

    Raises:
        LayoutError: `coord` does not fit.
    """
    coord = tuples(coord)
    if isinstance(src, ComposedLayout):
        return slice_and_offset(coord, src)[0]
    if coord is None:
        return src
    return on_tuples(src, lambda t: tuple(_kept(t, coord, lambda item: item is None)))


def slice_and_offset(coord: Any, src: Any) -> tuple[Any, Any]:
    """The layout of the modes left open, and the index of the fixed coordinates.

    The offset is 0 for a composed layout, which keeps it inside.
    """
    if isinstance(src, ComposedLayout):
        outer, offset = slice_and_offset(coord, src.outer)
        return src.with_outer(outer, offset), 0
    return slice_(src, coord), src(coord)


def dice(src: Any, dicer: Any) -> Any:
    """The modes at which `dicer` is not `None`: the converse of `slice_`.

    Raises:
        LayoutError: `dicer` does not fit.
    """
    src, dicer = tuples(src), tuples(dicer)
    if dicer is None:
        return on_tuples(src, lambda t: ())
    if not isinstance(dicer, tuple):
        return src
    return on_tuples(src, lambda t: tuple(_kept(t, dicer, lambda item: item is not None)))


def _kept(value: IntTuple, coord: Any, keep: Callable[[Any], bool]) -> list[Any]:
    if not isinstance(coord, tuple):
        return [value] if keep(coord) else []
    if not isinstance(value, tuple) or len(value) != len(coord):
        raise LayoutError("the coordinate does not fit the modes", values={"coord": text(coord), "modes": text(value)})
    return [kept for item, place in zip(value, coord, strict=True) for kept in _kept(item, place, keep)]
