"""Places in the user's source."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A line of a Python file, with the calls that led to it.

    `line` counts from 1, `column` from 0 (as `ast` does); `end_column` is 0 where unknown. `caller` is the
    place that called the function which holds this line, for helpers inlined by tracing.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    function: str = ""
    caller: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def source(self) -> str:
        """The text of the line, empty when the file is gone."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def expression(self) -> str:
        """The text that the columns mark, empty where they mark none."""
        return self.source()[self.column : self.end_column].strip() if self.end_column > self.column else ""

    def excerpt(self) -> list[str]:
        """The lines that show this place in an error: `file:line  source` and a caret below."""
        text = self.source()
        if not text.strip():
            return [str(self)]
        indent = len(text) - len(text.lstrip())
        head = f"{self}   "
        start = max(self.column - indent, 0)
        end = self.end_column - indent if self.end_column > self.column else len(text.strip())
        return [head + text.strip(), " " * (len(head) + start) + "^" * max(end - start, 1)]

    def chain(self) -> tuple[SourceLocation, ...]:
        """This place, then its callers, innermost first."""
        places: list[SourceLocation] = []
        place: SourceLocation | None = self
        while place is not None:
            places.append(place)
            place = place.caller
        return tuple(places)
