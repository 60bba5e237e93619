"""Looking on at every launch of the process: what each found, raised or collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tilewright.base.errors import EmulationError

_lists: list[list[EmulationError]] = []


@contextmanager
def findings() -> Iterator[list[EmulationError]]:
    """The findings of all launches while the block runs, in any thread, in order; each race and error once.

    A launch that raises adds what it raises, so errors that the caller swallows are here too.
    """
    found: list[EmulationError] = []
    _lists.append(found)
    try:
        yield found
    finally:
        _lists[:] = [other for other in _lists if other is not found]


def note(errors: Iterable[EmulationError]) -> None:
    """Add the findings of a launch to all lists."""
    new = list(errors)
    for found in tuple(_lists):
        found += new
