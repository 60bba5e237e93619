"""MLIR locations as places in the user's source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.location import SourceLocation

if TYPE_CHECKING:
    from mlir import ir


def source_location(location: ir.Location, caller: SourceLocation | None = None) -> SourceLocation | None:
    """The file and line of an MLIR location, with the calls that led there; None where it names no file."""
    if location.is_a_callsite():
        return source_location(location.callee, source_location(location.caller, caller))
    if location.is_a_name():
        return source_location(location.child_loc, caller)
    if location.is_a_fused():
        found = [source_location(part, caller) for part in location.locations]
        return next((place for place in found if place is not None), None)
    if not location.is_a_file():
        return None
    return SourceLocation(location.filename, location.start_line, max(location.start_col - 1, 0), caller=caller)
