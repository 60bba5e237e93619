"""Integers known only at run time, and integer arithmetic that folds what it can.

A leaf of a shape or stride is a Python int or a `DynamicInt`. Layout functions compute with leaves only
through the helpers here, so that `x*1`, `x+0`, `(8*x)//8` and the like cost nothing when the leaves are
traced values whose operators emit code.

`mul` and `add` are exact: where a result may not fit the width of its parts it gets a wider one. `mul_inside` and
`add_inside` are for offsets of what lies inside a layout, whose coordinates were given the width that they need.
"""

from __future__ import annotations

from math import gcd
from typing import Any

Leaf = Any
"""An int or a `DynamicInt` (as a stride also a `ScaledBasis`)."""


class DynamicInt:
    """What layout functions need to know of an integer that has no value yet.

    Subclasses define `divisibility` and `width` and the operators `+ - * // %` with ints and with each
    other, on both sides; swizzles also use `& ^ >> <<` by ints. Values are taken to be non-negative where a
    result depends on it. Never compare leaves with `==`: on traced values that emits code.
    """

    __slots__ = ()

    @property
    def divisibility(self) -> int:
        """A positive int that divides every value this leaf can take."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """32 or 64: the bits it travels in."""
        raise NotImplementedError

    def same_as(self, other: Leaf) -> bool:
        """True if both are known to be equal whatever the run brings."""
        raise NotImplementedError

    def quotient(self, divisor: Leaf) -> Leaf | None:
        """`self // divisor` where this is known to be a multiple of `divisor`, a `DynamicInt` too; else None."""
        rest = self % divisor
        return self // divisor if type(rest) is int and rest == 0 else None

    @property
    def written(self) -> int | None:
        """The value, where the program states it though it counts as unknown: facts are then decided at once."""
        return None

    def times(self, factor: Leaf) -> Leaf:
        """The product, in a width that holds it."""
        return self * factor

    def plus(self, term: Leaf) -> Leaf:
        """The sum, in a width that holds it."""
        return self + term

    def ceil_div(self, divisor: Leaf) -> Leaf:
        """The quotient rounded up; `divisor` is positive."""
        return floor_div(self + sub(divisor, 1), divisor)

    wraps = False
    """Whether coordinates of this kind are to be widened where an offset may not fit their width."""

    def widened(self) -> DynamicInt:
        """The same number in 64 bits."""
        return self

    @property
    def greatest(self) -> int | None:
        """A number that this is known never to exceed, being no less than 0; else None."""
        return None

    def greatest_product(self, other: Leaf) -> int | None:
        """`greatest` of the product with `other`."""
        return None

    def dynamic_text(self) -> str:
        """`?`, `?{div=8}`, `?{i64}` or `?{i64 div=8}`."""
        facts = ["i64"] if self.width == 64 else []
        if self.divisibility > 1:
            facts.append(f"div={self.divisibility}")
        return f"?{{{' '.join(facts)}}}" if facts else "?"

    def __str__(self) -> str:
        return self.dynamic_text()


class Multiple(DynamicInt):
    """Some multiple of `divisibility` (0: the number 0), `width` bits wide: for what is known of a result without
    computing it."""

    __slots__ = ("_divisibility", "_width")

    def __init__(self, divisibility: int = 1, width: int = 32) -> None:
        self._divisibility = divisibility
        self._width = width

    @property
    def divisibility(self) -> int:
        return self._divisibility

    @property
    def width(self) -> int:
        return self._width

    def same_as(self, other: Leaf) -> bool:
        return self is other

    def _with(self, other: Leaf, divisibility: int) -> Multiple:
        wide = other.width if isinstance(other, DynamicInt) else 0
        return Multiple(divisibility, max(self._width, wide))

    def _sum(self, other: Leaf) -> Multiple:
        return self._with(other, gcd(self._divisibility, divisibility(other)))

    def _product(self, other: Leaf) -> Multiple:
        return self._with(other, self._divisibility * divisibility(other))

    def _rest(self, other: Leaf) -> Multiple:
        return self._with(other, gcd(self._divisibility, divisibility(other)))

    def _quotient(self, other: Leaf) -> Multiple:
        exact = type(other) is int and other and self._divisibility % other == 0
        return self._with(other, self._divisibility // abs(other) if exact else 1)

    def _bits(self, other: Leaf) -> Multiple:
        powers = (number & -number for number in (self._divisibility, divisibility(other)))
        return self._with(other, gcd(*powers))

    __add__ = __radd__ = __sub__ = __rsub__ = _sum
    __mul__ = __rmul__ = _product
    __mod__ = _rest
    __floordiv__ = _quotient
    __and__ = __rand__ = __xor__ = __rxor__ = _bits

    def __rmod__(self, other: Leaf) -> Multiple:
        return self._rest(other)

    def __rfloordiv__(self, other: Leaf) -> Multiple:
        return self._with(other, 1)

    def __rshift__(self, bits: int) -> Multiple:
        return self._quotient(1 << bits)

    def __lshift__(self, bits: int) -> Multiple:
        return self._product(1 << bits)


def is_int(leaf: object) -> bool:
    """True for a leaf that may be an extent: an int or a `DynamicInt`."""
    return isinstance(leaf, int | DynamicInt)


def divisibility(leaf: Leaf) -> int:
    """The largest int known to divide `leaf`; 0 for the leaf 0."""
    if type(leaf) is int:
        return abs(leaf)
    return int(leaf.divisibility)


def same(left: Leaf, right: Leaf) -> bool:
    """True if two leaves are known to be equal."""
    if type(left) is int:
        return left == right if type(right) is int else False
    if type(right) is int:
        return False
    return bool(left.same_as(right))


def is_multiple(leaf: Leaf, divisor: Leaf) -> bool:
    """True if `leaf` is known to be a multiple of `divisor`."""
    if type(divisor) is int:
        return divisor != 0 and divisibility(leaf) % divisor == 0
    if type(leaf) is int:
        return leaf == 0
    if same(leaf, divisor):
        return True
    return leaf.quotient(divisor) is not None


def add(left: Leaf, right: Leaf) -> Leaf:
    """`left + right`."""
    if type(left) is int and left == 0:
        return right
    if type(right) is int and right == 0:
        return left
    if isinstance(left, DynamicInt):
        return left.plus(right)
    return right.plus(left) if isinstance(right, DynamicInt) else left + right


def add_inside(left: Leaf, right: Leaf) -> Leaf:
    """`left + right`, two parts of an offset."""
    if type(left) is int and left == 0:
        return right
    if type(right) is int and right == 0:
        return left
    return left + right


def sub(left: Leaf, right: Leaf) -> Leaf:
    """`left - right`."""
    if type(right) is int and right == 0:
        return left
    return 0 if same(left, right) else left - right


def mul(left: Leaf, right: Leaf) -> Leaf:
    """`left * right`; the right one may be a `ScaledBasis`."""
    short = _product_at_hand(left, right)
    if short is not None:
        return short
    if isinstance(left, DynamicInt):
        return left.times(right)
    return right.times(left) if isinstance(right, DynamicInt) and type(left) is int else left * right


def mul_inside(left: Leaf, right: Leaf) -> Leaf:
    """`left * right`, a coordinate and a stride."""
    short = _product_at_hand(left, right)
    return left * right if short is None else short


def _product_at_hand(left: Leaf, right: Leaf) -> Leaf | None:
    """A product that takes no arithmetic at run time, or one with a `ScaledBasis`; else None."""
    if type(left) is int:
        if left == 1:
            return right
        if type(right) is int:
            return left * right
        if left == 0 and is_int(right):
            return 0
    elif type(right) is int:
        if right == 1:
            return left
        if right == 0:
            return 0
    elif not isinstance(right, DynamicInt):
        return right.scaled(left)
    return None


def floor_div(left: Leaf, right: Leaf) -> Leaf:
    """`left // right`, exact where `left` is known to be a multiple."""
    if type(right) is int:
        if right == 1:
            return left
    elif same(left, right):
        return 1
    if type(left) is int and left == 0:
        return 0
    return left // right


def exact_div(left: Leaf, right: Leaf) -> Leaf:
    """`left // right` of a `left` that is taken to be a multiple: without a division where it is seen to be one."""
    if isinstance(left, DynamicInt) and isinstance(right, DynamicInt) and not same(left, right):
        found = left.quotient(right)
        if found is not None:
            return found
    return floor_div(left, right)


def mod(left: Leaf, right: Leaf) -> Leaf:
    """`left % right`."""
    if type(left) is int:
        return left % right if left else 0
    if type(right) is int:
        return 0 if left.divisibility % right == 0 else left % right
    return 0 if same(left, right) else left % right


def ceil_div_leaf(left: Leaf, right: Leaf) -> Leaf:
    """`left / right` rounded up."""
    if type(left) is int and type(right) is int:
        return -(-left // right)
    if is_multiple(left, right):
        return exact_div(left, right)
    if type(left) is not int:
        return left.ceil_div(right)
    if left > 0:
        return 1 if at_most(left, right) else add(floor_div(left - 1, right), 1)
    return floor_div(left, right)


def at_most(left: Leaf, right: Leaf) -> bool:
    """True if `left <= right` is known, extents being positive."""
    if type(left) is int:
        return left <= divisibility(right) if not left <= 1 else True
    return is_multiple(right, left)


def greatest_product(left: Leaf, right: Leaf) -> int | None:
    """A number that `left * right` is known never to exceed, neither being negative; else None."""
    if type(left) is int:
        left, right = right, left
    if type(left) is int:
        return left * right if left >= 0 and right >= 0 else None
    return left.greatest_product(right) if isinstance(left, DynamicInt) and is_int(right) else None
