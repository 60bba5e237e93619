"""What timed regions of kernels took: spans by warp, a table, and a trace file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

LABELS: Final = {
    "ns": "times in nanoseconds, measured",
    "instructions": "instructions of each warp's first thread, counted by the emulator: no times",
}
"""What the numbers of each unit are."""


@dataclass(frozen=True)
class Span:
    """A region as one warp ran it once. `processor` is the multiprocessor, `launch` counts from 0."""

    kernel: str
    launch: int
    block: int
    warp: int
    processor: int
    name: str
    begin: float
    end: float
    depth: int

    @property
    def length(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Row:
    """A region in the table: how many warps ran it, how often, and what one run took."""

    kernel: str
    name: str
    depth: int
    warps: int
    runs: int
    total: float
    least: float
    most: float
    share: float

    @property
    def mean(self) -> float:
        return self.total / self.runs


@dataclass(frozen=True)
class Profile:
    """Timed regions of all calls since the last look.

    Attributes:
        unit: `ns`, or `instructions` on the emulator.
        spans: what was recorded. A kernel's own name stands for its warps' whole time.
        warps: how many warps were recorded.
        asked: how many warps there were.
        lost: events for which a warp's record had no room.
    """

    unit: str
    spans: tuple[Span, ...] = ()
    warps: int = 0
    asked: int = 0
    lost: int = 0

    @classmethod
    def joined(cls, unit: str, profiles: Iterable[Profile]) -> Profile:
        """Those of several kernels or launches as one."""
        parts = list(profiles)
        return cls(
            unit,
            tuple(span for part in parts for span in part.spans),
            sum(part.warps for part in parts),
            sum(part.asked for part in parts),
            sum(part.lost for part in parts),
        )

    @classmethod
    def in_turn(cls, unit: str, launches: Iterable[Profile]) -> Profile:
        """Launches that each begin at 0 as one after another."""
        shifted: list[Profile] = []
        at = 0.0
        for number, part in enumerate(launches):
            spans = tuple(replace(span, launch=number, begin=span.begin + at, end=span.end + at) for span in part.spans)
            shifted.append(replace(part, spans=spans))
            at = max((span.end for span in spans), default=at)
        return cls.joined(unit, shifted)

    def rows(self) -> list[Row]:
        """One row for each region of each kernel, in the order in which they are first entered."""
        groups: dict[tuple[str, str, int], list[Span]] = {}
        for span in self.spans:
            groups.setdefault((span.kernel, span.name, span.depth), []).append(span)
        whole = {key[0]: sum(span.length for span in found) for key, found in groups.items() if not key[2]}
        return [_row(*key, found, whole[key[0]]) for key, found in groups.items()]

    def table(self) -> str:
        """The regions as text, under a line that says what the numbers are."""
        head = ("region", "warps", "runs", "total", "mean", "min", "max", "share")
        lines = [head, *(_cells(row) for row in self.rows())]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        body = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines]
        return "\n".join([LABELS[self.unit], *body, *self._missing()])

    def _missing(self) -> list[str]:
        missing = []
        if self.warps < self.asked:
            missing.append(f"{self.warps} of {self.asked} warps were recorded; --profile-warps N records more")
        if self.lost:
            missing.append(f"{self.lost} events found no room; --profile-events N gives each warp more")
        return missing

    def __str__(self) -> str:
        return self.table()

    def trace(self) -> dict[str, Any]:
        """The spans as Chrome's trace events, which Perfetto (ui.perfetto.dev) shows: a process for each block of a
        launch, a thread for each warp. Timestamps are microseconds; on the emulator one stands for an instruction."""
        scale = 1e-3 if self.unit == "ns" else 1.0
        blocks = {key: number + 1 for number, key in enumerate(dict.fromkeys(map(_block, self.spans)))}
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": _block_name(key)}}
            for key, number in blocks.items()
        ]
        events += [
            {
                "ph": "X",
                "name": span.name,
                "cat": span.kernel,
                "pid": blocks[_block(span)],
                "tid": span.warp,
                "ts": span.begin * scale,
                "dur": span.length * scale,
                "args": {"SM": span.processor, self.unit: span.length},
            }
            for span in self.spans
        ]
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"unit": LABELS[self.unit]}}

    def save(self, path: str | Path) -> Path:
        """Write the trace as JSON; gives the path."""
        path = Path(path)
        path.write_text(json.dumps(self.trace()), encoding="utf-8")
        return path


def _block(span: Span) -> tuple[str, int, int]:
    return span.kernel, span.launch, span.block


def _block_name(key: tuple[str, int, int]) -> str:
    kernel, launch, block = key
    return f"{kernel}, launch {launch}, block {block}"


def _row(kernel: str, name: str, depth: int, found: Sequence[Span], whole: float) -> Row:
    lengths = [span.length for span in found]
    warps = {(span.launch, span.block, span.warp) for span in found}
    total = sum(lengths)
    share = total / whole if whole else 0.0
    return Row(kernel, name, depth, len(warps), len(found), total, min(lengths), max(lengths), share)


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (f"{number:.0f}" for number in (row.total, row.mean, row.least, row.most))
    return ("  " * row.depth + row.name, str(row.warps), str(row.runs), *numbers, f"{100 * row.share:.1f} %")
