"""Mappings and lists that nothing can write to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from tilewright.base.errors import PassError


class Frozen(Mapping[Any, Any]):
    """A mapping that refuses to be written, and whose dicts and lists are frozen too."""

    def __init__(self, values: Mapping[Any, Any] | None = None, *, hint: str = "") -> None:
        self._values = {key: freeze(value) for key, value in (values or {}).items()}
        self._hint = hint or 'make a new function: func = func.with_attr("key", value)'

    def __getitem__(self, key: Any) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __eq__(self, other: object) -> bool:
        return self._values == (other._values if isinstance(other, Frozen) else other)

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise PassError(
            f"a pass may not write {key!r} into a function that it was given: others hold it too", hint=self._hint
        )

    def __delitem__(self, key: Any) -> NoReturn:
        self.__setitem__(key, None)

    def updated(self, values: Mapping[Any, Any]) -> Frozen:
        """The mapping with further values."""
        return Frozen({**self._values, **values}, hint=self._hint)


def freeze(value: Any) -> Any:
    """A value with its dicts and lists frozen."""
    if isinstance(value, dict):
        return Frozen(value)
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def thaw(value: Any) -> Any:
    """A frozen value as plain dicts and lists, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): thaw(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [thaw(item) for item in value]
    return value
