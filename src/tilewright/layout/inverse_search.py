"""Left inverses of layouts whose strides do not nest, found by search.

A layout `R` takes its argument apart in a chain of digits, `x = x0 + p0*(x1 + p1*(...))`, and is linear in them. For
each chain of primes the strides of R solve a linear system in integers, one equation for each element.
A chain of primes refines every other chain, so when none has a solution there is no left inverse.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.layout.inttuple import flat
from tilewright.layout.layout import Layout, trusted

SEARCH_LIMIT = 256
"""The largest cosize for which the search is tried."""


def search_left_inverse(layout: Layout, cosize: int) -> Layout | None:
    """Some `R` with `R(layout(k)) = k` for every k, or None if there is none; `layout` is injective."""
    points = values(layout)
    primes = _primes(cosize)
    for chain in _chains(primes, cosize):
        strides = _solve([_digits(x, chain) for x in points], list(range(len(points))))
        if strides is not None:
            # The highest digit is what is left, so its extent only has to cover the values below the cosize.
            top = -(-cosize // _product(chain))
            return trusted((*chain, top), tuple(strides))
    return None


def values(layout: Layout) -> list[int]:
    """The value at each index of a static layout."""
    points = [0]
    for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True):
        points = [base + i * step for i in range(extent) for base in points]
    return points


def _primes(limit: int) -> list[int]:
    return [n for n in range(2, limit + 1) if all(n % p for p in range(2, int(n**0.5) + 1))]


def _product(chain: tuple[int, ...]) -> int:
    result = 1
    for p in chain:
        result *= p
    return result


def _chains(primes: list[int], limit: int) -> Iterator[tuple[int, ...]]:
    """All sequences of primes with a product below `limit` that no further prime fits behind."""
    # Only the longest chains: a shorter one is the case where further strides are multiples of each other.
    extended = False
    for p in primes:
        if p >= limit:
            break
        extended = True
        for rest in _chains(primes, -(-limit // p)):
            yield (p, *rest)
    if not extended:
        yield ()


def _digits(x: int, chain: tuple[int, ...]) -> list[int]:
    digits = []
    for p in chain:
        x, digit = divmod(x, p)
        digits.append(digit)
    return [*digits, x]


def _solve(rows: list[list[int]], right: list[int]) -> list[int] | None:
    """Integers `s` with `rows @ s = right`, or None.

    Unimodular column operations bring the rows to echelon form one by one; each row then fixes one unknown or is
    a check. `basis` holds the columns of the accumulated transformation, so `s = basis @ y`.
    """
    # Integers, not fractions: a solution in fractions is no layout, and rounding it is no solution. Column operations,
    # because they change the unknowns and leave each element's equation alone.
    width = len(rows[0])
    basis = [[int(i == j) for j in range(width)] for i in range(width)]
    fixed: list[int] = []
    for row, value in zip(rows, right, strict=True):
        image = [sum(a * b for a, b in zip(row, column, strict=True)) for column in basis]
        known = len(fixed)
        value -= sum(a * y for a, y in zip(image, fixed, strict=False))  # what the unknowns fixed so far leave over
        pivot = _reduce_columns(image, basis, known)
        if pivot == 0:
            if value:
                return None
        elif value % pivot:
            return None
        else:
            fixed.append(value // pivot)
    fixed += [0] * (width - len(fixed))  # no element asks for these: any number will do
    return [sum(y * column[i] for y, column in zip(fixed, basis, strict=True)) for i in range(width)]


def _reduce_columns(image: list[int], basis: list[list[int]], known: int) -> int:
    """Euclid's algorithm on the columns from `known` on: leaves their gcd, which it returns, in the first."""
    for other in range(known + 1, len(image)):
        while image[other]:
            factor = image[known] // image[other]
            image[known] -= factor * image[other]
            basis[known] = [a - factor * b for a, b in zip(basis[known], basis[other], strict=True)]
            image[known], image[other] = image[other], image[known]
            basis[known], basis[other] = basis[other], basis[known]
    return image[known] if known < len(image) else 0
