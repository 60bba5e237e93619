"""Whether what was reached is still the same, by identity: a few comparisons in C for each thing, no walk.

True means that nothing changed. False means only that something may have: an equal object in the place of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import is_
from typing import Any

_MISSING = object()
_Check = Callable[[], bool]


class Watch:
    """What was reached, with what it was."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Any], tuple[dict[Any, Any], Any, Any]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._checks: dict[int, tuple[Any, _Check]] = {}
        self._objects: dict[int, tuple[Any, dict[str, Any], _Check]] = {}
        self._classes: dict[int, tuple[Any, type]] = {}

    def entry(self, mapping: dict[str, Any], key: str) -> None:
        """One entry of a dict, which may be missing."""
        self._entries.setdefault((id(mapping), key), (mapping, key, mapping.get(key, _MISSING)))

    def cell(self, cell: Any) -> None:
        """The content of a variable of a closure."""
        try:
            self.attributes(cell, ("cell_contents",))
        except ValueError:  # it has none yet
            self._add(cell, lambda: _is_empty(cell))

    def attributes(self, value: Any, names: Sequence[str]) -> None:
        """Some attributes of an object."""
        for name in names:
            self._attributes.setdefault((id(value), name), (value, name, getattr(value, name, _MISSING)))

    def mapping(self, mapping: Any, holder: Any = None) -> None:
        """All entries of a dict, or of the `__dict__` of `holder`."""
        same = _same_entries(mapping) if holder is None or isinstance(holder, type) else _same_state(holder)
        self._add(mapping if holder is None else holder, same, kept=holder)

    def object_(self, value: Any) -> None:
        """All attributes of an object that has a `__dict__`."""
        self._objects.setdefault(id(value), (value, dict(vars(value)), _same_state(value)))

    def class_of(self, value: Any) -> None:
        """The class of an object."""
        self._classes.setdefault(id(value), (value, type(value)))

    def items(self, sequence: Any) -> None:
        """All items of a list or deque."""
        before = list(sequence)
        self._add(sequence, lambda: len(sequence) == len(before) and all(map(is_, sequence, before)))

    def check(self, value: Any, unchanged: _Check) -> None:
        """Something that `unchanged` can tell of `value`."""
        self._add(value, unchanged)

    def objects(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Objects whose attributes are watched, with those that they had."""
        return ((value, before) for value, before, _ in self._objects.values())

    def still_valid(self, *, objects: bool = True) -> Callable[[], bool]:
        """A function that says whether all of it is as it was; without `objects`, attributes of these may differ."""
        mappings, keys, entries = _columns(self._entries.values())
        holders, names, values = _columns(self._attributes.values())
        others, classes = _columns(self._classes.values(), 2)
        checks = tuple(check for _, check in self._checks.values())
        if objects:
            checks += tuple(check for _, _, check in self._objects.values())

        def valid() -> bool:
            if not all(map(is_, map(dict.get, mappings, keys, repeat(_MISSING)), entries)):
                return False
            if not all(map(is_, map(type, others), classes)):
                return False
            try:
                if not all(map(is_, map(getattr, holders, names, repeat(_MISSING)), values)):
                    return False
            except ValueError:  # a variable of a closure has no value any more
                return False
            return all(check() for check in checks)

        return valid

    def _add(self, value: Any, check: _Check, kept: Any = None) -> None:
        self._checks.setdefault(id(value), ((value, kept), check))


def _same_entries(mapping: Any) -> _Check:
    keys, values = list(mapping), list(mapping.values())
    count = len(keys)
    return lambda: len(mapping) == count and all(map(is_, mapping.values(), values)) and all(map(is_, mapping, keys))


def _same_state(holder: Any) -> _Check:
    entries = vars(holder)
    same = _same_entries(entries)
    return lambda: vars(holder) is entries and same()


def _columns(rows: Iterable[tuple[Any, ...]], count: int = 3) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*rows, strict=True)) or ((),) * count


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False
