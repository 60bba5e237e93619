"""What is taken and has no effect is said so once, at the user's line."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.base.location import SourceLocation


class IgnoredOptionWarning(UserWarning):
    """An option, a hint or a setting was given that changes nothing here."""


_said: set[str] = set()
_given = [0]


def given() -> int:
    """How many warnings were given so far, those not said again among them: what was cached would not give them."""
    return _given[0]


def count() -> None:
    """Count a warning that is given by other means."""
    _given[0] += 1


def warn(
    message: str, place: SourceLocation | None, category: type[Warning] = UserWarning, stacklevel: int = 2
) -> None:
    """Warn of `message` at `place`, or `stacklevel` calls up where it is not known."""
    count()
    if place is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        warnings.warn_explicit(message, category, place.file_here, place.line)


def say_once(message: str, place: SourceLocation | None, category: type[Warning] = IgnoredOptionWarning) -> None:
    """Warn of `message` at `place`, unless this process said so before."""
    if message in _said:
        count()
        return
    _said.add(message)
    warn(message, place, category, stacklevel=3)
