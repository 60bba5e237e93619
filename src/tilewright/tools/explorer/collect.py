"""What the explorer's page shows, as plain data."""

from __future__ import annotations

import difflib
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.base.location import SourceLocation
from tilewright.emulate import Report
from tilewright.passes.located_text import Place
from tilewright.passes.pass_changes import PassChange, bare
from tilewright.targets.emu.fidelity import Fidelity
from tilewright.tools.explorer.drawn import drawings
from tilewright.tools.explorer.machine import machine
from tilewright.tools.function_runs import Run
from tilewright.tools.located import Located, StageText, located
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.line_profile import LineProfile, hiding, line_profile

MOST_BLOCKS: Final = 1 << 16
"""A resource that admits more limits nothing."""
CONTEXT: Final = 3
"""Lines around a change of a pass."""
ESTIMATED: Final = "cycles"
LIVE: Final = "live"
SAMPLES: Final = "ncu_samples"
METRICS: Final = {
    "sectors": ("sectors", "sectors of 32 bytes of global memory, counted by the emulator"),
    "excess": ("excess sectors", "sectors beyond those that the same bytes would need if each request were coalesced"),
    "wavefronts": ("wavefronts", "passes over the banks of shared memory, counted by the emulator"),
    "conflicts": ("bank conflicts", "wavefronts beyond those that would do without bank conflicts"),
    "instructions": ("instructions", "instructions, one for each thread, counted by the emulator"),
    ESTIMATED: ("warp cycles", "cycles that warps would spend at the line if each ran alone: latencies times counts"),
    LIVE: ("live registers", "registers whose values are needed at the instruction or later: of a line the most"),
    "ncu_sectors": ("sectors, ncu", "sectors of 32 bytes of global memory, measured by ncu"),
    "ncu_wavefronts": ("wavefronts, ncu", "passes over the banks of shared memory, measured by ncu"),
    "ncu_conflicts": ("bank conflicts, ncu", "wavefronts beyond those that would do, measured by ncu"),
    "ncu_instructions": ("instructions, ncu", "instructions, one for each thread, measured by ncu"),
    SAMPLES: ("samples, ncu", "how often ncu saw a warp at the line"),
}
"""The columns of heat: what they are called, and what their numbers are."""


_WIDE: Final = re.compile(r"^ *\t*/\*([0-9a-f]{4,})\*/\s+(@\S+\s+)?", re.MULTILINE)


class Places:
    """The places of Python as numbers, and the files that they are in."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.rows: list[list[int]] = []
        self._numbers: dict[Place, int] = {}

    def number(self, place: Place | None) -> int:
        """The number of a place, -1 for none."""
        if place is None:
            return -1
        if place not in self._numbers:
            if place[0] not in self.files:
                self.files.append(place[0])
            self._numbers[place] = len(self.rows)
            self.rows.append([self.files.index(place[0]), place[1]])
        return self._numbers[place]


def collected(run: Run) -> dict[str, Any]:
    """Everything that the page of a function shows.

    Raises:
        ArgumentError: it has no kernel.
    """
    found = [located(executor) for executor in run.executors]
    if not any(program.kernels for program in found):
        raise ArgumentError(f"{run.name} launches no kernel, so there is nothing to show")
    places = Places()
    kernels = [
        {**_kernel(executor, name, texts, run, places), "program": number}
        for number, (executor, program) in enumerate(zip(run.executors, found, strict=True))
        for name, texts in program.kernels.items()
    ]
    cute = [text.text for item in found for texts in item.kernels.values() for text in texts if text.name == "cute"]
    return {
        "function": run.name,
        "arch": run.arch,
        "kernels": kernels,
        "programs": [
            {"passes": list(_passes(item)), "seconds": [list(pair) for pair in executor.job.seconds.items()]}
            for executor, item in zip(run.executors, found, strict=True)
        ],
        "layouts": {key: vars(item) for key, item in drawings(cute).items()},
        "calls": _calls(found, places),
        "places": places.rows,
        "files": [_file(path) for path in places.files],
        "metrics": [
            {"key": key, "name": name, "about": about, "estimate": key == ESTIMATED}
            for key, (name, about) in METRICS.items()
        ],
        "missing": run.missing,
    }


def _kernel(executor: Any, name: str, texts: Sequence[StageText], run: Run, places: Places) -> dict[str, Any]:
    reports, profile = run.by_kernel.get(name, []), line_profile(executor, name, texts, replace(run, measured={}))
    measured = line_profile(executor, name, texts, run) if name in run.measured else None
    sass = next((text for text in texts if text.name == "sass"), None)
    code = machine(executor.machine_code(name), sass) if sass else {"blocks": [], "registers": {}}
    stages = [
        {
            "name": text.name,
            "text": compact(text.text) if text.name == "sass" else text.text,
            "places": [places.number(place) for place in text.places],
            "ptx": [line or 0 for line in text.ptx_lines],
        }
        for text in texts
    ]
    counts = {stage: _by_line(stage, profile, measured) for stage in ("ptx", "sass", "python")}
    for line, used in code["registers"].items():
        _add_live(counts, line, sass.places[line - 1] if sass else None, used["live"].get("GPR", 0))
    return {
        "name": name,
        "stages": stages,
        "code": code,
        "counts": {
            "ptx": dict(sorted(counts["ptx"].items())),
            "sass": dict(sorted(counts["sass"].items())),
            "python": {places.number(place): found for place, found in counts["python"].items()},
        },
        "waits": _waits(profile, places),
        "all_waits": waits(profile.total),
        "hiding": hiding(profile),
        "sampled": _waits(measured, places) if measured else {},
        "all_sampled": waits(measured.total) if measured else [],
        "report": _report(executor, name),
        "remarks": _remarks(executor, name, places),
        "launches": [_launch(report, executor.arch) for report in reports],
        "fidelity": str(Fidelity.of_launches(report.by_form for report in reports)) if reports else "",
        "findings": [_finding(error, places) for report in reports for error in (*report.races, *report.errors)],
    }


def _by_line(stage: str, profile: LineProfile, measured: LineProfile | None) -> dict[Any, dict[str, float]]:
    """The figures of the lines of a stage: what the emulator counted, and what ncu measured."""
    own: Mapping[Any, Counts] = getattr(profile, stage)
    found = {line: figures(item) for line, item in own.items()}
    theirs: Mapping[Any, Counts] = getattr(measured, stage) if measured else {}
    for line, item in theirs.items():
        found.setdefault(line, {}).update(measured_figures(item))
    return found


def _add_live(counts: dict[str, dict[Any, dict[str, float]]], line: int, place: Place | None, live: int) -> None:
    """The live registers of a line of machine code; its line of Python has the most of its lines."""
    if not live:
        return
    counts["sass"].setdefault(line, {})[LIVE] = live
    if place is not None:
        found = counts["python"].setdefault(place, {})
        found[LIVE] = max(live, found.get(LIVE, 0))


def _waits(profile: LineProfile, places: Places) -> dict[int, list[list[Any]]]:
    return {places.number(place): waits(item) for place, item in profile.python.items() if item.stalls}


def compact(sass: str) -> str:
    """Machine code without the wide gap between addresses and instructions."""
    return _WIDE.sub(lambda found: f"/*{found[1]}*/ {(found[2] or '').strip():>6} ", sass)


def figures(counts: Counts) -> dict[str, float]:
    """The counts of a line by the keys of `METRICS`, those that are not 0."""
    found = {
        "sectors": counts.sectors,
        "excess": counts.sectors - counts.sectors_ideal,
        "wavefronts": counts.wavefronts,
        "conflicts": counts.conflicts,
        "instructions": counts.instructions,
        ESTIMATED: round(counts.stalled),
    }
    return {key: value for key, value in found.items() if value}


def measured_figures(counts: Counts) -> dict[str, float]:
    """What ncu measured of a line by the keys of `METRICS`, those that are not 0."""
    found = {f"ncu_{key}": value for key, value in figures(counts).items() if f"ncu_{key}" in METRICS}
    return found | ({SAMPLES: counts.stalled} if counts.stalled else {})


def waits(counts: Counts) -> list[list[Any]]:
    """What warps would wait for at a line: reasons with their shares, the largest first."""
    ordered = sorted(counts.stalls.items(), key=lambda pair: -pair[1])
    return [[reason, cycles / counts.stalled] for reason, cycles in ordered]


def _report(executor: Any, name: str) -> dict[str, Any]:
    """Registers, memory and occupancy, as rows; and the blocks that each resource admits."""
    try:
        kernel = next(item for item in executor.report().kernels if item.name == name)
    except (TilewrightError, StopIteration):
        return {"rows": [], "limits": []}
    shown = {
        "registers": kernel.registers,
        "spill stores": f"{kernel.spill_stores} bytes",
        "spill loads": f"{kernel.spill_loads} bytes",
        "stack": f"{kernel.stack} bytes",
        "shared memory": f"{kernel.shared:,} bytes",
        "constant memory": f"{kernel.constant:,} bytes",
        "barriers": kernel.barriers,
        "threads of a block": kernel.block or "known at the launch",
        "occupancy": kernel.occupancy,
        "vector accesses": ", ".join(f"{bits} bits" for bits in kernel.vector_bits) or "none",
    }
    limits: list[Any] = []
    if kernel.block:
        figure = executor.occupancy(kernel.block, kernel=name)
        limits = [
            [resource, blocks, resource == figure.limit]
            for resource, blocks in figure.limits.items()
            if blocks < MOST_BLOCKS
        ]
    return {"rows": [[key, str(value)] for key, value in shown.items()], "limits": limits}


def _remarks(executor: Any, name: str, places: Places) -> list[dict[str, Any]]:
    try:
        kernel = next(item for item in executor.report().kernels if item.name == name)
    except (TilewrightError, StopIteration):
        return []
    return [
        {"text": item.text, "place": places.number((item.file, item.line) if item.file else None)}
        for item in kernel.remarks
    ]


def _launch(report: Report, arch: str) -> dict[str, Any]:
    """The totals of one launch, and what would bind it."""
    shown = {
        "blocks": report.blocks,
        "threads of a block": report.threads,
        "thread instructions": report.instructions,
        "sectors of global memory": report.sectors,
        "sectors if each request were coalesced": report.sectors_ideal,
        "different sectors": report.distinct_sectors,
        "wavefronts of shared memory": report.wavefronts,
        "bank conflicts": report.bank_conflicts,
    }
    try:
        roofline = report.roofline(arch)
    except TilewrightError as error:
        limits, card, note = [], "", str(error)
    else:
        limits = [[limit.name, limit.seconds, f"{limit.amount:.4g} {limit.unit}"] for limit in roofline.limits]
        card, note = roofline.card, ""
    return {
        "rows": [[key, f"{value:,}"] for key, value in shown.items() if value is not None],
        "card": card,
        "limits": limits,
        "note": note,
    }


def _finding(error: Any, places: Places) -> dict[str, Any]:
    place = (error.location.file, error.location.line) if error.location is not None else None
    return {"text": error.message, "place": places.number(place)}


def _passes(found: Located) -> Iterator[dict[str, Any]]:
    """Each pass in order, with the lines that it changed beside each other."""
    times = [(item.name, item.seconds) for item in found.job.pass_runs]
    for number, change in enumerate(found.passes.changes):
        name, seconds = times[number] if number < len(times) else (change.name, 0.0)
        yield {"name": change.name, "seconds": seconds if name == change.name else 0.0, "rows": list(rows(change))}


def rows(change: PassChange) -> Iterator[list[str]]:
    """The lines around each change: (kind, before, after), of kind `same`, `changed`, `removed`, `added` or `skipped`.

    Names of values do not count. Texts that are equal everywhere give no rows.
    """
    old, new = change.before.splitlines(), change.after.splitlines()
    matcher = difflib.SequenceMatcher(None, bare(old), bare(new), autojunk=False)
    reached = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if all(tag == "equal" for tag, *_ in group):
            continue
        skipped = group[0][3] - reached
        if skipped:
            yield ["skipped", f"{skipped} lines are the same", ""]
        for tag, start, end, new_start, new_end in group:
            yield from _beside(tag, old[start:end], new[new_start:new_end])
        reached = group[-1][4]


def _beside(tag: str, old: Sequence[str], new: Sequence[str]) -> Iterator[list[str]]:
    for number in range(max(len(old), len(new))):
        left = old[number] if number < len(old) else None
        right = new[number] if number < len(new) else None
        if tag == "equal":
            kind = "same"
        elif left is not None and right is not None:
            kind = "changed"
        else:
            kind = "removed" if right is None else "added"
        yield [kind, left or "", right or ""]


def _calls(found: Iterable[Located], places: Places) -> list[list[Any]]:
    """For inlined helpers: a place, and the places that it was called from."""
    callers: dict[int, list[int]] = {}
    for location in (place for item in found for place in item.job.locations):
        inner, *outer = location.chain()
        known = callers.setdefault(places.number(_place(inner)), []) if outer else []
        known += [number for item in outer if (number := places.number(_place(item))) not in known]
    return [[place, others] for place, others in callers.items()]


def _place(location: SourceLocation) -> Place:
    return location.file, location.line


def _file(path: str) -> dict[str, str]:
    """A source file, or a cell of a notebook, with its text; "" where it is gone."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = "".join(linecache.getlines(path))
    return {"path": path, "name": Path(path).name, "text": text}
