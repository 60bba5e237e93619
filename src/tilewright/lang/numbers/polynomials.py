"""Run-time integers as polynomials in what is not taken apart, read off the operations that made them.

So the layout algebra sees that `m*n` is `n` times `m`, however the program computed it. Extents and strides are taken
not to overflow: a widened product is the product of what was widened.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tilewright.lang.numbers.arithmetic import constant_of

if TYPE_CHECKING:
    from mlir import ir

Monomial = tuple[int, ...]
"""Numbers of atoms, sorted, each as often as it is a factor."""

Terms = dict[Monomial, int]
"""The coefficient of each monomial; none is 0."""

_MOST_TERMS = 32
_SHIFTS = ("arith.shrsi", "arith.shrui")
_DIVISIONS = (*_SHIFTS, "arith.floordivsi", "arith.divui")
_WIDENINGS = ("arith.extsi", "arith.extui")


class Atoms:
    """The values that polynomials of one computation are made of, numbered as they are met."""

    def __init__(self) -> None:
        self.values: list[ir.Value] = []
        self._numbers: dict[object, int] = {}
        self._terms: dict[ir.Value, Terms] = {}

    def terms(self, value: ir.Value) -> Terms:
        """The polynomial of `value`."""
        found = self._terms.get(value)
        if found is None:
            found = self._terms[value] = self._taken_apart(value)
        return found

    def _taken_apart(self, value: ir.Value) -> Terms:
        owner = value.owner
        name = getattr(owner, "name", "")
        known = constant_of(value) if name == "arith.constant" else None
        if known is not None:
            return {(): known} if known else {}
        if name in _WIDENINGS:
            return self.terms(owner.operands[0])
        if name == "arith.addi" or name == "arith.subi":
            left, right = map(self.terms, owner.operands)
            return self._limited(value, _sum(left, right, 1 if name == "arith.addi" else -1))
        if name == "arith.muli":
            left, right = map(self.terms, owner.operands)
            return self._limited(value, _product(left, right))
        if name == "arith.shli" and (amount := constant_of(owner.operands[1])) is not None:
            return {atoms: factor << amount for atoms, factor in self.terms(owner.operands[0]).items()}
        if name in _DIVISIONS and (number := constant_of(owner.operands[1])) is not None:
            return self._divided(value, 1 << number if name in _SHIFTS else number)
        return self._atom(value)

    def _divided(self, value: ir.Value, divisor: int) -> Terms:
        inside = self.terms(value.owner.operands[0])
        if divisor > 0 and all(factor % divisor == 0 for factor in inside.values()):
            return {atoms: factor // divisor for atoms, factor in inside.items()}
        return self._atom(value, (divisor, tuple(sorted(inside.items()))))

    def _limited(self, value: ir.Value, terms: Terms) -> Terms:
        return terms if len(terms) <= _MOST_TERMS else self._atom(value)

    def _atom(self, value: ir.Value, key: object = None) -> Terms:
        """`value` itself; the same atom as another of the same `key`."""
        number = self._numbers.setdefault(value if key is None else key, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return {(number,): 1}


def _sum(left: Terms, right: Terms, sign: int) -> Terms:
    total = dict(left)
    for atoms, factor in right.items():
        total[atoms] = total.get(atoms, 0) + sign * factor
    return {atoms: factor for atoms, factor in total.items() if factor}


def _product(left: Terms, right: Terms) -> Terms:
    total: Terms = {}
    for a, factor in left.items():
        for b, other in right.items():
            atoms = tuple(sorted(a + b))
            total[atoms] = total.get(atoms, 0) + factor * other
    return {atoms: factor for atoms, factor in total.items() if factor}


def quotient(left: Terms, right: Terms) -> Terms | None:
    """`left / right` where it is a polynomial, else None: by one term, or of a multiple of `right` itself."""
    if not right:
        return None
    if len(right) > 1:
        return _ratio(left, right)
    ((atoms, factor),) = right.items()
    result: Terms = {}
    for monomial, coefficient in left.items():
        rest = Counter(monomial)
        rest.subtract(atoms)
        if coefficient % factor or min(rest.values(), default=0) < 0:
            return None
        result[tuple(sorted(rest.elements()))] = coefficient // factor
    return result


def _ratio(left: Terms, right: Terms) -> Terms | None:
    """`left / right` where it is a number."""
    if left.keys() != right.keys():
        return None
    atoms = next(iter(right))
    ratio, rest = divmod(left[atoms], right[atoms])
    return {(): ratio} if not rest and all(left[item] == ratio * right[item] for item in right) else None
