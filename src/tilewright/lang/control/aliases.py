"""Objects that a region of run time merged into new ones while other names still refer to them.

After `if c: s = other` with a condition of run time, `s` is a new object of selected values, where Python would have it
be `other` itself in one case. Nobody can tell as long as neither changes in place. Merges that may be told are noted,
and where an object of theirs did change by the end of the body that noted them, that is an error.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.ir.context import current
from tilewright.lang import leaves
from tilewright.lang.control import mutable_state
from tilewright.lang.locations import REGION_PREFIX, TRACE_ROOT, is_user_code


@dataclass
class _Merge:
    """`name` became a new object in a construct of a `kind` at `place`, while `other` refers to one that it came of."""

    name: str
    other: str
    kind: str
    place: SourceLocation
    states: list[tuple[Any, mutable_state.State]]

    def changed(self) -> bool:
        return any(not mutable_state.same_state(state, mutable_state.state_of(value)) for value, state in self.states)


def error(name: str, other: str, kind: str, place: SourceLocation) -> CompileError:
    """Two names of what Python would have as one object."""
    subject = name if name.startswith("the ") else f"`{name}`"
    return CompileError(
        f"{subject} and `{other}` may be one object after a runtime `{kind}`, and one of them changes in place",
        location=place,
        hint=f"the change would not show under both names: in the `{kind}` use `{other}` itself or a new name for it,"
        " give each name an object of its own, or assign attributes instead of the object",
    )


@contextmanager
def body() -> Iterator[None]:
    """Trace a body: what it notes must be harmless when it ends."""
    bodies: list[list[_Merge]] = current().bodies
    bodies.append([])
    try:
        yield
        # At the end, since only now it is known whether an object of theirs changed after they were merged.
        for merge in bodies[-1]:
            if merge.changed():
                raise error(merge.name, merge.other, merge.kind, merge.place)
    finally:
        bodies.pop()


def note(name: str, kind: str, place: SourceLocation, merged: Any, sources: Sequence[Any]) -> None:
    """The value `merged` was made of the values `sources`, which stay what they are under their other names."""
    made = dict(objects(merged))
    if not made:
        return
    for source in sources:
        for path, origin in objects(source):
            target = made.get(path)
            if target is None or target is origin:
                continue
            other = _other_name(origin)
            if other is not None:
                states = [*_states(target), *_states(origin)]
                current().bodies[-1].append(_Merge(name + path, other, kind, place, states))


def objects(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The objects inside a value that may change in place, by their place in it."""
    if mutable_state.kind_of(type(value)) == "object":
        yield path, value
    if not leaves.has_protocol(value) and leaves.is_aggregate(value):
        for key, item in leaves.split(value).items():
            yield from objects(item, f"{path}[{key!r}]" if isinstance(value, tuple | list | dict) else f"{path}.{key}")


def _states(value: Any) -> list[tuple[Any, mutable_state.State]]:
    return [(item, mutable_state.state_of(item)) for _, item in mutable_state.reachable([("", value)], set()).values()]


def _other_name(value: Any) -> str | None:
    """A name that still leads to `value` and is read later, in the functions that are running."""
    # Names of frames, not `gc.get_referrers`: only a name that the program reads again can tell the difference.
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != TRACE_ROOT:
        if is_user_code(frame.f_code):
            found = _name_in(frame, value)
            if found is not None:
                return found
        frame = frame.f_back
    return None


def _name_in(frame: FrameType, value: Any) -> str | None:
    for name, content in frame.f_locals.items():
        if name.startswith(REGION_PREFIX) or not _read_later(frame, name):
            continue
        if content is value:
            return name
        found = mutable_state.reachable([(name, content)], set()).get(id(value))
        if found is not None:
            return found[0]
    return None


def _read_later(frame: FrameType, name: str) -> bool:
    """True when the code from where the frame stands reads the name; in a body that may repeat, anywhere in it."""
    repeats = frame.f_code.co_name.startswith(REGION_PREFIX)
    return name in _reads(frame.f_code, -1 if repeats else frame.f_lasti)


def _reads(code: CodeType, after: int) -> set[str]:
    found: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.offset > after and "LOAD" in instruction.opname:
            names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            found.update(name for name in names if isinstance(name, str))
    return found
