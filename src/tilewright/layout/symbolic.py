"""Symbolic integers for layouts outside kernels: polynomials in named unknowns, kept in normal form.

`sym_int(8)` is an unknown multiple of 8. Sums, products, exact quotients and remainders are brought to
one normal form, so that equal expressions are equal objects: `(n // 32) * 32 + n % 32` is `n` again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from math import gcd
from typing import Any, NamedTuple

from tilewright.base.errors import LayoutError, shown
from tilewright.layout.dynamic import DynamicInt

_fresh = count()


class _Unknown(NamedTuple):
    """The symbol `name` divided by its known divisor `unit`."""

    name: str
    unit: int

    def sort_key(self) -> str:
        return f"0{self.name}/{self.unit}"

    def value(self, env: Mapping[str, int]) -> int:
        if self.name not in env:
            raise LayoutError(f"{self.name} has no value", values={"values for": ", ".join(map(str, env)) or "nothing"})
        number = env[self.name]
        if not isinstance(number, int):
            raise LayoutError(f"the value of {self.name} must be an integer", values={self.name: repr(number)})
        quotient, rest = divmod(number, self.unit)
        if rest:
            raise LayoutError(f"{self.name} must be a multiple of {self.unit}", values={self.name: env[self.name]})
        return quotient


class _Term(NamedTuple):
    """An operation with no polynomial form: `left // right`, `left & right` or `left ^ right`."""

    kind: str
    left: SymInt
    right: SymInt | int

    def sort_key(self) -> str:
        return f"1{self.left.expression()}{self.kind}{_expression_of(self.right)}"

    def value(self, env: Mapping[str, int]) -> int:
        left, right = self.left.evaluate(env), evaluate(self.right, env)
        if self.kind == "//" and right == 0:
            raise LayoutError("division by 0", values={"divisor": _expression_of(self.right), "values": dict(env)})
        return _OPERATIONS[self.kind](left, right)


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
}

_Monomial = tuple[Any, ...]
_Terms = dict[_Monomial, int]


class SymInt(DynamicInt):
    """A polynomial with integer coefficients in unknowns.

    `SymInt(width, divisibility=d)` is a new unknown, as `sym_int` makes it.
    """

    __slots__ = ("_hash", "_terms", "_width")
    _hash: int
    _terms: tuple[tuple[_Monomial, int], ...]
    _width: int

    def __init__(self, terms: _Terms | int = 32, width: int = 32, *, divisibility: int = 1) -> None:
        if isinstance(terms, int):
            width, terms = terms, _unknown(divisibility, terms, None)
        try:
            ordered = sorted(terms.items(), key=lambda item: [atom.sort_key() for atom in item[0]])
        except (AttributeError, TypeError):
            raise LayoutError("a SymInt is made of its width, 32 or 64", values={"given": shown(terms)}) from None
        object.__setattr__(self, "_terms", tuple(ordered))
        object.__setattr__(self, "_width", width)
        object.__setattr__(self, "_hash", hash(self._terms))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("SymInt is immutable")

    @property
    def divisibility(self) -> int:
        return gcd(*(coefficient for _, coefficient in self._terms))

    @property
    def width(self) -> int:
        return self._width

    def same_as(self, other: object) -> bool:
        return isinstance(other, SymInt) and self._terms == other._terms

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.dynamic_text()

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymInt, (dict(self._terms), self._width)

    def __bool__(self) -> bool:
        raise LayoutError("a symbolic integer has no truth value", values={"integer": self.expression()})

    def _unordered(self, other: object) -> bool:
        raise LayoutError(
            "symbolic integers have no order", values={"left": self.expression(), "right": _expression_of(other)}
        )

    __lt__ = __le__ = __gt__ = __ge__ = _unordered

    def expression(self) -> str:
        """The polynomial in words, such as `8*n + 1`."""
        parts = []
        for monomial, coefficient in self._terms:
            atoms = [_atom_text(atom) for atom in monomial]
            if coefficient != 1 or not atoms:
                atoms.insert(0, str(coefficient))
            parts.append("*".join(atoms))
        return " + ".join(parts)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value when each symbol named in `env` has the value given there."""
        total = 0
        for monomial, coefficient in self._terms:
            for atom in monomial:
                coefficient *= atom.value(env)
            total += coefficient
        return total

    def __add__(self, other: object) -> Any:
        return _combine(self, other, 1)

    def __sub__(self, other: object) -> Any:
        return _combine(self, other, -1)

    def __rsub__(self, other: object) -> Any:
        return _combine(self * -1, other, 1)

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, other: object) -> Any:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        terms: _Terms = {}
        for left, a in self._terms:
            for right, b in _terms_of(other):
                monomial = tuple(sorted(left + right, key=lambda atom: atom.sort_key()))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _normal(terms, _width(self, other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        return _floor_div(self, other)

    def __rfloordiv__(self, other: object) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return _floor_div(_constant(other, self._width), self)

    def __mod__(self, other: object) -> Any:
        if not isinstance(other, int | SymInt):
            return NotImplemented
        return self - other * (self // other)

    def __rmod__(self, other: object) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return other - self * (other // self)

    def __rshift__(self, bits: int) -> Any:
        return self // (1 << bits)

    def __lshift__(self, bits: int) -> Any:
        return self * (1 << bits)

    def __and__(self, other: object) -> Any:
        return 0 if other == 0 else _opaque("&", self, other)

    def __xor__(self, other: object) -> Any:
        return self if other == 0 else _opaque("^", self, other)

    __rand__ = __and__
    __rxor__ = __xor__


def sym_int(divisibility: int = 1, width: int = 32, name: str | None = None) -> SymInt:
    """An unknown integer, a multiple of `divisibility`, that travels in `width` bits (32 or 64).

    Two unknowns of the same name are the same number; without a name it is a new one.
    """
    return SymInt(_unknown(divisibility, width, name), width)


def _unknown(divisibility: int, width: int, name: str | None) -> _Terms:
    if width not in (32, 64):
        raise LayoutError("a symbolic integer has 32 or 64 bits", values={"width": width})
    if divisibility < 1:
        raise LayoutError("divisibility must be positive", values={"divisibility": divisibility})
    return {(_Unknown(name or f"s{next(_fresh)}", divisibility),): divisibility}


def sym_int32(divisibility: int = 1, name: str | None = None) -> SymInt:
    """`sym_int` of 32 bits."""
    return sym_int(divisibility, 32, name)


def sym_int64(divisibility: int = 1, name: str | None = None) -> SymInt:
    """`sym_int` of 64 bits."""
    return sym_int(divisibility, 64, name)


def evaluate(value: Any, env: Mapping[str, int]) -> Any:
    """`value` with every symbol replaced: a leaf, or a tuple of such."""
    if isinstance(value, tuple):
        return tuple(evaluate(item, env) for item in value)
    return value.evaluate(env) if hasattr(value, "evaluate") else value


def _expression_of(value: object) -> str:
    return value.expression() if isinstance(value, SymInt) else str(value)


def _atom_text(atom: _Unknown | _Term) -> str:
    if isinstance(atom, _Unknown):
        return atom.name if atom.unit == 1 else f"({atom.name}/{atom.unit})"
    return f"(({atom.left.expression()}) {atom.kind} ({_expression_of(atom.right)}))"


def _terms_of(value: SymInt | int) -> tuple[tuple[_Monomial, int], ...]:
    return value._terms if isinstance(value, SymInt) else (((), value),)


def _width(left: SymInt, right: object) -> int:
    return max(left.width, right.width) if isinstance(right, SymInt) else left.width


def _constant(value: int, width: int) -> SymInt:
    return SymInt({(): value}, width)


def _normal(terms: _Terms, width: int) -> SymInt | int:
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return SymInt(kept, width)


def _combine(left: SymInt | int, right: object, sign: int) -> Any:
    if not isinstance(right, int | SymInt):
        return NotImplemented
    if isinstance(left, int):
        return left + right * sign
    terms = dict(left._terms)
    for monomial, coefficient in _terms_of(right):
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _normal(terms, _width(left, right))


def _opaque(kind: str, left: SymInt, right: object) -> Any:
    if not isinstance(right, int | SymInt):
        return NotImplemented
    return SymInt({(_Term(kind, left, right),): 1}, _width(left, right))


def _floor_div(left: SymInt, right: SymInt | int) -> Any:
    """Terms that `right` divides leave the floor; the others stay in an opaque quotient."""
    if isinstance(right, int) and right == 0:
        raise ZeroDivisionError("symbolic integer divided by zero")
    exact: _Terms = {}
    rest: _Terms = {}
    divisor = _terms_of(right)
    for monomial, coefficient in left._terms:
        quotient = _exact_quotient(monomial, coefficient, divisor[0]) if len(divisor) == 1 else None
        if quotient is None:
            rest[monomial] = coefficient
        else:
            exact[quotient[0]] = quotient[1]
    width = _width(left, right)
    whole, remainder = _normal(exact, width), _normal(rest, width)
    if isinstance(remainder, int):
        return whole + (remainder // right if isinstance(right, int) else _quotient_of_constant(remainder, right))
    if isinstance(right, SymInt) and remainder.same_as(right):
        return whole + 1
    return whole + _reduced(remainder, right)


def _quotient_of_constant(value: int, right: SymInt) -> SymInt | int:
    return 0 if value == 0 else SymInt({(_Term("//", _constant(value, right.width), right),): 1}, right.width)


def _reduced(left: SymInt, right: SymInt | int) -> Any:
    """`left // right` with the common static factor cancelled."""
    factor = gcd(left.divisibility, right if isinstance(right, int) else right.divisibility)
    if factor > 1:
        left_reduced = SymInt({m: c // factor for m, c in left._terms}, left.width)
        if isinstance(right, int):
            right //= factor
        else:
            right = SymInt({m: c // factor for m, c in right._terms}, right.width)
        return left_reduced // right
    return SymInt({(_Term("//", left, right),): 1}, _width(left, right))


def _exact_quotient(
    monomial: _Monomial, coefficient: int, divisor: tuple[_Monomial, int]
) -> tuple[_Monomial, int] | None:
    atoms = list(monomial)
    for atom in divisor[0]:
        if atom not in atoms:
            return None
        atoms.remove(atom)
    if coefficient % divisor[1]:
        return None
    return tuple(atoms), coefficient // divisor[1]
