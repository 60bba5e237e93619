"""What ncu measures of each machine instruction: its section SourceCounters, and samples of what warps wait for.

`ncu --import REPORT --page source --csv` prints for each kernel its name, column names, then a row for each instruction
in the order of the code ("Nsight Compute CLI", "Output Pages"; "Kernel Profiling Guide", "Statistical Sampler").
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import ArgumentError
from tilewright.targets.nvidia.sass.listing import Instruction
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
HOW: Final = "tilewright profile lines --by ncu --save FILE writes one; so does ncu --section SourceCounters --export"
_OPCODE: Final = re.compile(r"(?:@\S+\s+)?(?P<name>[A-Z][A-Z0-9_]*)")
_PROGRAM: Final = "from tilewright.tools.profiling.gpu_launch import main; main()"


def available() -> bool:
    """Whether ncu is installed."""
    return locate("ncu") is not None


@dataclass
class Recording:
    """What ncu measured: by kernel the counts of each instruction, and the instructions' opcodes, by offset.

    `text` is what ncu printed, which `read` takes.
    """

    text: str
    counts: dict[str, Measured] = field(default_factory=dict)
    opcodes: dict[str, dict[int, str]] = field(default_factory=dict)

    def check(self, kernel: str, instructions: Sequence[Instruction]) -> None:
        """See that a kernel that was measured is the one whose instructions are given.

        Raises:
            ArgumentError: it is other code.
        """
        ours = {item.offset: item.mnemonic for item in instructions}
        measured = self.opcodes.get(kernel, ours)
        theirs = {at: name for at, name in measured.items() if name != "NOP" or at in ours}  # no padding at the end
        place = next((at for at in sorted(ours | theirs) if ours.get(at) != theirs.get(at)), None)
        if place is not None:
            raise ArgumentError(
                f"ncu measured other code of {kernel} than what is compiled here",
                values={
                    "instructions, measured": len(theirs),
                    "instructions, compiled": len(ours),
                    f"at {place:04x}, measured": theirs.get(place, "nothing"),
                    f"at {place:04x}, compiled": ours.get(place, "nothing"),
                },
                hint="give the arguments, the options and the --arch of the run that was measured",
            )


def measured(place: str, words: Sequence[str], arch: str | None, options: str) -> Recording:
    """Run `FILE:FUNCTION` once on the GPU under ncu, and give what it measured.

    Raises:
        ArgumentError: ncu is not installed, or could not profile.
    """
    program = _ncu("--by emu counts the same on the emulator")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        report = Path(folder, "lines.ncu-rep")
        line = [program, "--section", "SourceCounters", "--import-source", "no"]
        line += ["--export", str(report.with_suffix(""))]
        child = [sys.executable, "-c", _PROGRAM, place, arch or "", options, *words]
        done = subprocess.run([*line, *child], capture_output=True, text=True, check=False)
        if done.returncode or not report.exists():
            raise ArgumentError(f"ncu could not profile {place}", values={"it says": _last(done.stdout + done.stderr)})
        return parse(_printed(report))


def read(file: Path) -> Recording:
    """What a report of ncu has (`.ncu-rep`, which ncu prints), or a file with what ncu printed of one.

    Raises:
        ArgumentError: there is no such file, it holds no source counters, or ncu is needed and not installed.
    """
    if not file.is_file():
        raise ArgumentError(f"there is no report {file}", hint=HOW)
    text = _printed(file) if file.suffix == ".ncu-rep" else file.read_text(encoding="utf-8", errors="replace")
    found = parse(text)
    if not any(found.counts.values()):
        raise ArgumentError(f"{file} says nothing of single instructions", hint=HOW)
    return found


def _ncu(hint: str) -> str:
    program = locate("ncu")
    if program is None:
        raise ArgumentError("ncu is not installed here: it is part of Nsight Compute", hint=hint)
    return program


def _printed(report: Path) -> str:
    """The source page of a report."""
    program = _ncu(f"where it is: ncu --import {report.name} --page source --csv > measured.csv, and give that file")
    command = [program, "--import", str(report), "--page", "source", "--csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArgumentError(f"ncu cannot read {report.name}", values={"it says": _last(done.stdout + done.stderr)})
    return done.stdout


def _last(text: str) -> str:
    return text.strip()[-2000:]


def parse(text: str) -> Recording:
    """What ncu printed, by kernel; of several launches of one kernel the sum."""
    found = Recording(text)
    kernel, head, first = "", [""], 0
    for row in csv.reader(text.splitlines()):
        if row[:1] == ["Kernel Name"]:
            kernel, head = row[1].partition("(")[0], []
        elif row[:1] == ["Address"]:
            head, first = row, -1
        elif kernel and len(row) == len(head):
            cells = dict(zip(head, row, strict=True))
            address = int(cells["Address"], 16)
            first = address if first < 0 else first
            found.counts.setdefault(kernel, {}).setdefault(address - first, Counts()).add(_counts(cells))
            opcode = _OPCODE.match(cells.get("Source", "").strip())
            found.opcodes.setdefault(kernel, {})[address - first] = opcode["name"] if opcode else ""
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
