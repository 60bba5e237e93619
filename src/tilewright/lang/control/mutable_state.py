"""Python objects that a region may change in place, and their state.

From the variables that a body can see, the walk finds instances, lists, dicts and closures. Comparing their state
before and after a body tells what the body changed; nothing that it changed is lost without an error.
A class says `__tw_immutable__ = True` to be left out. Classes of the language itself are left out unless they say
`__tw_mutable__ = True`. Functions count with their attributes, classes made inside the program too.
"""

from __future__ import annotations

import enum
import functools
from collections import deque
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, Protocol

from tilewright.lang.control import snapshots
from tilewright.lang.leaves import has_protocol, holds_runtime, same
from tilewright.lang.numbers.numeric import Numeric

Kind = Literal["skip", "object", "list", "dict", "tuple", "function", "method", "class", "snapshot"]
State = dict[Any, Any]
_LIMIT = 4096  # objects; greater graphs belong to libraries, not to kernels
_LENGTH = 1 << 16  # items of a list, dict or tuple that are looked at
_FOREIGN = ("mlir", "numpy", "torch", "cupy", "jax", "_pytest")
_PARTS = ("base", "compiler", "hw", "ir", "lang", "layout", "passes", "targets")
_INTERNAL = tuple(f"tilewright.{part}" for part in _PARTS)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a `class` statement
_kinds: dict[type, Kind] = {}
_slot_names: dict[type, list[str]] = {}


def kind_of(cls: type) -> Kind:
    """How objects of `cls` are looked into."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _classify(cls)
    return kind


def _classify(cls: type) -> Kind:
    if snapshots.takes(cls):
        return "snapshot"
    if cls.__module__.split(".")[0] in _FOREIGN or getattr(cls, "__tw_immutable__", False):
        return "skip"
    if cls.__module__.startswith(_INTERNAL) and not getattr(cls, "__tw_mutable__", False):
        return "skip"
    if cls is type:
        return "class"
    if issubclass(cls, Numeric | type | ModuleType | enum.Enum | str | bytes | BuiltinFunctionType):
        return "skip"
    for base, kind in ((list, "list"), (deque, "list"), (dict, "dict"), (tuple, "tuple"), (FunctionType, "function")):
        if issubclass(cls, base):
            return kind  # type: ignore[return-value]
    if issubclass(cls, MethodType):
        return "method"
    ours = cls.__module__ != "builtins" or cls.__flags__ & _HEAP_TYPE  # code run by `exec` may have no module's name
    has_state = ours and (cls.__dictoffset__ != 0 or _slots(cls))
    return "object" if has_state else "skip"


def _slots(cls: type) -> list[str]:
    found = _slot_names.get(cls)
    if found is None:
        found = _slot_names[cls] = _find_slots(cls)
    return found


def _find_slots(cls: type) -> list[str]:
    found: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def state_of(value: Any) -> State:
    """What an object holds: attributes, items by index or key, or the content of a closure cell."""
    if type(value) is CellType:
        return _cell_state(value)
    kind = kind_of(type(value))
    if kind == "list":
        return dict(enumerate(value))
    if kind == "dict":
        return dict(value)
    if kind == "snapshot":
        return {"content": snapshots.of(value)}
    if kind == "class":
        return _class_state(value)
    state = dict(getattr(value, "__dict__", ()))
    for name in _slots(type(value)):
        try:
            state[name] = object.__getattribute__(value, name)  # code of the user's class must not run here
        except AttributeError:
            continue
    return state


def _class_state(cls: type) -> State:
    """The attributes of a class that are plain values."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not (name.startswith("__") and name.endswith("__")) and not hasattr(type(value), "__get__")
    }


def _cell_state(cell: CellType) -> State:
    try:
        return {"value": cell.cell_contents}
    except ValueError:
        return {}


def set_state(value: Any, state: State) -> None:
    """Put a state back, in place."""
    if type(value) is CellType:
        if state:
            value.cell_contents = state["value"]
        elif _cell_state(value):
            del value.cell_contents
        return
    kind = kind_of(type(value))
    if kind == "list":
        value.clear()
        value.extend(state.values())
    elif kind == "snapshot":
        snapshots.put_back(value, state["content"])
    elif kind == "dict":
        value.clear()
        value.update(state)
    else:
        _set_attributes(value, state)


def _set_attributes(value: Any, state: State) -> None:
    now = state_of(value)
    base = type if isinstance(value, type) else object
    for name in now.keys() - state.keys():
        base.__delattr__(value, name)
    for name, content in state.items():
        if name not in now or now[name] is not content:
            base.__setattr__(value, name, content)


def reachable(roots: Iterable[tuple[str, Any]], ignore: set[int]) -> dict[int, tuple[str, Any]]:
    """The objects with state that the named roots lead to, by id, with a name for messages."""
    # Breadth first, so that an object is called by its shortest path, and a cut at the limit leaves out the farthest.
    # The ids stay true: `found` and the variables keep the objects alive.
    found: dict[int, tuple[str, Any]] = {}
    seen = set(ignore)
    frontier = list(roots)
    while frontier:
        following: list[tuple[str, Any]] = []
        for name, value in frontier:
            kind = "object" if type(value) is CellType else kind_of(type(value))
            if kind == "skip" or id(value) in seen or (kind in ("list", "dict", "tuple") and len(value) > _LENGTH):
                continue
            seen.add(id(value))
            if kind in ("object", "list", "dict", "snapshot") or _has_attributes(kind, value):
                found[id(value)] = (name, value)
            following += _children(kind, name, value)
            if len(seen) > _LIMIT:
                return found
        frontier = following
    return found


def _has_attributes(kind: Kind, value: Any) -> bool:
    """True for functions with attributes, and classes made inside a function."""
    if kind == "class":
        return "<locals>" in value.__qualname__ and not value.__module__.startswith(_INTERNAL)
    return kind == "function" and bool(value.__dict__) and not (value.__module__ or "").startswith("tilewright.")


def _children(kind: Kind, name: str, value: Any) -> list[tuple[str, Any]]:
    if kind == "method":
        return [(name.rpartition(".")[0] or name, value.__self__)]
    if kind == "function":
        if value.__module__ and value.__module__.startswith("tilewright."):
            return []
        names = value.__code__.co_freevars
        return [(name, cell) for name, cell in zip(names, value.__closure__ or (), strict=True)]
    if kind == "tuple":
        return _items(name, dict(enumerate(value)))
    if type(value) is CellType:
        return [(name, content) for content in _cell_state(value).values()]
    if kind in ("list", "dict"):
        return _items(name, state_of(value))
    if kind in ("snapshot", "class"):
        return _items(name, dict(enumerate(value))) if isinstance(value, set) else []
    if isinstance(value, functools.partial):  # written in C: its parts are no attributes of its `__dict__`
        return [(name, item) for item in (value.func, *value.args, *value.keywords.values(), value.__dict__)]
    return [(f"{name}.{attribute}", item) for attribute, item in state_of(value).items()]


def _items(name: str, items: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    return [(f"{name}[{key!r}]", item) for key, item in items.items() if kind_of(type(item)) != "skip"]


class Roots(Protocol):
    """Where the walk starts."""

    def roots(self) -> list[tuple[str, Any]]: ...

    def host_roots(self) -> list[tuple[str, Any]]: ...


class Watch:
    """The state of all objects that a body can reach; `ignore` are ids of objects that others look after.

    Python objects from outside the program (logs, caches) may change while it is traced, as long as no value of run
    time gets into them.
    """

    def __init__(self, variables: Roots, ignore: set[int]) -> None:
        self.objects = reachable(variables.roots(), ignore)
        host = reachable(variables.host_roots(), ignore | self.objects.keys())
        self.host = host.keys()
        self.objects.update(host)
        self.before = self.save()

    def save(self) -> dict[int, State]:
        return {key: state_of(value) for key, (_, value) in self.objects.items()}

    def restore(self, states: dict[int, State]) -> None:
        for key, state in states.items():
            set_state(self.objects[key][1], state)

    def changed(self, states: dict[int, State]) -> dict[int, State]:
        """Those of `states` that differ from the state before."""
        return {key: state for key, state in states.items() if self.differs(key, self.before[key], state)}

    def differs(self, key: int, before: State, after: State) -> bool:
        """True when an object changed in a way that the program must know."""
        if same_state(before, after):
            return False
        return key not in self.host or any(
            holds_runtime(state[name])
            for state in (before, after)
            for name in state
            if not _same_at(name, before, after)
        )

    def mutable_protocol(self) -> list[tuple[str, Any]]:
        """Objects of the DynamicExpression protocol among those watched."""
        return [(name, value) for name, value in self.objects.values() if has_protocol(value)]


def _same_at(name: Any, a: State, b: State) -> bool:
    return name in a and name in b and same(a[name], b[name])


def same_state(a: State, b: State) -> bool:
    """True when nothing changed from `a` to `b`, the order of their keys neither."""
    if list(a) != list(b):
        return False
    return all(a[key] is b[key] or same(a[key], b[key]) for key in a)
