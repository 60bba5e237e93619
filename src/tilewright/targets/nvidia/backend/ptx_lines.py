"""Lines of PTX text and the Python lines that its `.loc` directives give."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright.base.escaped_names import from_octal
from tilewright.base.location import SourceLocation

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")

Place = tuple[str, int]  # file and line


def placed_lines(ptx: str) -> Iterator[tuple[int, str, Place | None]]:
    """(number from 1, text, Python file and line) of each line. Code that belongs to no line follows the one before."""
    files = files_of(ptx)
    place: Place | None = None
    for number, line in enumerate(ptx.splitlines(), 1):
        found = _LOC.match(line)
        if found and found[2] != "0":
            place = (files.get(found[1], ""), int(found[2]))
        elif ".entry" in line or ".func" in line:
            place = None
        yield number, line, place


def python_line(ptx: str, line: int) -> SourceLocation | None:
    """The Python line from which line `line` (from 1) of PTX text comes."""
    place = next((place for number, _, place in placed_lines(ptx) if number == line), None)
    return SourceLocation(*place) if place else None


def files_of(ptx: str) -> dict[str, str]:
    """Number to path of the `.file` directives, which may come after their use."""
    return {match[1]: from_octal("/".join(filter(None, match.groups()[1:]))) for match in _FILE.finditer(ptx)}
