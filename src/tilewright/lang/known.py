"""What is known of a runtime integer without its value: an upper bound where it is not negative, a divisor, and of
which extents of a tensor it is the product at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.lang.numeric import Numeric


@dataclass(frozen=True, eq=False)
class Whole:
    """A tensor whose size the call checks: the product of any of its runtime extents is at most `most`."""

    most: int


@dataclass(frozen=True)
class Share:
    """What a number is at most: the product of the extents of some modes of a checked tensor, times `scale`."""

    whole: Whole
    modes: frozenset[int]
    scale: int = 1

    @property
    def bound(self) -> int:
        return self.scale * self.whole.most


def share_of(number: Numeric | int) -> Share | None:
    """The share that a number has in a checked tensor, if any."""
    share: Share | None = getattr(number, "share", None)
    return share


def limited(share: Share | None, limit: int) -> Share | None:
    """None where a number of a type up to `limit` may have wrapped."""
    return None if share is None or share.bound > limit else share


def result_share(name: str, left: Numeric | int, right: Numeric | int) -> Share | None:
    """The share of `left name right`."""
    own, other = share_of(left), share_of(right)
    if name == "mul":
        if own is not None and other is not None:
            if own.whole is not other.whole or own.modes & other.modes:
                return None
            return Share(own.whole, own.modes | other.modes, own.scale * other.scale)
        share, factor = (own, bound_of(right)) if own is not None else (other, bound_of(left))
        return None if share is None or factor is None else Share(share.whole, share.modes, share.scale * factor)
    if name in ("floordiv", "mod", "shr", "min"):
        return own if bound_of(right) is not None else None
    return None


def bound_of(number: Numeric | int) -> int | None:
    """The greatest value that the number can have, None where it may be negative."""
    if isinstance(number, int):
        return number if number >= 0 else None
    if number.is_static:
        return int(number.value) if type(number).facts.kind != "f" and number.value >= 0 else None
    bound: int | None = getattr(number, "bound", None)
    share = share_of(number)
    if share is not None and (bound is None or share.bound < bound):
        return share.bound
    return type(number).max if bound is None and type(number).facts.kind == "u" else bound


def fits(number: Numeric, cls: type[Numeric]) -> bool:
    """True for an integer that is known to be one of the integer type `cls`."""
    if number.is_static:
        return bool(cls.min <= number.value <= cls.max)
    bound = bound_of(number)
    if bound is not None and bound <= cls.max:
        return True
    return number.width < cls.width or type(number) is cls


def result_bound(name: str, low: int | None, high: int | None, right: Numeric, limit: int) -> int | None:
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


def _divisor(number: Numeric) -> int:
    return abs(int(number.value)) if number.is_static else getattr(number, "divisibility", 1)


def result_divisibility(name: str, left: Numeric, right: Numeric) -> int:
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
