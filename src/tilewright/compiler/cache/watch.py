"""Whether what was reached is still the same, by identity: some comparisons in C for each thing, no walk.

True means that nothing changed. False means only that something may have: an equal object in the place of another one.
A direct call asks at each call, so things of one kind are compared together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import eq, is_, methodcaller
from typing import Any, Final

_MISSING = object()
_Check = Callable[[], bool]
_Mapping = tuple[Mapping[Any, Any], Sequence[Any], Sequence[Any]]
"""A mapping, its keys and its values."""
_VALUES: Final = methodcaller("values")


class Watch:
    """What was reached, with what it was."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Any], tuple[dict[Any, Any], Any, Any]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._classes: dict[int, tuple[Any, type]] = {}
        self._mappings: dict[int, _Mapping] = {}
        self._states: dict[int, tuple[Any, Mapping[str, Any]]] = {}
        self._sequences: dict[int, tuple[Any, Sequence[Any]]] = {}
        self._objects: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._checks: dict[int, tuple[Any, _Check]] = {}

    def entry(self, mapping: dict[str, Any], key: str) -> None:
        """One entry of a dict, which may be missing."""
        self._entries.setdefault((id(mapping), key), (mapping, key, mapping.get(key, _MISSING)))

    def cell(self, cell: Any) -> None:
        """The content of a variable of a closure."""
        try:
            self.attributes(cell, ("cell_contents",))
        except ValueError:  # it has none yet
            self.check(cell, lambda: _is_empty(cell))

    def attributes(self, value: Any, names: Sequence[str]) -> None:
        """Some attributes of an object."""
        for name in names:
            self._attributes.setdefault((id(value), name), (value, name, getattr(value, name, _MISSING)))

    def mapping(self, mapping: Mapping[Any, Any]) -> None:
        """All entries of a dict."""
        self._mappings.setdefault(id(mapping), _entries_of(mapping))

    def state(self, holder: Any) -> None:
        """All that the `__dict__` of a class, a function or another object holds."""
        entries = vars(holder)
        self._mappings.setdefault(id(holder), _entries_of(entries))
        if not isinstance(holder, type):  # else it is another view at each look
            self._states.setdefault(id(holder), (holder, entries))

    def object_(self, value: Any) -> None:
        """All attributes of an object that has a `__dict__`, which tracing may set."""
        self._states.setdefault(id(value), (value, vars(value)))
        self._objects.setdefault(id(value), (value, dict(vars(value))))

    def class_of(self, value: Any) -> None:
        """The class of an object."""
        self._classes.setdefault(id(value), (value, type(value)))

    def items(self, sequence: Any) -> None:
        """All items of a list or deque."""
        self._sequences.setdefault(id(sequence), (sequence, list(sequence)))

    def check(self, value: Any, unchanged: _Check) -> None:
        """Something that `unchanged` can tell of `value`."""
        self._checks.setdefault(id(value), (value, unchanged))

    def objects(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Objects whose attributes are watched, with those that they had."""
        return iter(self._objects.values())

    def still_valid(self, *, objects: bool = True) -> Callable[[], bool]:
        """A function that says whether all of it is as it was; without `objects`, attributes of these may differ."""
        mappings = list(self._mappings.values())
        if objects:
            mappings += [(vars(value), list(before), list(before.values())) for value, before in self._objects.values()]
        checks: list[_Check] = [
            *_if_any(_same_entries, self._entries.values()),
            *_if_any(_same_attributes, self._attributes.values()),
            *_if_any(_same_results, ((type, value, cls) for value, cls in self._classes.values())),
            *_if_any(_same_results, ((vars, holder, entries) for holder, entries in self._states.values())),
            *_if_any(_same_mappings, mappings),
            *_if_any(_same_sequences, self._sequences.values()),
            *(check for _, check in self._checks.values()),
        ]

        def valid() -> bool:
            try:
                for check in checks:
                    if not check():
                        return False
            except (
                ValueError,
                RuntimeError,
            ):  # a variable without a value; a dict that another thread changes meanwhile
                return False
            return True

        return valid


def _if_any(make: Callable[[list[Any]], _Check], rows: Iterable[Any]) -> list[_Check]:
    found = list(rows)
    return [make(found)] if found else []


def _columns(rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*rows, strict=True))


def _same_entries(rows: list[Any]) -> _Check:
    mappings, keys, values = _columns(rows)
    return lambda: all(map(is_, map(dict.get, mappings, keys, repeat(_MISSING)), values))


def _same_attributes(rows: list[Any]) -> _Check:
    holders, names, values = _columns(rows)
    return lambda: all(map(is_, map(getattr, holders, names, repeat(_MISSING)), values))


def _same_results(rows: list[Any]) -> _Check:
    """Of one function in all rows."""
    (function, *_), values, results = _columns(rows)
    return lambda: all(map(is_, map(function, values), results))


def _same_mappings(rows: list[Any]) -> _Check:
    mappings, keys, values = _columns(row for row in rows if row[1]) or ((), (), ())
    empty = tuple(mapping for mapping, names, _ in rows if not names)
    if not mappings:
        return lambda: not any(empty)
    counts, all_keys, all_values = tuple(map(len, keys)), tuple(chain(*keys)), tuple(chain(*values))
    return lambda: (
        not any(empty)
        and all(map(eq, map(len, mappings), counts))
        and all(map(is_, chain.from_iterable(map(_VALUES, mappings)), all_values))
        and all(map(is_, chain.from_iterable(mappings), all_keys))
    )


def _same_sequences(rows: list[Any]) -> _Check:
    sequences, before = _columns(rows)
    counts, items = tuple(map(len, before)), tuple(chain(*before))
    return lambda: all(map(eq, map(len, sequences), counts)) and all(map(is_, chain.from_iterable(sequences), items))


def _entries_of(mapping: Mapping[Any, Any]) -> _Mapping:
    return mapping, list(mapping), list(mapping.values())


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False
