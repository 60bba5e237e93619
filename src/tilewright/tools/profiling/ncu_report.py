"""The metrics of a report of Nsight Compute that say what binds a kernel, in three groups.

`ncu --import REPORT --csv --page raw` prints a line of column names, a line of units, then a line for each kernel; a
metric's column has the metric's name ("Nsight Compute CLI", section "Output Pages"; "Kernel Profiling Guide", section
"Metrics Decoder", for the pipes and the stall reasons).
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.tools.profiling.commands import TOOLS, locate, missing


@dataclass(frozen=True)
class Metric:
    """A metric by its label; where several columns match, which differ between chips, the largest counts."""

    label: str
    pattern: str


def _pipe(label: str, name: str) -> Metric:
    """A pipe's activity, in percent of the cycles in which its multiprocessor was active."""
    named = f"(inst_executed_pipe_{name}|pipe_{name}(_cycles)?_active|pipe_{name}_op_[a-z0-9_]+_cycles_active)"
    return Metric(label, rf"sm__{named}(_op_[a-z0-9_]+)?\.avg\.pct_of_peak_sustained_active")


def _stall(label: str, reason: str) -> Metric:
    """Warps that wait for this reason, on average, whenever an instruction is issued."""
    return Metric(label, rf"smsp__average_warps_issue_stalled_{reason}_per_issue_active\.ratio")


GROUPS = {
    "GPU throughput": (
        Metric("Memory", r"gpu__compute_memory_throughput\.avg\.pct_of_peak_sustained_elapsed"),
        Metric("Compute (SM)", r"sm__throughput\.avg\.pct_of_peak_sustained_elapsed"),
        Metric("DRAM", r"(gpu__)?dram__?throughput\.avg\.pct_of_peak_sustained_elapsed"),
        Metric("Duration", r"gpu__time_duration\.sum"),
    ),
    "Pipe utilization": (_pipe("Tensor core", "tensor"), _pipe("FMA", "fma"), _pipe("ALU", "alu")),
    "Warp stalls": (
        _stall("Long scoreboard", "long_scoreboard"),
        _stall("Barrier", "barrier"),
        _stall("Memory throttle (LG)", "lg_throttle"),
        _stall("Memory throttle (MIO)", "mio_throttle"),
    ),
}


@dataclass(frozen=True)
class Profile:
    """One profiled launch: `metrics` by group and label; None for what the report has not."""

    report: str
    kernel: str
    grid: str
    block: str
    metrics: Mapping[str, Mapping[str, float | None]]
    units: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        metrics = {group: dict(values) for group, values in self.metrics.items()}
        return {
            "report": self.report, "kernel": self.kernel, "grid": self.grid, "block": self.block, "metrics": metrics,
            "units": dict(self.units),
        }  # fmt: skip


def extract(reports: Sequence[Path], kernel: str | None = None) -> list[Profile]:
    """The launches of all reports, those whose kernel's name contains `kernel` in any case, underscores apart.

    Raises:
        ArgumentError: ncu is not installed, a report is missing or unreadable, or no kernel has such a name.
    """
    found = [profile for report in reports for profile in read(report)]
    if kernel is None:
        return found
    chosen = [profile for profile in found if plain(kernel) in plain(profile.kernel)]
    if not chosen:
        names = ", ".join(sorted({profile.kernel for profile in found})) or "none"
        raise ArgumentError(f"no kernel is called {kernel!r}", values={"kernels": names})
    return chosen


def plain(name: str) -> str:
    """A name as filters compare it: CopyTranspose and copy_transpose are one."""
    return name.lower().replace("_", "")


def read(report: Path) -> list[Profile]:
    """The launches of one report; raises as `extract`."""
    if not report.is_file():
        raise ArgumentError(f"there is no report {report}", hint="`tilewright profile ncu -- COMMAND` writes one")
    program = locate("ncu")
    if program is None:
        raise missing(TOOLS["ncu"])
    command = [program, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()[-2000:]
        raise ArgumentError(f"ncu cannot read {report}", values={"it says": words})
    return list(parse(done.stdout.splitlines(), str(report)))


def parse(lines: Iterable[str], report: str) -> Iterator[Profile]:
    """The launches in what ncu printed; what stands before the names of the columns is its log.

    Raises:
        ArgumentError: it is no such text.
    """
    rows = csv.reader(line for line in lines if not line.startswith("=="))
    header = next((row for row in rows if "Kernel Name" in row), None)
    if header is None:
        raise ArgumentError(f"ncu printed no kernels of {report}", hint="was a kernel of that name launched at all?")
    units = dict(zip(header, next(rows, []), strict=False))
    columns = {
        metric: [name for name in header if re.fullmatch(metric.pattern, name)]
        for metrics in GROUPS.values()
        for metric in metrics
    }
    for row in rows:
        if len(row) != len(header):
            continue  # an empty line, or ncu's log after the table
        cells = dict(zip(header, row, strict=True))
        metrics = {
            group: {metric.label: _largest(cells, columns[metric]) for metric in wanted}
            for group, wanted in GROUPS.items()
        }
        named = {metric.label: units.get(names[0], "") for metric, names in columns.items() if names}
        grid, block = cells.get("Grid Size", ""), cells.get("Block Size", "")
        yield Profile(report, cells["Kernel Name"], grid, block, metrics, named)


def _largest(cells: Mapping[str, str], names: Sequence[str]) -> float | None:
    values = [value for name in names if (value := number(cells.get(name, ""))) is not None]
    return max(values, default=None)


def number(text: str) -> float | None:
    """`1,234.5` as a number; None for what is none, such as an empty cell or `n/a`."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def lines(profiles: Sequence[Profile]) -> Iterator[str]:
    """The metrics of all launches as text, four lines each."""
    width = max(map(len, GROUPS))
    for profile in profiles:
        yield f"{profile.kernel}  grid {profile.grid}  block {profile.block}  ({profile.report})"
        for group, metrics in GROUPS.items():
            yield f"  {group:<{width}}  {', '.join(_figure(profile, group, metric.label) for metric in metrics)}"


def _figure(profile: Profile, group: str, label: str) -> str:
    value = profile.metrics[group][label]
    if value is None:
        return f"{label} not collected"
    unit = "warps" if group == "Warp stalls" else profile.units.get(label, "")
    return f"{label} {value:,.2f} {unit}".rstrip()
