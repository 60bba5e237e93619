"""What is known of a runtime integer without its value: an upper bound where it is not negative, and a divisor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.lang.numeric import Numeric


def bound_of(number: Numeric) -> int | None:
    """The greatest value that the number can have, None where it may be negative."""
    if number.is_static:
        return int(number.value) if type(number).facts.kind != "f" and number.value >= 0 else None
    bound: int | None = getattr(number, "bound", None)
    return type(number).max if bound is None and type(number).facts.kind == "u" else bound


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
