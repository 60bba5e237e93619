"""What each line of a kernel costs, in Python, PTX and SASS: the emulator's counts, and the estimated waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.emulate import Report
from tilewright.hw.chips import SECTOR_BYTES, WARP_THREADS
from tilewright.hw.latencies import latencies
from tilewright.hw.occupancy import SM_PARTITIONS
from tilewright.hw.peaks import peak
from tilewright.passes.located_text import Place
from tilewright.targets.nvidia.backend.stage_lines import sass_offsets
from tilewright.targets.nvidia.sass.table import space_of
from tilewright.tools.function_runs import Run
from tilewright.tools.located import StageText, located
from tilewright.tools.profiling.line_counts import Counts, by_place, by_ptx_line
from tilewright.tools.profiling.stalls import ISSUED, ChipTimes, executions, stalls


@dataclass(frozen=True)
class LineProfile:
    """The lines of one kernel: PTX and SASS by number from 1, Python by file and number; and its launches.

    `occupancy` says how many warps there are to hide what one waits for; None where the block is not known. `measured`
    means that ncu counted, and that `stalls` are its samples; else the emulator counted, and they are estimates.
    """

    kernel: str
    arch: str
    ptx: Mapping[int, Counts]
    sass: Mapping[int, Counts]
    python: Mapping[Place, Counts]
    reports: Sequence[Report]
    occupancy: Any = None
    measured: bool = False

    @property
    def total(self) -> Counts:
        """The sum of all lines of Python."""
        total = Counts()
        for counts in self.python.values():
            total.add(counts)
        return total


def line_profiles(run: Run) -> Iterator[LineProfile]:
    """The profiles of all kernels of a run that were launched."""
    for executor in run.executors:
        for name, texts in located(executor).kernels.items():
            if name in run.by_kernel or name in run.measured:
                yield line_profile(executor, name, texts, run)


def line_profile(executor: Any, name: str, texts: Sequence[StageText], run: Run) -> LineProfile:
    """The profile of one kernel, from the texts of its stages and what was counted."""
    by_name, reports = {text.name: text for text in texts}, run.by_kernel.get(name, [])
    if name in run.measured:
        return _measured(executor, name, by_name["sass"], run.measured[name], reports)
    ptx, occupancy = by_ptx_line(reports), _occupancy(executor, name, reports)
    sass: dict[int, Counts] = {}
    if "sass" in by_name and ptx:
        sass = _machine_code(executor, name, by_name["sass"], ptx, chip_times(executor.arch, reports, occupancy))
    python = by_place(ptx, by_name["ptx"].places) if "ptx" in by_name else {}
    if sass:
        _add_stalls(by_name["sass"], sass, ptx, python)
    return LineProfile(name, executor.arch, ptx, sass, python, reports, occupancy)


def _measured(
    executor: Any, name: str, text: StageText, found: Mapping[int, Counts], reports: Sequence[Report]
) -> LineProfile:
    """The profile that ncu measured: of machine code, and by it of PTX and Python."""
    offsets = enumerate(sass_offsets(text.text, name), 1)
    sass = {at: found[offset] for at, offset in offsets if offset is not None and offset in found}
    ptx: dict[int, Counts] = {}
    python: dict[Place, Counts] = {}
    for line, counts in sass.items():
        place, ptx_line = text.places[line - 1], text.ptx_lines[line - 1]
        if place is not None:
            python.setdefault(place, Counts()).add(counts)
        if ptx_line is not None:
            ptx.setdefault(ptx_line, Counts()).add(counts)
    occupancy = _occupancy(executor, name, reports)
    return LineProfile(name, executor.arch, ptx, sass, python, reports, occupancy, measured=True)


def missing(reports: Sequence[Report]) -> float:
    """The share of the sectors of global memory that no cache can have had: each sector the first time."""
    moved = sum(report.sectors or 0 for report in reports)
    return min(sum(report.distinct_sectors or 0 for report in reports) / moved, 1.0) if moved else 1.0


def _machine_code(
    executor: Any, name: str, text: StageText, ptx: Mapping[int, Counts], chip: ChipTimes
) -> dict[int, Counts]:
    """The counts of each line of machine code: of accesses those of their PTX, and what warps would wait for."""
    code = executor.machine_code(name)
    offsets = {offset: at for at, offset in enumerate(sass_offsets(text.text, name), 1) if offset is not None}
    lines = {offset: line for offset, at in offsets.items() if (line := text.ptx_lines[at - 1]) is not None}
    waiting = stalls(code, lines, ptx, chip)
    warps = executions(code.instructions, lines, ptx)
    found: dict[int, Counts] = {}
    for item in code.instructions:
        if item.offset not in offsets:
            continue
        whole = ptx.get(lines.get(item.offset, 0), Counts())
        own = Counts(
            instructions=round(warps.get(item.offset, 0.0) * WARP_THREADS), stalls=waiting.get(item.offset, {})
        )
        if space_of(item.mnemonic) is not None and whole.instructions:
            part = own.instructions / whole.instructions
            own.sectors, own.sectors_ideal = round(whole.sectors * part), round(whole.sectors_ideal * part)
            own.wavefronts, own.wavefronts_ideal = round(whole.wavefronts * part), round(whole.wavefronts_ideal * part)
        found[offsets[item.offset]] = own
    return found


def _add_stalls(
    text: StageText, sass: Mapping[int, Counts], ptx: dict[int, Counts], python: dict[Place, Counts]
) -> None:
    """Give what warps wait for at machine code to its lines of PTX and Python too."""
    for line, counts in sass.items():
        waiting = Counts(stalls=counts.stalls)
        place, ptx_line = text.places[line - 1], text.ptx_lines[line - 1]
        if place is not None:
            python.setdefault(place, Counts()).add(waiting)
        if ptx_line is not None:
            ptx.setdefault(ptx_line, Counts()).add(waiting)


def _occupancy(executor: Any, name: str, reports: Sequence[Report]) -> Any:
    try:
        return executor.occupancy(reports[0].threads, kernel=name) if reports else None
    except TilewrightError:
        return None


def hiding(profile: LineProfile) -> str:
    """Whether the warps that are resident can hide what one alone would wait for; "" where that is not known."""
    total = profile.total
    issued = total.stalls.get(ISSUED, 0.0)
    if not issued or profile.occupancy is None or profile.measured:
        return ""
    needed = total.stalled / issued
    there = resident_warps(profile) / SM_PARTITIONS
    warps = "warp a scheduler is" if there == 1 else "warps a scheduler are"
    said = "enough to hide its waiting" if there >= needed else "too few to hide its waiting"
    return f"one warp alone would issue an instruction every {needed:.1f} cycles; {there:g} {warps} resident, {said}"


def resident_warps(profile: LineProfile) -> int:
    """The warps of a multiprocessor at a time, with the blocks of the largest launch spread evenly."""
    return _resident(profile.arch, profile.reports, profile.occupancy)


def chip_times(arch: str, reports: Sequence[Report], occupancy: Any) -> ChipTimes:
    """What the estimate of waiting takes from the chip and the launches."""
    try:
        card = peak(arch)
        sector_cycles = SECTOR_BYTES * card.clock * card.multiprocessors / card.memory
    except ArgumentError:  # nobody knows how fast cards of this chip are
        sector_cycles = 0.0
    warps = _resident(arch, reports, occupancy) if occupancy is not None else 1
    blocks = warps // max(-(-reports[0].threads // WARP_THREADS), 1)
    return ChipTimes(latencies(arch), missing(reports), max(warps, 1), sector_cycles, max(blocks, 1))


def _resident(arch: str, reports: Sequence[Report], occupancy: Any) -> int:
    warps = -(-reports[0].threads // WARP_THREADS)
    blocks = max(report.blocks for report in reports)
    try:
        blocks = -(-blocks // peak(arch).multiprocessors)
    except ArgumentError:
        return int(occupancy.active_warps)
    return min(int(occupancy.active_warps), blocks * warps)
