"""The arithmetic of the layout algebra on integers of the language: it never wraps without a word.

A product or sum is computed in 32 bits where what is known of its parts shows that it fits, else in 64.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tilewright.lang.numbers import polynomials
from tilewright.lang.numbers.integer_range import result_extent_product, upper_bound
from tilewright.layout.dynamic import DynamicInt

if TYPE_CHECKING:
    from mlir import ir

T = TypeVar("T")
_INT32_MAX = (1 << 31) - 1


class ExactInteger(DynamicInt):
    """What an `Integer` is to the layout algebra."""

    wraps = True

    def times(self, factor: Any) -> Any:
        """The product, in 32 bits where what is known shows that it fits, else in 64."""
        return operator.mul(_roomy(cast(Any, self), self.greatest_product(factor), factor), factor)

    def plus(self, term: Any) -> Any:
        """The sum, in 32 bits where what is known shows that it fits, else in 64."""
        low, high = upper_bound(cast(Any, self)), upper_bound(term)
        greatest = None if low is None or high is None else low + high
        return operator.add(_roomy(cast(Any, self), greatest, term), term)

    def ceil_div(self, divisor: Any) -> Any:
        """The quotient rounded up, right up to the greatest number of the type."""
        number = cast(Any, self)
        greatest, room = upper_bound(number), upper_bound(divisor)
        if greatest is not None and room is not None and greatest + room <= type(number).max:
            quotient = (number + (divisor - 1)) // divisor
        elif not type(number).signed and number.width < 64:
            return number.widened().ceil_div(divisor)
        else:
            quotient = (number - 1) // divisor + 1
        if isinstance(quotient, ExactInteger) and greatest is not None:
            made = cast(Any, quotient)
            if not made.is_static:
                quotient = made.assuming(bound=greatest if made.bound is None else min(greatest, made.bound))
                quotient.extent_product = number.extent_product
        return quotient

    @property
    def greatest(self) -> int | None:
        return upper_bound(cast(Any, self))

    def greatest_product(self, other: Any) -> int | None:
        number = cast(Any, self)
        product = result_extent_product("mul", number, other)
        low, high = upper_bound(number), upper_bound(other)
        found = [product.bound] if product is not None else []
        found += [low * high] if low is not None and high is not None else []
        return min(found, default=None)


def _roomy(number: Any, greatest: int | None, other: Any) -> Any:
    """`number` for an operation with `other` whose result is at most `greatest`."""
    if number.width >= 64 or getattr(other, "width", 32) >= 64:
        return number
    return number if number.width == 32 and greatest is not None and greatest <= _INT32_MAX else number.widened()


def unwidened(value: ir.Value) -> ir.Value:
    """What was widened to `value`, signed."""
    while getattr(value.owner, "name", "") == "arith.extsi":
        value = value.owner.operands[0]
    return value


def evaluated(terms: polynomials.Terms, atoms: polynomials.Atoms, cls: Callable[[Any], T]) -> T | int:
    """The value of a polynomial: a Python number where it is constant."""
    total: Any = 0
    for monomial, factor in terms.items():
        product: Any = factor
        for number in monomial:
            product = operator.mul(cls(atoms.values[number]), product)
        total = product + total
    return total
