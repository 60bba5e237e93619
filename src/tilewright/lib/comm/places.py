"""The user's line that called a collective."""

from __future__ import annotations

from pathlib import Path

from tilewright.base.location import SourceLocation
from tilewright.lang.locations import user_location

_HERE = str(Path(__file__).parent)


def caller() -> SourceLocation | None:
    """The innermost line that is not in this folder."""
    place = user_location()
    while place is not None and place.file.startswith(_HERE) and place.caller is not None:
        place = place.caller
    return place
