"""Division by a number that is known only at run time but the same for many dividends.

The number's reciprocal is computed once (T. Granlund, P. Montgomery, "Division by Invariant Integers using
Multiplication", PLDI 1994): with `l = ceil(log2 d)` and `m = floor(2**32 * (2**l - d) / d) + 1` the quotient of any
unsigned 32-bit `n` is `(t + ((n - t) >> min(l, 1))) >> max(l - 1, 0)`, where `t = (m * n) >> 32`.
"""

from __future__ import annotations

from typing import Any, Self

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.integer_range import upper_bound
from tilewright.lang.numbers.numeric import Boolean, Int32, Integer, Numeric, Uint32, Uint64, as_numeric


class FastDivmodDivisor:
    """A positive divisor: `n // d`, `n % d` and `divmod(n, d)` are exact for every `n`, rounded down.

    Dividends and divisors of 64 bits, and divisors known while compiling, take the ordinary division; quotient and
    remainder have the dividend's type. A divisor that turns out to be 0 or negative at run time gives meaningless
    numbers, and so does one beyond 32 bits of a negative dividend of 32.

    Raises:
        CompileError: the divisor is not an integer of up to 64 bits, or is known not to be positive.
    """

    def __init__(
        self, divisor: Any, is_power_of_2: bool | None = None, *, loc: object = None, ip: object = None
    ) -> None:
        number = as_numeric(divisor)
        if not isinstance(number, Integer) or number.width > 64 or (number.is_static and number.value <= 0):
            raise CompileError(
                "a divisor is a positive integer of up to 64 bits",
                location=user_location(),
                values={"divisor": divisor},
            )
        self._divisor = number if number.width >= 32 else Int32(number)
        self._factors = None if number.is_static or number.width > 32 else _factors(Uint32(self._divisor))

    @property
    def divisor(self) -> Integer:
        """The number itself, in host code and in kernels."""
        return self._divisor

    def __rfloordiv__(self, dividend: Any) -> Numeric:
        return self._quotient(as_numeric(dividend))

    def __rmod__(self, dividend: Any) -> Numeric:
        return self.__rdivmod__(dividend)[1]

    def __rdivmod__(self, dividend: Any) -> tuple[Numeric, Numeric]:
        number = as_numeric(dividend)
        quotient = self._quotient(number)
        return quotient, number - quotient * _as(self._divisor, type(quotient))

    def _quotient(self, number: Numeric) -> Numeric:
        if not isinstance(number, Integer):
            raise CompileError(f"a {type(number)} divided by a FastDivmodDivisor", location=user_location(3))
        if self._divisor.width > 32 and not self._divisor.is_static:
            return (type(number) if number.width >= 32 else Int32)(type(self._divisor)(number) // self._divisor)
        if self._factors is None or number.width > 32 or number.is_static:
            quotient: Numeric = number // _as(self._divisor, type(number) if number.width >= 32 else Int32)
            return quotient
        cls = Uint32 if type(number) is Uint32 else Int32
        dividend = cls(number)
        if cls is Uint32 or upper_bound(number) is not None:
            return cls(self._divide(Uint32(dividend)))
        sign = dividend >> 31  # all ones below zero: floor(n / d) is ~(~n // d) there
        return Int32(self._divide(Uint32(dividend ^ sign))) ^ sign

    def _divide(self, n: Uint32) -> Uint32:
        assert self._factors is not None
        factor, first, second = self._factors
        t = Uint32((Uint64(n) * Uint64(factor)) >> 32)
        return Uint32((t + ((n - t) >> first)) >> second)

    def __extract_mlir_values__(self) -> list[Any]:
        if self._divisor.is_static:
            return []
        return [number.ir_value() for number in (self._divisor, *(self._factors or ()))]

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        if self._divisor.is_static:
            return self
        made = object.__new__(type(self))
        divisor, *factors = values
        made._divisor = type(self._divisor).from_ir(divisor)
        made._factors = None
        if self._factors is not None:
            factor, first, second = map(Uint32.from_ir, factors)
            made._factors = factor, first, second
        return made

    def __tw_structure__(self) -> tuple[object, ...]:
        """What may not change in a region."""
        return type(self._divisor), self._divisor.value if self._divisor.is_static else None

    def __str__(self) -> str:
        return f"FastDivmodDivisor({self._divisor})"

    __repr__ = __str__


class FastDivmodDivisorV2(FastDivmodDivisor):
    """The same: here `.divisor` is readable in kernels either way."""


def fast_divmod_create_divisor(divisor: Any, *, loc: object = None, ip: object = None) -> FastDivmodDivisor:
    """`FastDivmodDivisor(divisor)`."""
    return FastDivmodDivisor(divisor)


def fast_divmod_create_divisor_v2(divisor: Any, *, loc: object = None, ip: object = None) -> FastDivmodDivisorV2:
    """`FastDivmodDivisorV2(divisor)`."""
    return FastDivmodDivisorV2(divisor)


def _as(number: Integer, cls: type[Numeric]) -> Numeric:
    return cls(int(number.value)) if number.is_static else cls(number)


def _factors(d: Uint32) -> tuple[Uint32, Uint32, Uint32]:
    """(m, min(l, 1), max(l - 1, 0)) of the formula above."""
    below = (d - 1).ir_value()
    zero_is_fine = {"is_zero_poison": build.attribute("false")}
    zeros = Uint32.from_ir(build.value("llvm.intr.ctlz", below.type, (below,), zero_is_fine))
    bits = Uint32(32) - zeros
    factor = Uint32(((((Uint64(1) << Uint64(bits)) - Uint64(d)) << 32) // Uint64(d)) + 1)
    first = Uint32(Boolean(d > 1))
    return factor, first, bits - first
