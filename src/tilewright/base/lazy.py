"""Attributes that are computed, and modules that are imported, when first asked for."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any, Final, Generic, Self, TypeVar, overload

from tilewright.base.interrupts import uninterrupted

T = TypeVar("T")

_loaded: Final[dict[str, Any]] = {}


def object_at(place: str) -> Any:
    """What a module has under a name, which may be dotted, by `module:name`; it is imported where it was not."""
    found = _loaded.get(place)
    if found is None:
        module, _, name = place.partition(":")
        loaded = uninterrupted(lambda: importlib.import_module(module))
        found = _loaded[place] = operator.attrgetter(name)(loaded)
    return found


def function_at(place: str) -> Callable[..., Any]:
    """A function by `module:name`, whose module is imported when it is first called."""
    return lambda *args, **kwargs: object_at(place)(*args, **kwargs)


class cached_property(Generic[T]):
    """`functools.cached_property` without its lock: two threads may both compute a value, of which one is kept.

    Up to Python 3.11 that lock is one for all objects of a class. A process forked while another thread holds it
    would wait for it for ever.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._function(instance))
        return value
