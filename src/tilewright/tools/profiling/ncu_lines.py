"""What ncu measures of each machine instruction: its section SourceCounters, and samples of what warps wait for.

`ncu --import REPORT --page source --csv` prints for each kernel its name, column names, then a row for each instruction
in the order of the code ("Nsight Compute CLI", "Output Pages"; "Kernel Profiling Guide", "Statistical Sampler").
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import ArgumentError
from tilewright.tools.profiling.commands import locate
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.ncu_report import number

REASONS: Final[Mapping[str, str]] = {
    "stall_long_sb": "long scoreboard", "stall_short_sb": "short scoreboard", "stall_wait": "wait",
    "stall_selected": "selected", "stall_not_selected": "not selected", "stall_barrier": "barrier",
    "stall_math": "math pipe", "stall_mio": "MIO throttle", "stall_lg": "LG throttle", "stall_drain": "drain",
    "stall_membar": "memory barrier", "stall_no_inst": "no instruction", "stall_imc": "constant cache",
    "stall_branch_resolving": "branch", "stall_dispatch": "dispatch", "stall_sleep": "sleep", "stall_tex": "texture",
    "stall_gmma": "wgmma", "stall_misc": "other",
}  # fmt: skip
"""Columns of samples, and the names of what warps wait for."""
Measured = dict[int, Counts]
"""What was measured of each instruction of a kernel, by offset in bytes."""
_PROGRAM: Final = "from tilewright.tools.profiling.gpu_launch import main; main()"


def available() -> bool:
    """Whether ncu is installed."""
    return locate("ncu") is not None


def measured(place: str, words: Sequence[str], arch: str | None, options: str) -> dict[str, Measured]:
    """Run `FILE:FUNCTION` once on the GPU under ncu; what it measured by kernel.

    Raises:
        ArgumentError: ncu is not installed, or could not profile.
    """
    program = locate("ncu")
    if program is None:
        raise ArgumentError(
            "ncu is not installed here: it is part of Nsight Compute", hint="--by emu counts the same on the emulator"
        )
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        report = Path(folder, "lines.ncu-rep")
        line = [
            program,
            "--section",
            "SourceCounters",
            "--import-source",
            "no",
            "--export",
            str(report.with_suffix("")),
        ]
        child = [sys.executable, "-c", _PROGRAM, place, arch or "", options, *words]
        done = subprocess.run([*line, *child], capture_output=True, text=True, check=False)
        if done.returncode or not report.exists():
            raise ArgumentError(f"ncu could not profile {place}", values={"it says": _last(done.stdout + done.stderr)})
        command = [program, "--import", str(report), "--page", "source", "--csv"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False)
    if printed.returncode:
        raise ArgumentError("ncu cannot read its own report", values={"it says": _last(printed.stderr)})
    return parse(printed.stdout.splitlines())


def _last(text: str) -> str:
    return text.strip()[-2000:]


def parse(lines: Iterable[str]) -> dict[str, Measured]:
    """What ncu printed, by kernel; of several launches of one kernel the sum."""
    found: dict[str, Measured] = {}
    kernel: Measured = {}
    head: list[str] = []
    first = 0
    for row in csv.reader(lines):
        if row[:1] == ["Kernel Name"]:
            kernel, head = found.setdefault(row[1], {}), []
        elif row[:1] == ["Address"]:
            head, first = row, -1
        elif head and len(row) == len(head):
            cells = dict(zip(head, row, strict=True))
            address = int(cells["Address"], 16)
            first = address if first < 0 else first
            kernel.setdefault(address - first, Counts()).add(_counts(cells))
    return found


def _counts(cells: Mapping[str, Any]) -> Counts:
    def whole(name: str) -> int:
        return int(number(cells.get(name, "")) or 0)

    return Counts(
        instructions=whole("Thread Instructions Executed"),
        sectors=whole("L2 Theoretical Sectors Global"),
        sectors_ideal=whole("L2 Theoretical Sectors Global Ideal"),
        wavefronts=whole("L1 Wavefronts Shared"),
        wavefronts_ideal=whole("L1 Wavefronts Shared Ideal"),
        stalls={reason: float(samples) for name, reason in REASONS.items() if (samples := whole(name))},
    )
