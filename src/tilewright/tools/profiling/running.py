"""Running a command under a profiler, or on the emulator with its counters kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.tools.profiling.commands import Tool, Wanted, command_line

FOLDER = Path("profiles")


def report_path(name: str, ending: str) -> Path:
    """A new file in `profiles/`: `ncu_20261128_210500.ncu-rep`."""
    FOLDER.mkdir(exist_ok=True)
    start = f"{name}_{datetime.now():%Y%m%d_%H%M%S}"
    path, number = FOLDER / f"{start}{ending}", 1
    while path.exists():
        path, number = FOLDER / f"{start}_{number}{ending}", number + 1
    return path


def profile(tool: Tool, wanted: Wanted) -> tuple[int, Path]:
    """Run a command under a profiler; its exit status, and where the report is."""
    report = report_path(tool.name, tool.ending)
    line = command_line(tool, wanted, report)
    return subprocess.run(line, check=False).returncode, report


def emulate(wanted: Wanted) -> tuple[int, list[dict[str, Any]]]:
    """Run a command with its kernels on the emulator; its exit status, and what each launch counted.

    Raises:
        ArgumentError: there is no command, or an option that only a profiler has.
    """
    if not wanted.command:
        raise ArgumentError("there is no command to run", hint="tilewright profile emu -- python script.py")
    if wanted.options or wanted.extract:
        given = " ".join(wanted.options) or "--extract"
        raise ArgumentError(
            f"the emulator has no option {given}", hint="it counts; --kernel-name chooses what is shown"
        )
    path = report_path("emu", ".jsonl").resolve()
    changes = {settings.TABLE["target"].variables[0]: "emu", settings.TABLE["counters"].variables[0]: str(path)}
    try:
        status = subprocess.run(wanted.command, env=settings.environment(changes), check=False).returncode
    except FileNotFoundError as error:
        raise ArgumentError(f"there is no program {wanted.command[0]!r}") from error
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return status, [json.loads(line) for line in lines]


def counted(launches: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the emulator counted, as lines; launches of one kernel with the same counts are one entry."""
    yield "Emulator: counted while emulating, not measured on a GPU."
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        groups.setdefault(json.dumps(launch, sort_keys=True), []).append(launch)
    for same in groups.values():
        yield from _entry(same[0], len(same))


def _entry(launch: Mapping[str, Any], times: int) -> Iterator[str]:
    blocks = "1 block" if launch["blocks"] == 1 else f"{launch['blocks']:,} blocks"
    often = f", {times} launches alike" if times > 1 else ""
    yield f"{launch['kernel']}: {blocks} of {launch['threads']:,} threads{often}"
    yield f"  {launch['instructions']:,} thread instructions"
    yield (
        f"  global memory: {launch['sectors']:,} sectors of 32 bytes, {launch['sectors_ideal']:,} if each request were "
        f"coalesced, {launch['distinct_sectors']:,} different ones"
    )
    yield f"  shared memory: {launch['wavefronts']:,} wavefronts, {launch['wavefronts_ideal']:,} without bank conflicts"
    yield f"  {launch['fidelity']}".replace("\n", "\n  ")
