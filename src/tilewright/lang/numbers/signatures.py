"""What editors and type checkers know of the operators of numbers: `Int32 + 1` is an Int32.

Only the types whose operators stay within the type are described. A result of any other pair, such as `Int8 + 1`,
follows the table of promotions in docs/language.md and is `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload


class ClosedInteger:
    """An integer type whose operators on itself and on a Python integer give the same type."""


class ClosedFloat:
    """A float type whose operators on itself and on a Python number give the same type."""


N = TypeVar("N")
R_co = TypeVar("R_co", covariant=True)
I = TypeVar("I", bound=ClosedInteger)  # noqa: E741
F = TypeVar("F", bound=ClosedFloat)


class _AmongIntegers(Protocol[N]):
    @overload
    def __call__(self, other: N | int, /) -> N: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class _AmongFloats(Protocol[N]):
    @overload
    def __call__(self, other: N | float, /) -> N: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class Operator(Protocol):
    """An operator that computes in the type of its operands: `+ - * // % **`."""

    @overload
    def __get__(self, number: I, cls: Any = None, /) -> _AmongIntegers[I]: ...
    @overload
    def __get__(self, number: F, cls: Any = None, /) -> _AmongFloats[F]: ...
    @overload
    def __get__(self, number: Any, cls: Any = None, /) -> Callable[[Any], Any]: ...


class Division(Protocol):
    """`/`, which takes integers to floats."""

    @overload
    def __get__(self, number: F, cls: Any = None, /) -> _AmongFloats[F]: ...
    @overload
    def __get__(self, number: Any, cls: Any = None, /) -> Callable[[Any], Any]: ...


class Result(Protocol[R_co]):
    """An operator that always gives an `R_co`. A plain function type would not be bound as a method is."""

    def __get__(self, number: Any, cls: Any = None, /) -> Callable[[Any], R_co]: ...
