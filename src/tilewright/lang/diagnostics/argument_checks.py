"""What public functions take: an argument of another kind is named, with the parameter and the call's line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar, cast

from tilewright.base.errors import CompileError
from tilewright.lang import leaves
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Integer, Numeric
from tilewright.layout import ComposedLayout, Layout, ScaledBasis, Swizzle

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """A kind of argument: its words, and what tells it."""

    words: str
    holds: Callable[[Any], bool]


def instance(words: str, *classes: type) -> Kind:
    """Objects of these classes."""
    return Kind(words, lambda value: isinstance(value, classes))


def _is_structured(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(item is None or _is_structured(item) for item in value)
    if isinstance(value, type):
        return False
    known = isinstance(value, int | Layout | ComposedLayout | Swizzle | ScaledBasis | Integral)
    return known or hasattr(value, "divisibility") or hasattr(value, "shape") or leaves.is_dynamic(value)


STRUCTURED = Kind("integers, a tuple of them, a layout or a tensor", _is_structured)
LAYOUT = instance("a layout", Layout, ComposedLayout)
INTEGER = instance("an integer", int, Integer)
NUMBER_TYPE = Kind("a number type", lambda value: isinstance(value, type) and issubclass(value, Numeric))
POSITIVE = Kind("a positive integer", lambda value: isinstance(value, int) and value > 0)
ANY = Kind("anything", lambda value: True)


def takes(*kinds: Kind) -> Callable[[F], F]:
    """Check the first parameters of a function; None is taken where it is the default.

    Raises:
        CompileError: an argument is of another kind.
    """

    def decorate(function: F) -> F:
        parameters = list(inspect.signature(function).parameters.values())[: len(kinds)]
        checks = tuple(zip(parameters, kinds, strict=True))

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for number, (parameter, kind) in enumerate(checks):
                value = args[number] if number < len(args) else kwargs.get(parameter.name, parameter.default)
                if value is not parameter.default and not kind.holds(value):
                    raise CompileError(
                        f"{function.__name__} takes {kind.words} as `{parameter.name}`, not {leaves.describe(value)}",
                        location=user_location(2),
                        values={parameter.name: value},
                        hint=f"{function.__name__}{_signature(function)}",
                    )
            return function(*args, **kwargs)

        return cast(F, checked)

    return decorate


def _signature(function: Callable[..., Any]) -> str:
    """The parameters as a call names them."""
    names = [name for name in inspect.signature(function).parameters if name not in ("loc", "ip", "_")]
    return f"({', '.join(names)})"
