"""Where in the user's source an operation comes from.

A frame belongs to the user when its file is outside this package. Bodies of rewritten regions are functions of the
user's file whose name starts with `REGION_PREFIX`; they are part of the function around them, not a call.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.context import current as session

if TYPE_CHECKING:
    from mlir import ir

_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"
_KERNEL_FOLDERS = (_PACKAGE + "kernels/", _PACKAGE + "lib/", _PACKAGE + "tools/demo")
REGION_PREFIX = "__tilewright_"
TRACE_ROOT = "_trace_root"  # the frame that calls the user's function; nothing outside it is part of the program

_is_user_file: dict[str, bool] = {}


def _of_user(code: CodeType) -> bool:
    file = code.co_filename
    known = _is_user_file.get(file)
    if known is None:
        known = not file.startswith(_PACKAGE) or file.startswith(_KERNEL_FOLDERS)
        known = _is_user_file[file] = known and not file.startswith("<frozen")
    return known


def _user_places(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    """(code, instruction) of the user's frames, innermost first."""
    places: list[tuple[CodeType, int]] = []
    inside_region = False
    while frame is not None:
        code = frame.f_code
        if code.co_name == TRACE_ROOT:
            break
        if _of_user(code):
            if not inside_region:
                places.append((code, frame.f_lasti))
            inside_region = code.co_name.startswith(REGION_PREFIX)
        frame = frame.f_back
    return places


def _source_location(code: CodeType, instruction: int) -> SourceLocation:
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[instruction // 2]
    line = line or code.co_firstlineno
    name = code.co_name
    one_line = end_line == line and column is not None and end_column is not None
    return SourceLocation(code.co_filename, line, column or 0, (end_column or 0) if one_line else 0, name)


def user_location(depth: int = 1) -> SourceLocation | None:
    """The user's line that is running now, with the chain of calls that led there; None outside the user's code."""
    place: SourceLocation | None = None
    for code, instruction in reversed(_user_places(sys._getframe(depth))):
        inner = _source_location(code, instruction)
        place = SourceLocation(inner.file, inner.line, inner.column, inner.end_column, inner.function, place)
    return place


def current() -> ir.Location:
    """The MLIR location of the user's line that is running now: a chain of call sites, innermost first."""
    places = tuple(_user_places(sys._getframe(1)))
    return session().cached(("location", places), lambda: _mlir_location(places))


def _mlir_location(places: tuple[tuple[CodeType, int], ...]) -> ir.Location:
    if not places:
        return session().unknown
    locations = []
    for code, instruction in places:
        place = _source_location(code, instruction)
        locations.append(mlir.ir.Location.file(place.file, place.line, place.column + 1))
    if len(locations) == 1:
        return locations[0]
    return mlir.ir.Location.callsite(locations[0], locations[1:])
