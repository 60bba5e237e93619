"""Composing observers: for every event, one callable that tells those that want it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.observer import EVENTS, Batch, Observer

ARGUMENTS = {name: getattr(Observer, name).__code__.co_argcount - 1 for name in EVENTS}

GUARDS = ("before_shared", "before_global", "before_local", "refused")


class Events:
    """One attribute for every event of `Observer`: nothing, the method of the one that wants it, or a call of all.

    The answer of several is the last that is not None; guards leave out all that any of them names. An event is
    composed when it first comes: most kernels have few kinds.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.observers = tuple(observers)
        self._overriders = overriders(tuple(map(type, self.observers)))
        self.guards_shared, self.guards_global, self.guards_local = (
            bool(self._overriders[name]) for name in GUARDS[:3]
        )

    def __getattr__(self, name: str) -> Any:
        """Compose an event that is needed for the first time."""
        if name not in ARGUMENTS:  # Python's own questions come here as well
            raise AttributeError(f"there is no event {name!r}")
        wanted = [self.observers[at] for at in self._overriders[name]]
        calls = [getattr(one, name) for one in wanted if name not in one.ignored]
        composed = union(calls) if name in GUARDS else together(calls, ARGUMENTS[name])
        setattr(self, name, composed)
        return composed

    def wants(self, name: str) -> bool:
        """Whether any observer wants an event."""
        return getattr(self, name) is not nothing


@lru_cache(maxsize=64)
def overriders(kinds: tuple[type[Observer], ...]) -> dict[str, tuple[int, ...]]:
    """For every event the places of the classes that override it."""
    return {
        name: tuple(at for at, kind in enumerate(kinds) if getattr(kind, name) is not getattr(Observer, name))
        for name in EVENTS
    }


def compose(batch: Batch, kinds: Iterable[Callable[[Batch], Observer]]) -> Events:
    """The events of a batch for observers of some kinds and the services that these ask for: those that keep accesses
    first, those that keep order last."""
    chosen = [kind(batch) for kind in kinds]
    before = [part for service in batch.services.values() for part in getattr(service, "before", ())]
    behind = [part for service in batch.services.values() for part in getattr(service, "behind", ())]
    batch.running = True
    return Events([*before, *chosen, *behind])


def nothing(*_: Any) -> None:
    """An event that no one wants."""


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
