"""IntTuples: an integer leaf, or a tuple of IntTuples. Shapes, strides and coordinates are IntTuples.

Everything here is about bare tuples; `query` and `modes` take layouts too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from tilewright.base.errors import LayoutError, shown
from tilewright.layout.basis import E, Path, ScaledBasis
from tilewright.layout.dynamic import DynamicInt, Leaf, ceil_div_leaf, exact_div, is_multiple, mul, same

IntTuple = Any
"""`int | DynamicInt | tuple[IntTuple, ...]`."""

_ONLY_INTS = {int}


def is_flat_static(value: IntTuple) -> bool:
    """True for a tuple of nothing but ints: the common case, worth a short way."""
    return type(value) is tuple and {*map(type, value)} == _ONLY_INTS


MOST_DEPTH = 64
"""The deepest nesting of tuples: the functions here call themselves for each level."""


def clean(value: Any, what: str = "shape", depth: int = 0) -> IntTuple:
    """`value` with lists turned into tuples and integer-likes into ints.

    Raises:
        LayoutError: a leaf is not an integer, a `DynamicInt`, or (in a stride) a `ScaledBasis`; or the tuple nests more
            than 64 deep.
    """
    if type(value) is int:
        return value
    if isinstance(value, tuple | list):
        if depth == MOST_DEPTH:
            raise LayoutError(f"a {what} nests at most {MOST_DEPTH} deep")
        return tuple([clean(item, what, depth + 1) for item in value])
    if isinstance(value, DynamicInt) or (what == "stride" and isinstance(value, ScaledBasis)):
        return value
    try:
        return int(operator.index(value))
    except TypeError:
        raise LayoutError(
            f"a {what} is made of integers, not {type(value).__name__}", values={what: shown(value)}
        ) from None


def clean_coord(coord: Any, depth: int = 0) -> Any:
    """A coordinate with lists turned into tuples and integer-likes, such as NumPy's, into ints.

    Raises:
        LayoutError: a leaf is of another kind, or the tuple nests more than 64 deep.
    """
    if coord is None or type(coord) is int or isinstance(coord, DynamicInt):
        return coord
    if isinstance(coord, tuple | list):
        if depth == MOST_DEPTH:
            raise LayoutError(f"a coordinate nests at most {MOST_DEPTH} deep")
        return tuple([clean_coord(item, depth + 1) for item in coord])
    if hasattr(coord, "__index__"):
        return int(coord.__index__())
    raise LayoutError(
        f"a coordinate is made of integers, not {type(coord).__name__}",
        values={"coordinate": shown(coord)},
        hint="give one integer for each mode, or one that counts through the modes, the first fastest",
    )


def tuples(value: Any) -> Any:
    """`value` with lists, at any depth, turned into tuples: tilers and coordinates may be written as lists."""
    if isinstance(value, tuple | list) and not is_flat_static(value):
        return tuple([tuples(item) for item in value])
    return value


def digits(number: int) -> str:
    """The number in decimal, in hexadecimal beyond the 4,300 digits that Python prints."""
    try:
        return int.__repr__(number)
    except ValueError:
        return hex(number)


def text(value: IntTuple) -> str:
    """`value` as CuTe prints it: no blanks, and `(8)` for a tuple of one."""
    if type(value) is int:
        return digits(value)
    if isinstance(value, tuple):
        parts = map(digits, value) if is_flat_static(value) else [text(item) for item in value]
        return f"({','.join(parts)})"
    if isinstance(value, DynamicInt):
        return value.dynamic_text()
    if value is None:
        return "_"
    return str(value) if isinstance(value, ScaledBasis) else shown(value)


def flat(value: IntTuple) -> list[Leaf]:
    """The leaves of `value`, left to right."""
    if is_flat_static(value):
        return list(value)
    if not isinstance(value, tuple):
        return [value]
    leaves: list[Leaf] = []
    for item in value:
        if isinstance(item, tuple):
            leaves += flat(item)
        else:
            leaves.append(item)
    return leaves


def flatten_to_tuple(a: IntTuple) -> tuple[Leaf, ...]:
    """The leaves of `a` as a tuple, also for a single leaf."""
    return tuple(flat(a))


def unflatten(sequence: Sequence[Leaf], profile: IntTuple) -> IntTuple:
    """The tuple of the nesting of `profile` whose leaves are `sequence`.

    Raises:
        LayoutError: the numbers of leaves differ.
    """
    wanted = len(flat(profile))
    if wanted != len(sequence):
        raise LayoutError("unflatten: wrong number of leaves", values={"profile": text(profile), "leaves": sequence})
    remaining = iter(sequence)
    return transform_leaf(lambda _: next(remaining), profile)


def transform_leaf(f: Callable[..., Any], *args: IntTuple) -> IntTuple:
    """`f` applied to each leaf of the first tuple and the leaves of the others at the same place."""
    first, *others = args
    if not isinstance(first, tuple):
        return f(first, *others)
    for other in others:
        if not isinstance(other, tuple) or len(other) != len(first):
            raise LayoutError("tuples have different profiles", values={"first": text(first), "other": text(other)})
    return tuple([transform_leaf(f, *items) for items in zip(first, *others, strict=True)])


def wrap(x: IntTuple) -> tuple[IntTuple, ...]:
    """`x`, or the tuple of one that holds it if it is a leaf."""
    return x if isinstance(x, tuple) else (x,)


def unwrap(x: IntTuple) -> IntTuple:
    """`x` without enclosing tuples of one."""
    while isinstance(x, tuple) and len(x) == 1:
        x = x[0]
    return x


def product(a: IntTuple) -> Leaf:
    """The product of all leaves; 1 for the empty tuple."""
    if type(a) is int:
        return a
    if is_flat_static(a):
        return prod(a)
    result: Leaf = 1
    for leaf in flat(tuples(a)):
        result = mul(result, leaf)
    return result


def product_each(a: IntTuple) -> tuple[Leaf, ...]:
    """The product of each mode: `((2,3),4)` gives `(6,4)`."""
    return tuple([product(item) for item in wrap(tuples(a))])


def product_like(a: IntTuple, target_profile: IntTuple) -> IntTuple:
    """The product of each part of `a` that faces a leaf of `target_profile`."""
    a, target_profile = tuples(a), tuples(target_profile)
    if not isinstance(target_profile, tuple):
        return product(a)
    items = wrap(a)
    if len(items) != len(target_profile):
        raise LayoutError("product_like: ranks differ", values={"tuple": text(a), "profile": text(target_profile)})
    return tuple(product_like(item, guide) for item, guide in zip(items, target_profile, strict=True))


def prefix_product(value: IntTuple, init: Leaf = 1) -> IntTuple:
    """Exclusive products of the leaves, left to right: `((2,3),4)` gives `((1,2),6)`."""
    current = init

    def step(leaf: Leaf) -> Leaf:
        nonlocal current
        before, current = current, mul(leaf, current)
        return before

    return transform_leaf(step, value)


def compact_col_major(shape: IntTuple, init: Leaf = 1) -> IntTuple:
    """Strides of the compact layout in which the leftmost mode is contiguous; 0 for extents 1."""
    current = init

    def step(extent: Leaf) -> Leaf:
        nonlocal current
        if type(extent) is int and extent == 1:
            return 0
        before, current = current, mul(extent, current)
        return before

    return transform_leaf(step, shape)


def compact_order(shape: IntTuple, order: IntTuple) -> IntTuple:
    """Compact strides in which modes of smaller `order` are more contiguous; ties go left to right.

    A leaf of `order` may face a whole mode of `shape`. Dynamic and missing (`None`) orders come last.

    Raises:
        LayoutError: `order` does not match the modes of `shape`.
    """
    ranks: list[Leaf] = []
    _order_leaves(shape, order, ranks)
    leaves = flat(shape)
    visit = sorted(range(len(leaves)), key=lambda i: (0, ranks[i]) if type(ranks[i]) is int else (1, 0))
    strides: list[Leaf] = [0] * len(leaves)
    current: Leaf = 1
    for index in visit:
        if not (type(leaves[index]) is int and leaves[index] == 1):
            strides[index] = current
            current = mul(leaves[index], current)
    return unflatten(strides, shape)


def _order_leaves(shape: IntTuple, order: IntTuple, ranks: list[Leaf]) -> None:
    if not isinstance(order, tuple):
        ranks += [order] * len(flat(shape))
        return
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError("an order names each mode of the shape", values={"shape": text(shape), "order": text(order)})
    for mode, place in zip(shape, order, strict=True):
        _order_leaves(mode, place, ranks)


def make_basis_like(shape: IntTuple, path: Path = ()) -> IntTuple:
    """The tuple of the profile of `shape` whose leaf at each path `p` is `E(p)`."""
    if not isinstance(shape, tuple):
        return E(path)
    return tuple(make_basis_like(mode, (*path, index)) for index, mode in enumerate(shape))


def is_congruent(a: IntTuple, b: IntTuple) -> bool:
    """True if both nest alike, leaf for leaf."""
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return isinstance(a, tuple) == isinstance(b, tuple)
    return len(a) == len(b) and all(map(is_congruent, a, b))


def is_weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """True if each leaf of `a` faces a leaf or a whole mode of `b`."""
    if not isinstance(a, tuple):
        return True
    return isinstance(b, tuple) and len(a) == len(b) and all(map(is_weakly_congruent, a, b))


def is_compatible(a: IntTuple, b: IntTuple) -> bool:
    """True if every coordinate of `a` is one of `b`: sizes agree, and `b` refines `a`."""
    if not isinstance(a, tuple):
        return same(a, product(b))
    return isinstance(b, tuple) and len(a) == len(b) and all(map(is_compatible, a, b))


def is_weakly_compatible(a: IntTuple, b: IntTuple) -> bool:
    """As `is_compatible`, but the extent of each leaf of `a` need only divide the mode it faces."""
    if not isinstance(a, tuple):
        return is_multiple(product(b), a)
    return isinstance(b, tuple) and len(a) == len(b) and all(map(is_weakly_compatible, a, b))


def equal(left: IntTuple, right: IntTuple) -> bool:
    """True if both nest alike and their leaves are known to be equal."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        alike = isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right)
        return alike and all(map(equal, left, right))
    if isinstance(left, ScaledBasis):
        return left.same_as(right)
    return not isinstance(right, ScaledBasis) and same(left, right)


def elem_less(lhs: IntTuple, rhs: IntTuple) -> Any:
    """Whether every leaf of `lhs` is less than the leaf of `rhs` it faces: the bounds check of a coordinate.

    On run-time leaves the result is whatever their `<` gives, joined with `&`.

    Raises:
        LayoutError: the profiles differ.
    """
    lhs, rhs = tuples(lhs), tuples(rhs)
    if isinstance(lhs, tuple) != isinstance(rhs, tuple) or (isinstance(lhs, tuple) and len(lhs) > len(rhs)):
        raise LayoutError("elem_less: profiles differ", values={"left": text(lhs), "right": text(rhs)})
    if not isinstance(lhs, tuple):
        return lhs < rhs
    result: Any = True
    for a, b in zip(lhs, rhs, strict=False):
        less = elem_less(a, b)
        if less is False:
            return False
        if less is not True:
            result = less if result is True else result & less
    return result


def ceil_div(input: IntTuple, tiler: IntTuple) -> IntTuple:
    """`input / tiler` rounded up, mode by mode; missing modes of `tiler` count as 1.

    An integer divides a tuple from the left: `ceil_div((4, 6), 8)` is `(1, 3)`. A tuple divides an integer by its
    product: `ceil_div(1000, (32, 4))` is 8.

    Raises:
        LayoutError: `tiler` has more modes than `input`.
    """
    return _divide(tuples(input), tuples(tiler), ceil_div_leaf, "ceil_div")


def round_up(a: IntTuple, b: IntTuple) -> IntTuple:
    """The least multiple of `b` that is at least `a`, mode by mode; of an integer, of its product."""
    a, b = tuples(a), tuples(b)
    if type(b) is int and b == 0:
        raise LayoutError("round_up: multiples of 0", values={"value": text(a)})
    if not isinstance(a, tuple):
        if isinstance(b, tuple):
            return round_up(a, _whole(b))
        return mul(ceil_div_leaf(a, b), b)
    if not isinstance(b, tuple) or len(b) > len(a):
        raise LayoutError("round_up: ranks differ", values={"value": text(a), "multiple": text(b)})
    padded = (*b, *(1,) * (len(a) - len(b)))
    return tuple(round_up(item, step) for item, step in zip(a, padded, strict=True))


def shape_div(lhs: IntTuple, rhs: IntTuple) -> IntTuple:
    """`lhs / rhs` where one divides the other: the quotient, or 1 if `rhs` is the multiple.

    Raises:
        LayoutError: neither is known to divide the other.
    """
    lhs, rhs = tuples(lhs), tuples(rhs)
    if isinstance(rhs, tuple) and not isinstance(lhs, tuple):
        return shape_div(lhs, _whole(rhs))
    return _divide(lhs, rhs, _shape_div_leaf, "shape_div")


def _shape_div_leaf(value: Leaf, divisor: Leaf) -> Leaf:
    if is_multiple(value, divisor):
        return exact_div(value, divisor)
    if is_multiple(divisor, value):
        return 1
    raise LayoutError("shape_div: neither extent divides the other", values={"extent": value, "divisor": divisor})


def _whole(divisor: IntTuple) -> Leaf:
    """The product of a divisor, in which None counts as 1."""
    return functools.reduce(mul, [leaf for leaf in flat(divisor) if leaf is not None], 1)


def _divide(value: IntTuple, divisor: IntTuple, leaf: Callable[[Leaf, Leaf], Leaf], function: str) -> IntTuple:
    if divisor is None:
        return value
    if type(divisor) is int and divisor == 0:
        raise LayoutError(f"{function}: division by 0", values={"value": text(value), "divisor": text(divisor)})
    if not isinstance(value, tuple):
        if isinstance(divisor, tuple):
            return _divide(value, _whole(divisor), leaf, function)
        return leaf(value, divisor)
    if isinstance(divisor, tuple):
        if len(divisor) > len(value):
            raise LayoutError(f"{function}: ranks differ", values={"value": text(value), "divisor": text(divisor)})
        padded = (*divisor, *(1,) * (len(value) - len(divisor)))
        return tuple(_divide(item, part, leaf, function) for item, part in zip(value, padded, strict=True))
    result = []
    for item in value:
        extent = product(item)
        result.append(_divide(item, divisor, leaf, function))
        divisor = divisor if type(extent) is int and extent == 0 else leaf(divisor, extent)
    return tuple(result)


def repeat(x: Any, n: int) -> Any:
    """`x` `n` times in a tuple; `x` itself for a count of 1."""
    return x if n == 1 else (x,) * n


def repeat_as_tuple(x: Any, n: int) -> tuple[Any, ...]:
    """`x` `n` times in a tuple."""
    return (x,) * n


def repeat_like(x: Any, target: IntTuple) -> IntTuple:
    """`x` at each leaf of `target`."""
    return transform_leaf(lambda _: x, target)


def tuple_cat(*parts: Iterable[Any]) -> tuple[Any, ...]:
    """The tuples joined end to end."""
    return tuple(item for part in parts for item in part)


def has_underscore(a: Any) -> bool:
    """True if a leaf of the coordinate or tiler is `None`."""
    return a is None or (isinstance(a, tuple) and any(map(has_underscore, a)))
