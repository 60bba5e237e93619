"""Functions of CuTe DSL on nested tuples, layouts and tensors that the layout algebra itself does not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Integer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout, Swizzle


def has_underscore(a: Any) -> bool:
    """Whether the tuple has a None, which keeps a mode."""
    return algebra.has_underscore(a)


def wrap(x: Any) -> tuple[Any, ...]:
    """`x`, or the tuple of one that holds it."""
    return algebra.wrap(x)


def unwrap(x: Any) -> Any:
    """The item of a tuple of one; anything else as it is."""
    return x[0] if isinstance(x, tuple) and len(x) == 1 else x


def tuple_cat(*tuples: Any) -> tuple[Any, ...]:
    """The tuples joined; what is no tuple counts as a tuple of one."""
    return tuple(item for part in tuples for item in (part if isinstance(part, tuple) else (part,)))


def front(input: Any, *, loc: object = None, ip: object = None) -> Any:
    """The first leaf of a nested tuple; of a layout or tensor, its first mode down to one."""
    if isinstance(input, Tensor | Layout | ComposedLayout):
        return front(algebra.get(input.layout if isinstance(input, Tensor) else input, [0])) if _nests(input) else input
    return front(input[0]) if isinstance(input, tuple) else input


def _nests(value: Any) -> bool:
    return isinstance(value.shape, tuple)


def find(t: Any, x: int, hierarchical: bool = True) -> Any:
    """Where the first leaf of `t` that equals `x` is: an index, a tuple of them for a nested leaf, None if nowhere.

    Without `hierarchical` only the items of `t` themselves are looked at.
    """
    return find_if(t, lambda item, _: type(item) is int and item == x, hierarchical)


def find_if(t: Any, pred_fn: Callable[[Any, Any], Any], hierarchical: bool = True) -> Any:
    """Where the first leaf is for which `pred_fn(leaf, position)` holds; see `find`."""
    items = t if isinstance(t, tuple) else (t,)
    paths = _leaves(items, ()) if hierarchical else [(item, (index,)) for index, item in enumerate(items)]
    for item, path in paths:
        position = path[0] if len(path) == 1 else path
        if pred_fn(item, position):
            return position
    return None


def _leaves(items: tuple[Any, ...], path: tuple[int, ...]) -> list[tuple[Any, tuple[int, ...]]]:
    found: list[tuple[Any, tuple[int, ...]]] = []
    for index, item in enumerate(items):
        here = (*path, index)
        found += _leaves(item, here) if isinstance(item, tuple) else [(item, here)]
    return found


def transform_apply(*args: Any, f: Callable[..., Any], g: Callable[..., Any]) -> Any:
    """`g` of the results of `f` on the items of one or more tuples: `g(f(t[0]), f(t[1]), ...)`."""
    if not isinstance(args[0], tuple):
        return g(f(*args))
    _require_one_length("transform_apply", args)
    return g(*(f(*items) for items in zip(*args, strict=True)))


def filter_tuple(*args: Any, f: Callable[..., tuple[Any, ...]]) -> tuple[Any, ...]:
    """The tuples that `f` gives for the items of one or more tuples, joined."""
    return tuple(transform_apply(*args, f=f, g=tuple_cat))


def _require_one_length(name: str, tuples: tuple[Any, ...]) -> None:
    lengths = [len(item) if isinstance(item, tuple) else None for item in tuples]
    if len(set(lengths)) != 1:
        raise CompileError(f"{name} takes tuples of one length", location=user_location(3), values={"lengths": lengths})


def get_divisibility(x: Any) -> int:
    """What is known to divide an integer: itself where it is known."""
    if isinstance(x, Integer):
        return abs(int(x.value)) if x.is_static else x.divisibility
    return abs(x) if isinstance(x, int) else algebra.divisibility(x)


def pretty_str(arg: object) -> str:
    """A value as the language prints it while compiling."""
    return f"({','.join(map(pretty_str, arg))})" if isinstance(arg, tuple) else str(arg)


def get_swizzle_portion(layout: Any, *, loc: object = None, ip: object = None) -> Swizzle:
    """The swizzle of a composed layout; `S<0,4,3>`, which moves nothing, of any other."""
    _require_layout("get_swizzle_portion", layout)
    inner = layout.inner if isinstance(layout, ComposedLayout) else None
    return inner if isinstance(inner, Swizzle) else Swizzle(0, 4, 3)


def get_nonswizzle_portion(layout: Any, *, loc: object = None, ip: object = None) -> Any:
    """The outer layout of a composed one whose inner function is a swizzle; any other layout as it is."""
    _require_layout("get_nonswizzle_portion", layout)
    return layout.outer if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle) else layout


def _require_layout(name: str, layout: object) -> None:
    if not isinstance(layout, Layout | ComposedLayout):
        raise CompileError(f"{name} takes a layout, not {type(layout).__name__}", location=user_location(3))
