"""A run as the user sees it: a line for each row, the file kept after each, the summary and charts at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright.tools.benching import chart, results, tables
from tilewright.tools.benching.suite_run import Results


@dataclass
class Reporter:
    """Shows and keeps the results `found` of a suite, in `out` or, without, in a file of `folder` named by the card."""

    found: Results
    suite: str
    out: Path | None
    folder: Path
    console: Console
    _told: set[str] = field(default_factory=set)
    _written: set[Path] = field(default_factory=set)

    def watch(self, kind: str, message: dict[str, Any]) -> None:
        """Show a message of the run, and write the file when there is something new for it."""
        if kind == "row":
            say(self.console, [tables.line(message["row"])])
        elif kind == "failure":
            say(self.console, [tables.failure(message["failure"])], "red")
        elif kind == "missing" and message["missing"] not in self._told:
            self._told.add(message["missing"])
            say(self.console, [f"{message['missing']} is not installed and left out: {message['why']}"], "yellow")
        if kind in ("row", "failure"):
            self._keep()

    def _keep(self) -> None:
        device = self.found.machine.get("device", "")
        place = self.out or results.default_path(self.folder, self.suite, device)
        results.write(place, results.record(self.found, self.suite))
        self._written.add(place)

    def finish(self) -> dict[str, Any]:
        """Show the summary, draw charts where matplotlib is, name the files; the contents of the file of results."""
        if self._written:
            self._keep()  # with the cases that were left out after the last row
        contents = results.record(self.found, self.suite)
        if any(row.get("gbs") for row in contents["results"]):
            say(self.console, tables.summary(contents))
            if chart.available():
                self._written |= {made for path in list(self._written) for made in chart.draw(contents, path)}
            else:
                say(self.console, ['No charts: matplotlib is missing (pip install "tilewright[bench]").'])
        if self.found.skipped:
            say(self.console, [f"{len(self.found.skipped)} cases were not begun: the budget was spent"], "yellow")
        say(self.console, (f"wrote {path}" for path in sorted(self._written)))
        return contents


def say(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines as they are."""
    for line in lines:
        console.print(line, style=style, highlight=False, markup=False, soft_wrap=True)
