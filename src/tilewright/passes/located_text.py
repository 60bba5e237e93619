"""The text of a module with the line of Python that each of its lines comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tilewright.base.escaped_names import from_hex

if TYPE_CHECKING:
    from mlir import ir

Place = tuple[str, int]  # file and line

_ALIAS: Final = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_PART: Final = re.compile(r'(?P<alias>#loc\d*)|"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):\d+')
_LOCATION: Final = re.compile(r" ?\bloc\(")


def located_text(module: ir.Operation, verified: bool = True) -> tuple[str, list[Place | None]]:
    """The text without locations, as stages have it, and the innermost place of each line.

    MLIR first checks a module that is not known to be `verified`: invalid ones may print wrongly. A line that opens a
    region has the place of its operation, which MLIR prints behind the region's end.
    """
    text = str(module.get_asm(enable_debug_info=True, assume_verified=verified))
    aliases = {found[1]: found[2] for line in text.splitlines() if (found := _ALIAS.match(line))}
    lines: list[str] = []
    places: list[Place | None] = []
    open_regions: list[list[int]] = []  # for each region the lines that wait for its operation's place
    for line in text.splitlines():
        if line.startswith(("#loc", "#di")):
            continue
        bare, location = _without_locations(line)
        place = _place(location, aliases) if location else None
        waiting = open_regions.pop() if bare.lstrip().startswith("}") and open_regions else []
        for number in waiting:
            places[number] = place
        if bare.endswith("{"):
            open_regions.append([*waiting, len(lines)])
        lines.append(bare)
        places.append(place)
    return "\n".join(lines) + "\n", places


def _without_locations(line: str) -> tuple[str, str]:
    """A line without its locations, and the last of them."""
    kept, start, last = [], 0, ""
    for begin, end in _locations(line):
        kept.append(line[start:begin])
        last, start = line[begin:end].strip()[len("loc(") : -1], end
    kept.append(line[start:])
    return "".join(kept), last


def _locations(line: str) -> Iterator[tuple[int, int]]:
    """Where the locations of a line begin and end, a blank before them included."""
    at = 0
    while found := _LOCATION.search(line, at):
        if line.count('"', at, found.start()) % 2:  # inside a string
            at = line.index('"', found.start()) + 1
            continue
        end = _closing(line, found.end())
        yield found.start(), end
        at = end


def _closing(line: str, at: int) -> int:
    """The end of the parenthesis that is open at `at`."""
    depth, quoted = 1, False
    while depth and at < len(line):
        character = line[at]
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
        at += 1
    return at


def _place(location: str, aliases: dict[str, str]) -> Place | None:
    """The innermost file and line of a location: of a call site the callee's, of several the first."""
    for part in _PART.finditer(location):
        if part["file"] is not None:
            return from_hex(part["file"]), int(part["line"])
        found = _place(aliases.get(part["alias"], ""), aliases)
        if found is not None:
            return found
    return None
