"""Exact fractions, as scales of basis elements. `Ratio(1, 2)` prints `1/2`; it is reduced only when asked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tilewright.base.errors import ArgumentError, shown


class Ratio:
    """`numerator / denominator`, both ints.

    Raises:
        ArgumentError: one of them is no int, or the denominator is 0.
    """

    __slots__ = ("denominator", "numerator")
    numerator: int
    denominator: int

    def __init__(self, numerator: int, denominator: int) -> None:
        if type(numerator) is not int or type(denominator) is not int:
            raise ArgumentError(
                "a Ratio is of two ints", values={"numerator": shown(numerator), "denominator": shown(denominator)}
            )
        if denominator == 0:
            raise ArgumentError("the denominator of a Ratio is 0", values={"numerator": numerator})
        object.__setattr__(self, "numerator", numerator)
        object.__setattr__(self, "denominator", denominator)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Ratio is immutable")

    def is_integral(self) -> bool:
        """Whether the denominator divides the numerator."""
        return self.numerator % self.denominator == 0

    def reduced(self) -> Ratio:
        """The same number in lowest terms, the denominator positive."""
        lowest = self._fraction()
        return Ratio(lowest.numerator, lowest.denominator)

    def to(self, dtype: type) -> Any:
        """As a `Ratio`, a `float`, or an `int`, rounded down."""
        if dtype is Ratio:
            return self
        if dtype is float:
            return self.numerator / self.denominator
        if dtype is int:
            return self.numerator // self.denominator
        raise ArgumentError(f"a Ratio becomes a Ratio, float or int, not {dtype!r}")

    def __mul__(self, other: object) -> Ratio:
        if isinstance(other, Ratio):
            return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)
        return Ratio(self.numerator * other, self.denominator) if type(other) is int else NotImplemented

    __rmul__ = __mul__

    def same_as(self, other: object) -> bool:
        """True if both are one number."""
        return isinstance(other, Ratio | int) and self._fraction() == _as_fraction(other)

    __eq__ = same_as

    def __hash__(self) -> int:
        return hash(self._fraction())

    def __str__(self) -> str:
        return f"{self.numerator}/{self.denominator}"

    def __repr__(self) -> str:
        return f"Ratio({self.numerator}, {self.denominator})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ratio, (self.numerator, self.denominator)

    def _fraction(self) -> Fraction:
        return Fraction(self.numerator, self.denominator)


def _as_fraction(number: Ratio | int) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(number.numerator, number.denominator)
