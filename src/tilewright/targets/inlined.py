"""From which calls a line of an inlined helper comes: PTX has the helper's line alone."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.base.errors import TilewrightError
from tilewright.base.location import SourceLocation

Places = tuple[SourceLocation, ...]
_MOST = 4


def inlined(locations: Iterable[SourceLocation]) -> Places:
    """The different lines among `locations` that have callers, without columns, in the order of their text."""
    found = {_lines(location) for location in locations if location.caller is not None}
    return tuple(sorted(found, key=lambda place: [(item.file, item.line) for item in place.chain()]))


def name_calls(error: TilewrightError, places: Places) -> None:
    """Add to an error in an inlined helper a row with the calls that led there, where no other calls could have."""
    place = error.location
    if place is None or "called from" in error.values:
        return
    chains = [item.chain()[1:] for item in places if (item.file, item.line) == (place.file, place.line)]
    if place.caller is not None:
        chains = [place.chain()[1:]]
    if chains:
        error.values["called from"] = " or ".join(map(text_of, chains[:_MOST])) + ", ..." * (len(chains) > _MOST)


def text_of(calls: Iterable[SourceLocation]) -> str:
    """Calls in one line, the nearest first, each with its source."""
    return ", ".join(f"{call}  {call.source().strip()}".strip() for call in calls)


def _lines(place: SourceLocation) -> SourceLocation:
    caller = _lines(place.caller) if place.caller is not None else None
    return SourceLocation(place.file, place.line, caller=caller)
