"""Places that a region reads and writes: variables, attributes, items."""

from __future__ import annotations

import dis
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any

from tilewright.base.lazy import cached_property
from tilewright.lang import leaves
from tilewright.lang.control import mutable_state
from tilewright.lang.locations import REGION_PREFIX


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING = _Missing()


class Place:
    """A variable, attribute or item by name. `get` gives MISSING where it has no value; setting MISSING clears it."""

    name: str

    def get(self) -> Any:
        raise NotImplementedError

    def set(self, value: Any) -> None:
        raise NotImplementedError


@dataclass
class Variable(Place):
    """A variable shared with the bodies."""

    name: str
    cell: CellType

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def set(self, value: Any) -> None:
        if value is not MISSING:
            self.cell.cell_contents = value
        elif self.get() is not MISSING:
            del self.cell.cell_contents


@dataclass
class Slot(Place):
    """An attribute of an instance, or an item of a list or dict."""

    name: str
    owner: Any
    key: Any

    def get(self) -> Any:
        value = mutable_state.state_of(self.owner).get(self.key, MISSING)
        return inherited(self.owner, self.key) if value is MISSING else value

    def set(self, value: Any) -> None:
        state = mutable_state.state_of(self.owner)
        if value is MISSING:
            state.pop(self.key, None)
        else:
            state[self.key] = value
        mutable_state.set_state(self.owner, state)


def inherited(owner: Any, key: Any) -> Any:
    """The value that the class gives an attribute which the instance does not have, or MISSING."""
    if mutable_state.kind_of(type(owner)) != "object" or not isinstance(key, str):
        return MISSING
    value = inspect.getattr_static(type(owner), key, MISSING)
    return MISSING if hasattr(type(value), "__get__") else value


def _is_of_user(value: Any) -> bool:
    """True for an instance of a class that is not of Python's own library, whose graphs are large."""
    module = type(value).__module__.partition(".")[0]
    return mutable_state.kind_of(type(value)) == "object" and module not in sys.stdlib_module_names - {"__main__"}


def is_cache(owner: Any, key: Any) -> bool:
    """True for an attribute that `cached_property` makes when it is first read."""
    found = inspect.getattr_static(type(owner), key, None) if isinstance(key, str) else None
    return isinstance(found, cached_property)


Body = Callable[..., Any]


class Variables:
    """The variables that the bodies of a construct share with their function."""

    def __init__(self, host: tuple[str, ...], *bodies: Body | None) -> None:
        self.host = host
        self.cells: dict[str, CellType] = {}
        self.globals: dict[str, Any] = {}
        self.global_names: set[str] = set()
        self._codes = [body.__code__ for body in bodies if body is not None]
        for body in bodies:
            if body is not None:
                self.cells.update(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
                self.globals = body.__globals__
                self.global_names.update(body.__code__.co_names)

    def places(self, names: Iterable[str]) -> list[Place]:
        return [Variable(name, self.cells[name]) for name in names]

    def assignments(self, name: str) -> dict[str, object]:
        """The lines that assign it, as rows of a message."""
        return _assigning_lines(self._codes, name)

    def roots(self) -> list[tuple[str, Any]]:
        """What the variables of the program hold, by name."""
        return self._contents(name for name in self.cells if name not in self.host)

    def host_roots(self) -> list[tuple[str, Any]]:
        """What variables of Python code around the program hold, and global objects with state."""
        found = self._contents(name for name in self.cells if name in self.host)
        for name in self.global_names:
            value = self.globals.get(name)
            if isinstance(value, list | dict) or leaves.has_protocol(value) or _is_of_user(value):
                found.append((name, value))
        return found

    def _contents(self, names: Iterable[str]) -> list[tuple[str, Any]]:
        found = []
        for name in names:
            if name.startswith(REGION_PREFIX):
                continue
            cell = self.cells[name]
            try:
                found.append((name, cell.cell_contents))
            except ValueError:
                continue
        return found

    def resolve(self, dotted: str) -> Any:
        """The object at `a.b.c`, following instance attributes only; MISSING where there is none."""
        root, *path = dotted.split(".")
        value = Variable(root, self.cells[root]).get() if root in self.cells else self.globals.get(root, MISSING)
        for name in path:
            is_object = mutable_state.kind_of(type(value)) == "object"
            value = mutable_state.state_of(value).get(name, MISSING) if is_object else MISSING
        return value


_MOST_LINES = 4


def _assigning_lines(bodies: Iterable[CodeType], name: str) -> dict[str, object]:
    """`{"line 12": "x = y * 2.0"}`: where the bodies assign `name`, a variable or a dotted attribute; the last ones."""
    found: dict[int, str] = {}
    for body in bodies:
        for line in _stores(body, name.rpartition(".")[2], attribute="." in name):
            text = linecache.getline(body.co_filename, line).strip()
            if text:
                found[line] = text
    return {f"line {line}": found[line] for line in sorted(found)[-_MOST_LINES:]}


def _stores(code: CodeType, name: str, attribute: bool) -> Iterator[int]:
    for instruction in dis.get_instructions(code):
        stores = instruction.opname.startswith("STORE") and (instruction.opname == "STORE_ATTR") is attribute
        line = instruction.positions.lineno if instruction.positions else None
        if stores and instruction.argval == name and line is not None:
            yield line
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name.startswith(REGION_PREFIX):
            yield from _stores(inner, name, attribute)
