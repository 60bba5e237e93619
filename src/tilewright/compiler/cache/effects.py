"""What tracing leaves on objects that it reads: kernels of public sources set `self.stages = 4` while they are traced.

A hit sets it again, as far as it can be written down: numbers, text, types, layouts, atoms, containers, structs of
shared memory, objects that existed before. Traced values are of no use after tracing and do not come back. Whatever
else tracing changes makes a function unprovable.
"""

from __future__ import annotations

import enum
import importlib
import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tilewright.compiler.cache.objects import is_traced
from tilewright.compiler.cache.owners import owner_of_class, resolved
from tilewright.compiler.cache.watch import Watch

_MISSING: Final = object()


class UnwritableError(Exception):
    """A value that cannot be written down."""


class TracedError(UnwritableError):
    """A value of the traced program, or an object that holds one."""


class EffectsError(Exception):
    """Changes that a hit could not make again."""


def effects(watch: Watch, met: Sequence[Any]) -> str:
    """The attributes that changed since a walk, which met these objects, as text for `apply`.

    Raises:
        EffectsError: an attribute is gone, or one that was there holds what cannot be written down.
    """
    writer = _Writer(met)
    found = [item for holder, before in watch.objects() for item in _of_object(holder, before, writer)]
    return json.dumps([found, writer.made], separators=(",", ":"))


def _of_object(holder: Any, before: Mapping[str, Any], writer: _Writer) -> Iterator[list[Any]]:
    now = vars(holder)
    if not before.keys() <= now.keys():
        raise EffectsError(f"tracing deletes attributes of {type(holder).__qualname__}")
    for name, value in now.items():
        if before.get(name, _MISSING) is value:
            continue
        try:
            yield [writer.places[id(holder)], name, writer.whole(value)]
        except TracedError:
            continue
        except UnwritableError as error:
            if name in before:
                raise EffectsError(f"tracing changes {type(holder).__qualname__}.{name}: {error}") from None


def apply(text: str, met: Sequence[Any]) -> bool:
    """Set the attributes; True where one was another before.

    Raises:
        EffectsError: a value names what this process does not have. Nothing was set.
    """
    found, made = json.loads(text)
    reader = _Reader(made, met)
    values = [(vars(met[place]), name, reader.whole(value)) for place, name, value in found]
    changed = [
        (entries, name, value) for entries, name, value in values if not _same(entries.get(name, _MISSING), value)
    ]
    for entries, name, value in changed:
        entries[name] = value
    return bool(changed)


def _same(before: Any, value: Any) -> bool:
    if before is value or before is _MISSING:
        return before is value
    try:
        return written(before) == written(value)
    except UnwritableError:
        return False


def written(value: Any, met: Sequence[Any] = ()) -> str:
    """A value as text; objects that were met go by their places.

    Raises:
        UnwritableError: it cannot be written down.
    """
    writer = _Writer(met)
    return json.dumps([writer.whole(value), writer.made], separators=(",", ":"))


def read(text: str, met: Sequence[Any] = ()) -> Any:
    """The value that was written.

    Raises:
        EffectsError: it names what this process does not have.
    """
    top, made = json.loads(text)
    return _Reader(made, met).whole(top)


_PLAIN: Final = (type(None), bool, int, str)


class _Writer:
    """Writes values as JSON: what can be changed goes into `made`, once each."""

    def __init__(self, met: Sequence[Any]) -> None:
        self.made: list[Any] = []
        self.places = {id(value): place for place, value in enumerate(met)}
        self._numbers: dict[int, int] = {}

    def whole(self, value: Any) -> Any:
        """A value; where it cannot be written, nothing of it stays in `made`."""
        before = len(self.made)
        try:
            return self.item(value)
        except (UnwritableError, RecursionError) as error:
            del self.made[before:]
            self._numbers = {key: number for key, number in self._numbers.items() if number < before}
            if isinstance(error, RecursionError):
                raise UnwritableError("it is too deep to be written down") from None
            raise

    def item(self, value: Any) -> Any:
        cls = type(value)
        if cls in _PLAIN:
            return value
        if cls is float:
            return ["float", value.hex()]
        if cls is tuple:
            return ["tuple", *map(self.item, value)]
        if id(value) in self.places:
            return ["known", self.places[id(value)]]
        if is_traced(value):
            raise TracedError("it is a traced value")
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and _named(value):
            return ["named", value.__module__, value.__qualname__]
        if isinstance(value, enum.Enum) and _named(cls):
            return ["member", cls.__module__, cls.__qualname__, value.name]
        return ["made", self._number(value)]

    def _number(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.made)
            self.made.append(None)
            self.made[number] = self._content(value)
        return number

    def _content(self, value: Any) -> Any:
        cls = type(value)
        if cls is list:
            return ["list", *map(self.item, value)]
        if cls is dict:
            return ["dict", *([self.item(key), self.item(item)] for key, item in value.items())]
        if cls is type:
            body = {name: item for name, item in vars(value).items() if name not in ("__dict__", "__weakref__")}
            return ["type", value.__name__, self.item(value.__bases__), *self._entries(body)]
        if _named(cls) and _by_attributes(cls):
            state = _state(value)
            if state or not _same_method(cls, "__eq__"):  # else it may be one of a kind
                return ["object", cls.__module__, cls.__qualname__, *self._entries(state)]
        raise UnwritableError(f"an object of {cls.__module__}.{cls.__qualname__} cannot be written down")

    def _entries(self, entries: Mapping[str, Any]) -> list[Any]:
        return [[name, self.item(item)] for name, item in entries.items()]


class _Reader:
    """Reads what `_Writer` wrote."""

    def __init__(self, made: Sequence[Any], met: Sequence[Any]) -> None:
        self._contents = made
        self._met = met
        self._made: dict[int, Any] = {}

    def whole(self, found: Any) -> Any:
        try:
            return self.item(found)
        except (LookupError, AttributeError, TypeError, ValueError, ImportError) as error:
            raise EffectsError(str(error)) from error

    def item(self, found: Any) -> Any:
        if not isinstance(found, list):
            return found
        kind, *rest = found
        if kind == "float":
            return float.fromhex(rest[0])
        if kind == "tuple":
            return tuple(map(self.item, rest))
        if kind == "known":
            return self._met[rest[0]]
        if kind == "named":
            return _loaded(*rest)
        if kind == "member":
            return _loaded(*rest[:2])[rest[2]]
        if rest[0] not in self._made:
            self._make(rest[0])
        return self._made[rest[0]]

    def _make(self, number: int) -> None:
        kind, *rest = self._contents[number]
        if kind == "list":
            items: list[Any] = []
            self._made[number] = items
            items += map(self.item, rest)
        elif kind == "dict":
            entries: dict[Any, Any] = {}
            self._made[number] = entries
            entries.update((self.item(key), self.item(item)) for key, item in rest)
        elif kind == "type":
            name, bases, *body = rest
            self._made[number] = type(name, self.item(bases), {key: self.item(item) for key, item in body})
        else:
            module, name, *state = rest
            made = self._made[number] = object.__new__(_loaded(module, name))
            for key, item in state:
                object.__setattr__(made, key, self.item(item))


def _named(value: Any) -> bool:
    """Whether a class or function is what its name says."""
    return resolved(str(value.__module__), value.__qualname__) is value


def _loaded(module: str, name: str) -> Any:
    if module.partition(".")[0] == "tilewright" and module not in sys.modules:
        importlib.import_module(module)
    found = resolved(module, name)
    if found is None:
        raise LookupError(f"{module}.{name} is not loaded")
    return found


def _by_attributes(cls: type) -> bool:
    """Whether the objects of a class are what their attributes say, and can be made from them."""
    return owner_of_class(cls) != "trusted" and _same_method(cls, "__new__") and not issubclass(cls, type)


def _state(value: Any) -> dict[str, Any]:
    slots = [
        name
        for base in type(value).__mro__
        for name, item in vars(base).items()
        if isinstance(item, types.MemberDescriptorType)
    ]
    state = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    state |= getattr(value, "__dict__", {})
    return {name: item for name, item in state.items() if name != "_hash"}  # worked out anew


def _same_method(cls: type, name: str) -> bool:
    """Whether a class has a method from `object`."""
    return getattr(cls, name) is getattr(object, name)
