"""What the emulator counts of each line: instructions, sectors of global memory, wavefronts of shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.emulate import Report
from tilewright.targets.nvidia.backend.ptx_lines import Place


@dataclass
class Counts:
    """The counts of a line. `instructions` counts each thread, `requests` the accesses of warps to memory; sectors have
    32 bytes, a wavefront is one pass over the banks. `*_ideal` is what the same bytes would need at best. `stalls` has
    estimated cycles of warps by reason."""

    instructions: int = 0
    requests: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    wavefronts: int = 0
    wavefronts_ideal: int = 0
    stalls: dict[str, float] = field(default_factory=dict)

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond those that would do."""
        return self.wavefronts - self.wavefronts_ideal

    @property
    def stalled(self) -> float:
        """All cycles of waiting."""
        return sum(self.stalls.values())

    def add(self, other: Counts) -> None:
        """Add the counts of another line."""
        self.instructions += other.instructions
        self.requests += other.requests
        self.sectors += other.sectors
        self.sectors_ideal += other.sectors_ideal
        self.wavefronts += other.wavefronts
        self.wavefronts_ideal += other.wavefronts_ideal
        for reason, cycles in other.stalls.items():
            self.stalls[reason] = self.stalls.get(reason, 0.0) + cycles


def by_ptx_line(reports: Iterable[Report]) -> dict[int, Counts]:
    """The counts of all launches of a kernel by line of its PTX, from 1."""
    found: dict[int, Counts] = {}
    for report in reports:
        for line, count in report.by_ptx_line.items():
            found.setdefault(line, Counts()).instructions += count
        traffic = report.traffic or ()
        copies = {item.ptx_line for item in traffic if item.space == "global"}  # requests of both spaces
        for item in traffic:
            counts = found.setdefault(item.ptx_line, Counts())
            if item.space == "global":
                counts.requests += item.requests
                counts.sectors += item.units
                counts.sectors_ideal += item.ideal
            else:
                counts.requests += item.requests if item.ptx_line not in copies else 0
                counts.wavefronts += item.units
                counts.wavefronts_ideal += item.ideal
    return found


def by_place(lines: Mapping[int, Counts], places: Sequence[Place | None]) -> dict[Place, Counts]:
    """The counts of PTX lines by line of Python, in the order of the PTX; `places` has the place of each line."""
    found: dict[Place, Counts] = {}
    for line in sorted(lines):
        place = places[line - 1] if line <= len(places) else None
        if place is not None:
            found.setdefault(place, Counts()).add(lines[line])
    return found
