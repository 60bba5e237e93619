"""`tilewright profile lines` in the terminal: the lines of a kernel with what each costs, the roofline, the waiting."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.emulate import Report
from tilewright.passes.located_text import Place
from tilewright.targets.emu.fidelity import Fidelity
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.line_profile import LineProfile, hiding
from tilewright.tools.profiling.stalls import REASONS

ESTIMATE: Final = "estimate"
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
TEXT_WIDTH: Final = 44
Column = tuple[str, Callable[[Counts], float]]
COLUMNS: Final[dict[str, Column]] = {
    "instructions": ("thread instr.", lambda counts: counts.instructions),
    "sectors": ("sectors", lambda counts: counts.sectors),
    "excess": ("of them excess", lambda counts: counts.sectors - counts.sectors_ideal),
    "wavefronts": ("wavefronts", lambda counts: counts.wavefronts),
    "conflicts": ("conflicts", lambda counts: counts.conflicts),
    "cycles": ("warp cycles*", lambda counts: counts.stalled),
}
"""The columns of the table by the name that `--sort` takes: a heading, and the number of a line."""


def column(name: str) -> Column:
    """The column that lines are sorted by.

    Raises:
        ArgumentError: there is none of that name.
    """
    if name not in COLUMNS:
        raise ArgumentError(f"--sort {name}: there is no such column", hint=f"columns: {', '.join(COLUMNS)}")
    return COLUMNS[name]


def table(profile: LineProfile, sort: str, top: int) -> Iterator[str]:
    """The profile of a kernel as text: its lines in order, those with the most of a column only."""
    launches = len(profile.reports)
    often = f", {launches} launches" if launches > 1 else ""
    how = "measured by ncu" if profile.measured else "counted by the emulator"
    yield f"{profile.kernel} on {profile.arch}{often}: {how}"
    _, weight = column(sort)
    heaviest = sorted(profile.python, key=lambda place: -weight(profile.python[place]))[:top]
    yield from _lines(profile, sorted(heaviest), weight)
    left_out = len(profile.python) - len(heaviest)
    if left_out:
        yield f"  {left_out} lines with less are left out (--top)"
    if profile.measured:
        yield "  * samples: how often a warp was seen at the line"
    else:
        yield f"  * {ESTIMATE}: latencies times counts, each warp as if it ran alone"
    yield ""
    yield from _findings(profile)
    yield from _waiting(profile)
    for report in profile.reports[:1]:
        yield from roofline(report, profile.arch)
    if profile.reports:
        yield ""
        yield f"  {Fidelity.of_launches(report.by_form for report in profile.reports)}".replace("\n", "\n  ")


def _lines(profile: LineProfile, places: Sequence[Place], weight: Callable[[Counts], float]) -> Iterator[str]:
    most = max((weight(counts) for counts in profile.python.values()), default=0.0)
    shown = [name for name, (_, of) in COLUMNS.items() if any(of(counts) for counts in profile.python.values())]
    heads = {name: COLUMNS[name][0] for name in shown} | ({"cycles": "samples*"} if profile.measured else {})
    rows = [["", "line", *(heads[name] for name in shown), ""]]
    for place in places:
        counts = profile.python[place]
        numbers = [f"{COLUMNS[name][1](counts):,.0f}" if COLUMNS[name][1](counts) else "" for name in shown]
        text = linecache.getline(*place).strip()
        cut = text if len(text) <= TEXT_WIDTH else f"{text[: TEXT_WIDTH - 1]}…"
        rows.append([bar(weight(counts), most), f"{Path(place[0]).name}:{place[1]}", *numbers, cut])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:-1], strict=True)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def bar(value: float, most: float) -> str:
    """How hot a line is, as one character of eight heights."""
    return BLOCKS[max(1, round(8 * value / most))] if value and most else BLOCKS[0]


def _findings(profile: LineProfile) -> Iterator[str]:
    """What the emulator found, once for each line."""
    errors = [error for report in profile.reports for error in (*report.races, *report.errors)]
    told = {(error.message, error.location): error for error in errors}
    for error in told.values():
        where = error.location
        place = f"{Path(where.file).name}:{where.line}  " if where is not None else ""
        yield f"The emulator found: {place}{error.message}"
    if told:
        yield "  counts are of a run with this mistake"
        yield ""


def _waiting(profile: LineProfile) -> Iterator[str]:
    total = profile.total
    if not total.stalls:
        return
    yield "What warps waited for (sampled)" if profile.measured else f"What warps would wait for ({ESTIMATE})"
    for reason, cycles in sorted(total.stalls.items(), key=lambda pair: -pair[1]):
        yield f"  {cycles / total.stalled:>4.0%}  {reason:<16}  {REASONS.get(reason, '')}".rstrip()
    if said := hiding(profile):
        yield f"  {said}"
    yield ""


def roofline(report: Report, card: str) -> Iterator[str]:
    """What would bind a launch, or why that is not known."""
    try:
        yield from str(report.roofline(card)).splitlines()
    except TilewrightError as error:
        yield f"no roofline: {str(error).splitlines()[0]}"


def as_json(profile: LineProfile) -> dict[str, Any]:
    """The profile for programs. `cycles` and `waits` are samples of ncu, or estimates."""
    return {
        "kernel": profile.kernel,
        "arch": profile.arch,
        "launches": [report.counts() for report in profile.reports],
        "lines": [
            {"file": file, "line": line, **_numbers(counts), "waits": counts.stalls}
            for (file, line), counts in sorted(profile.python.items())
        ],
        "ptx": [{"line": line, **_numbers(counts)} for line, counts in sorted(profile.ptx.items())],
        "sass": [{"line": line, **_numbers(counts)} for line, counts in sorted(profile.sass.items())],
        "estimates": [] if profile.measured else ["cycles", "waits"],
    }


def _numbers(counts: Counts) -> dict[str, float]:
    return {name: of(counts) for name, (_, of) in COLUMNS.items()}
