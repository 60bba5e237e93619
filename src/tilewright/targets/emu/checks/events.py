"""Composing observers: for every event, one callable that tells those that want it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.observer import EVENTS, Batch, Observer

ARGUMENTS = {name: getattr(Observer, name).__code__.co_argcount - 1 for name in EVENTS}

GUARDS = ("before_shared", "before_global", "before_local", "refused")


class Events:
    """One attribute for every event of `Observer`: nothing, the method of the one that wants it, or a call of all.

    The answer of several is the last that is not None; guards leave out all that any of them names.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.observers = tuple(observers)
        for name in EVENTS:
            calls = methods(self.observers, name)
            setattr(self, name, union(calls) if name in GUARDS else together(calls, ARGUMENTS[name]))
        self.guards_shared = self.wants("before_shared")
        self.guards_global = self.wants("before_global")
        self.guards_local = self.wants("before_local")

    def __getattr__(self, name: str) -> Any:
        """Not reached for events; it tells type checkers that there are more attributes than they see."""
        raise AttributeError(f"there is no event {name!r}")

    def wants(self, name: str) -> bool:
        """Whether any observer wants an event."""
        return getattr(self, name) is not nothing


def observe(batch: Batch, kinds: Iterable[Callable[[Batch], Observer]]) -> Events:
    """The events of a batch for observers of some kinds and the services that these ask for: those that keep accesses
    first, those that keep order last."""
    chosen = [kind(batch) for kind in kinds]
    before = [part for service in batch.services.values() for part in getattr(service, "before", ())]
    behind = [part for service in batch.services.values() for part in getattr(service, "behind", ())]
    return Events([*before, *chosen, *behind])


def nothing(*_: Any) -> None:
    """An event that no one wants."""


def methods(observers: Iterable[Observer], name: str) -> list[Callable[..., Any]]:
    """The methods of the observers that override an event and do not ignore it."""
    plain = getattr(Observer, name)
    return [getattr(one, name) for one in observers
            if getattr(type(one), name) is not plain and name not in one.ignored]  # fmt: skip


def together(calls: list[Callable[..., Any]], arguments: int) -> Callable[..., Any]:
    """One callable for several that take as many arguments."""
    if not calls:
        return nothing
    if len(calls) == 1:
        return calls[0]
    if len(calls) == 2 and arguments == 1:
        first, second = calls

        def both(event: Any) -> Any:  # as the next function, at half the cost: loads, stores and barriers come here
            answer = first(event)
            other = second(event)
            return answer if other is None else other

        return both
    several = tuple(calls)

    def every(*args: Any) -> Any:
        answer = None
        for call in several:
            other = call(*args)
            if other is not None:
                answer = other
        return answer

    return every


def union(calls: list[Callable[..., Any]]) -> Callable[..., Any]:
    """One guard for several."""
    if len(calls) < 2:
        return together(calls, 0)

    def every(*args: Any) -> Any:
        answers = [answer for answer in [call(*args) for call in calls] if answer is not None]
        return np.unique(np.concatenate(answers)) if answers else None

    return every
