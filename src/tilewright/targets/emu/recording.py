"""Looking on at launches that others make: what each found, raised or collected; options and reports of a block."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.image import Program
from tilewright.targets.emu.options import Options
from tilewright.targets.emu.report import Report


class _Blocks(threading.local):
    """The blocks of `reports_of` that this thread is in, outermost first."""

    def __init__(self) -> None:
        self.open: list[tuple[dict[str, Any], list[Report]]] = []


_blocks = _Blocks()


@contextmanager
def reports_of(**options: Any) -> Iterator[list[Report]]:
    """Compiled functions that this thread calls inside the block run with these `Options`; their reports, in order."""
    block: tuple[dict[str, Any], list[Report]] = (options, [])
    _blocks.open.append(block)
    try:
        yield block[1]
    finally:
        _blocks.open.remove(block)


def overridden(options: Options, program: Program) -> Options:
    """The options of a launch, changed as the setting `counters` and the blocks around it say."""
    if settings.get("counters"):
        options = replace(options, counters=True)
    for changes, _ in _blocks.open:
        options = replace(options, **changes)
    if options.debugger is not None:
        options.debugger.learn(program)
    return options


def add_report(report: Report) -> None:
    """Add the report of a launch to those of the blocks around it, and to the file of the setting `counters`."""
    if path := settings.get("counters"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(report.counts()) + "\n")
    for _, reports in _blocks.open:
        reports.append(report)


_lists: list[list[EmulationError]] = []


@contextmanager
def findings() -> Iterator[list[EmulationError]]:
    """The findings of all launches while the block runs, in any thread, in order; each race and error once.

    A launch that raises adds what it raises, so errors that the caller swallows are here too.
    """
    found: list[EmulationError] = []
    _lists.append(found)
    try:
        yield found
    finally:
        _lists[:] = [other for other in _lists if other is not found]


def add_findings(errors: Iterable[EmulationError]) -> None:
    """Add the findings of a launch to all lists."""
    new = list(errors)
    for found in tuple(_lists):
        found += new
