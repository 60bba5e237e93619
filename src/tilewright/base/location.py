"""Places in the user's source."""

from __future__ import annotations

import linecache
import os
import re
from dataclasses import dataclass
from typing import Final

_CELL: Final = re.compile(r"([/\\]ipykernel)_\d+(?=[/\\])")
_STABLE_CELL: Final = re.compile(r"[/\\]ipykernel(?=[/\\]\d+\.py$)")


def stable_file(file: str) -> str:
    """The name of a file as it is in every process: Jupyter names the folder of a notebook's cells by the process."""
    return _CELL.sub(r"\1", file) if "ipykernel_" in file else file


def _file_here(file: str) -> str:
    return _STABLE_CELL.sub(lambda found: f"{found[0]}_{os.getpid()}", file) if "ipykernel" in file else file


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
        return linecache.getline(self.file_here, self.line).rstrip("\n")

    @property
    def file_here(self) -> str:
        """The file by its name in this process, see `stable_file`."""
        return _file_here(self.file)

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
