"""The range of a runtime integer: an upper bound where it is not negative, a divisor, and of which extents of a tensor
it is the product at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.base.dtypes import DType


class Number(Protocol):
    """What this module reads of a number of the language."""

    value: Any

    @property
    def facts(self) -> DType: ...

    @property
    def is_static(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class SizeLimit:
    """A tensor whose size the call checks: the product of any of its runtime extents is at most `limit`."""

    limit: int


@dataclass(frozen=True)
class ExtentProduct:
    """What a number is at most: the product of the extents of some modes of a checked tensor, times `scale`."""

    tensor: SizeLimit
    modes: frozenset[int]
    scale: int = 1

    @property
    def bound(self) -> int:
        return self.scale * self.tensor.limit


def extent_product_of(number: Number | int) -> ExtentProduct | None:
    """The extents of a checked tensor whose product the number does not exceed, if any are known."""
    product: ExtentProduct | None = getattr(number, "extent_product", None)
    return product


def unless_wrapped(product: ExtentProduct | None, limit: int) -> ExtentProduct | None:
    """None where a number of a type up to `limit` may have wrapped."""
    return None if product is None or product.bound > limit else product


def result_extent_product(name: str, left: Number | int, right: Number | int) -> ExtentProduct | None:
    """The extents that bound `left name right`."""
    own, other = extent_product_of(left), extent_product_of(right)
    if name == "mul":
        if own is not None and other is not None:
            if own.tensor is not other.tensor or own.modes & other.modes:
                return None
            return ExtentProduct(own.tensor, own.modes | other.modes, own.scale * other.scale)
        product, factor = (own, upper_bound(right)) if own is not None else (other, upper_bound(left))
        return (
            None
            if product is None or factor is None
            else ExtentProduct(product.tensor, product.modes, product.scale * factor)
        )
    if name in ("floordiv", "mod", "shr", "min"):
        return own if upper_bound(right) is not None else None
    return None


def upper_bound(number: Number | int) -> int | None:
    """The greatest value that the number can have, None where it may be negative."""
    if isinstance(number, int):
        return number if number >= 0 else None
    if number.is_static:
        return int(number.value) if number.facts.kind != "f" and number.value >= 0 else None
    bound: int | None = getattr(number, "bound", None)
    product = extent_product_of(number)
    if product is not None and (bound is None or product.bound < bound):
        return product.bound
    return number.facts.max if bound is None and number.facts.kind == "u" else bound


def fits(number: Number, dtype: DType) -> bool:
    """True for an integer that is known to be one of the integer type `dtype`."""
    if number.is_static:
        return bool(dtype.min <= number.value <= dtype.max)
    bound = upper_bound(number)
    if bound is not None and bound <= dtype.max:
        return True
    return number.facts.width < dtype.width or number.facts == dtype


def result_bound(name: str, low: int | None, high: int | None, right: Number, limit: int) -> int | None:
    """The bound of `left name right`, from the bounds `low` and `high` of both; None beyond `limit`."""
    if low is None or high is None:
        return None
    if name == "floordiv" and right.is_static and right.value > 0:
        return low // int(right.value)
    results = {
        "add": low + high, "mul": low * high, "floordiv": low, "shr": low, "mod": min(low, max(high - 1, 0)),
        "min": min(low, high), "max": max(low, high), "and": min(low, high),
    }  # fmt: skip
    bound = results.get(name)
    return bound if bound is not None and bound <= limit else None


def _divisor(number: Number) -> int:
    return abs(int(number.value)) if number.is_static else getattr(number, "divisibility", 1)


def result_divisibility(name: str, left: Number, right: Number) -> int:
    """A divisor of `left name right`."""
    a, b = _divisor(left), _divisor(right)
    if name in ("add", "sub", "mod", "min", "max"):
        return math.gcd(a, b) or 1
    if name == "mul":
        return max(a * b, 1)
    if name == "floordiv" and right.is_static and b and a % b == 0:
        return max(a // b, 1)
    if name == "shl" and right.is_static:
        return max(a << right.value, 1)
    if name == "shr" and right.is_static and a % (1 << right.value) == 0:
        return max(a >> right.value, 1)
    if name in ("and", "or", "xor"):
        low, high = sorted((a & -a, b & -b))  # the powers of two in them; 0 for the number 0
        return high if name == "and" else low or high or 1
    return 1
