"""The public functions with their arguments checked: what each takes, and a `LayoutError` for anything else.

Lists become tuples and integer-likes (bools and NumPy's numbers among them) ints here, so that the functions
themselves meet ints, `DynamicInt`s and tuples only.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, TypeVar, cast

from tilewright.base.errors import LayoutError, shown
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import DynamicInt
from tilewright.layout.inttuple import MOST_DEPTH, is_flat_static
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle

F = TypeVar("F", bound=Callable[..., Any])
Kind = Callable[[Any], Any]
"""Gives the argument as the function wants it, or raises `Unfit`."""

MOST_ITEMS = 1 << 16
"""The most modes that a function adds to a tuple."""


MOST_BITS = 4096
"""The longest integers."""


class Unfit(Exception):
    """An argument is not of its kind; the text says what the kind is."""


# Leaves


def integer(value: Any) -> Any:
    """An int or a `DynamicInt`."""
    if isinstance(value, DynamicInt):
        return value
    if type(value) is not int:
        try:
            value = int(operator.index(value))
        except TypeError:
            raise Unfit("an integer") from None
    if value.bit_length() > MOST_BITS:
        raise Unfit(f"of at most {MOST_BITS} bits")
    return value


def static(value: Any) -> int:
    """An int."""
    value = integer(value)
    if isinstance(value, DynamicInt):
        raise Unfit("an integer known while compiling")
    return int(value)


def natural(value: Any) -> int:
    """An int from 0."""
    number = static(value)
    if number < 0:
        raise Unfit("an integer from 0")
    return number


def positive(value: Any) -> int:
    """An int from 1."""
    number = static(value)
    if number < 1:
        raise Unfit("an integer from 1")
    return number


def count(value: Any) -> int:
    """A number of modes."""
    number = natural(value)
    if number > MOST_ITEMS:
        raise Unfit(f"at most {MOST_ITEMS}")
    return number


def extent(value: Any) -> Any:
    """An int from 0 or a `DynamicInt`."""
    value = integer(value)
    if type(value) is int and value < 0:
        raise Unfit("a shape, and an extent is negative")
    return value


def _step(value: Any) -> Any:
    return value if isinstance(value, ScaledBasis) else integer(value)


def _tile(value: Any) -> Any:
    return value if value is None or isinstance(value, Layout | ComposedLayout) else extent(value)


def _any(value: Any) -> Any:
    return value


def optional(kind: Kind) -> Kind:
    """`None`, or what `kind` takes."""
    return lambda value: None if value is None else kind(value)


# Tuples


def tree(leaf: Kind, what: str) -> Kind:
    """A leaf or a nested tuple of leaves."""

    def check(value: Any, depth: int = 0) -> Any:
        if isinstance(value, tuple | list):
            if depth == MOST_DEPTH:
                raise Unfit(f"nested at most {MOST_DEPTH} deep")
            return tuple([check(item, depth + 1) for item in value])
        try:
            return leaf(value)
        except Unfit as unfit:
            raise Unfit(what if str(unfit) == "an integer" else str(unfit)) from None

    return check


integers = tree(integer, "made of integers")
_COORD = "made of integers and None"
_HINTS = {_COORD: "give one integer for each mode, or one that counts through the modes; None keeps a mode"}
coord = tree(optional(integer), _COORD)
strides = tree(_step, "made of integers and scaled basis elements")
anything = tree(_any, "")
_extents = tree(extent, "made of integers")
_tiles = tree(_tile, "a tiler, made of integers, layouts and None")


def shape(value: Any) -> Any:
    """Extents."""
    return value if is_flat_static(value) and min(value) >= 0 else _extents(value)


def tiler(value: Any) -> Any:
    """A layout, or a tuple of extents, layouts and `None`."""
    if type(value) is Layout or (is_flat_static(value) and min(value) >= 0):
        return value
    return _tiles(value)


def shaped(value: Any) -> Any:
    """Extents, or whatever has a shape."""
    return value if isinstance(value, Layout | ComposedLayout) or hasattr(value, "shape") else shape(value)


def strided(value: Any) -> Any:
    """Whatever has a shape and strides."""
    if isinstance(value, Layout | ComposedLayout) or (hasattr(value, "shape") and hasattr(value, "stride")):
        return value
    raise Unfit("a layout")


def strides_of(value: Any) -> Any:
    """Strides, or whatever has them."""
    return value if hasattr(value, "stride") else strides(value)


def mode(value: Any) -> Any:
    """A path to a mode."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return [static(item) for item in value]
    return static(value)


def modes(value: Any) -> Sequence[int]:
    """Numbers of modes."""
    if not isinstance(value, tuple | list | range):
        raise Unfit("a sequence of mode numbers")
    return [static(item) for item in value]


def items(value: Any) -> Any:
    """A tuple, or a list."""
    if not isinstance(value, tuple | list):
        raise Unfit("a tuple")
    return anything(value)


# Layouts and the rest


def layout(value: Any) -> Any:
    """A `Layout`."""
    if isinstance(value, Layout):
        return value
    raise Unfit("a plain layout" if isinstance(value, ComposedLayout | Swizzle) else "a layout")


def any_layout(value: Any) -> Any:
    """A `Layout` or a `ComposedLayout`."""
    if isinstance(value, Layout | ComposedLayout):
        return value
    raise Unfit("a layout")


def swizzled(value: Any) -> Any:
    """A layout or a swizzle."""
    return value if isinstance(value, Swizzle) else any_layout(value)


def layout_or_shape(value: Any) -> Any:
    """A layout, or the shape of a compact one."""
    return value if isinstance(value, Layout | ComposedLayout) else shape(value)


def plain_or_shape(value: Any) -> Any:
    """A plain layout, or the shape of a compact one."""
    return value if isinstance(value, Layout) else layout(value) if isinstance(value, ComposedLayout) else shape(value)


def moded(value: Any) -> Any:
    """What has modes: a layout, or a tuple of anything."""
    return value if isinstance(value, Layout | ComposedLayout) else anything(value)


def right(value: Any) -> Any:
    """What stands on the right of a composition."""
    if isinstance(value, Swizzle):
        raise Unfit("a layout or a tiler: a swizzle has no shape to compose with")
    return tiler(value)


def target(value: Any) -> Any:
    """A size, a shape or a layout; or nothing."""
    return None if value is None else shaped(value)


def function(value: Any) -> Any:
    """What can be called."""
    if not callable(value):
        raise Unfit("a function")
    return value


def string(value: Any) -> Any:
    """A `str`."""
    if not isinstance(value, str):
        raise Unfit("a string")
    return value


def flag(value: Any) -> Any:
    """A bool, or nothing."""
    if value is not None and not isinstance(value, bool):
        raise Unfit("True or False")
    return value


def mapping(value: Any) -> Any:
    """A dict."""
    if not isinstance(value, Mapping):
        raise Unfit("a dict from names to integers")
    return value


def basis_leaf(value: Any) -> Any:
    """A leaf of strides."""
    return _step(value)


# Functions


def _leading_layouts(kinds: Sequence[Kind]) -> int:
    """How many of the first arguments may be any `Layout`."""
    sample = Layout((2, 2), (1, 2))
    for place, kind in enumerate(kinds):
        try:
            if kind(sample) is not sample:
                return place
        except Unfit:
            return place
    return len(kinds)


@functools.cache
def checked(call: F, *kinds: Kind) -> F:
    """`call` with its arguments checked in turn; the last kind counts for all further ones.

    Raises:
        LayoutError: an argument is not of its kind.
    """
    names = list(inspect.signature(call).parameters)
    layouts = _leading_layouts(kinds)
    by_name = dict(zip(names, kinds, strict=False))
    last = repeat(kinds[-1])

    def refused(places: Iterable[tuple[str, Kind, Any]]) -> LayoutError:
        """Which argument is not of its kind."""
        for place, kind, value in places:
            try:
                kind(value)
            except Unfit as unfit:
                title = call.__name__.rstrip("_")
                hint = _HINTS.get(str(unfit))
                return LayoutError(f"{title}: `{place}` must be {unfit}", values={place: shown(value)}, hint=hint)
        raise AssertionError("every argument is of its kind")

    @functools.wraps(call)
    def checking(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) <= layouts:  # most calls: layouts alone, which need no look
            for value in args:
                if type(value) is not Layout:
                    break
            else:
                return call(*args)
        try:
            taken = [kind(value) for kind, value in zip(chain(kinds, last), args, strict=False)]
        except Unfit:
            raise refused(zip(chain(names, repeat(names[-1])), chain(kinds, last), args, strict=False)) from None
        if kwargs:
            given = [(key, by_name[key], value) for key, value in kwargs.items() if key in by_name]
            try:
                kwargs |= {key: kind(value) for key, kind, value in given}
            except Unfit:
                raise refused(given) from None
        return call(*taken, **kwargs)

    checking.__module__ = "tilewright.layout"  # where pickle finds it
    return cast(F, checking)
