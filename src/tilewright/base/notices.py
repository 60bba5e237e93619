"""What is taken and has no effect is said so once, at the user's line."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.base.location import SourceLocation


class IgnoredOptionWarning(UserWarning):
    """An option, a hint or a setting was given that changes nothing here."""


_said: set[str] = set()


def say_once(message: str, place: SourceLocation | None, category: type[Warning] = IgnoredOptionWarning) -> None:
    """Warn of `message` at `place`, unless this process said so before."""
    if message in _said:
        return
    _said.add(message)
    if place is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        warnings.warn_explicit(message, category, place.file, place.line)
