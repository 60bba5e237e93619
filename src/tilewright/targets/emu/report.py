"""What a launch tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.base.errors import EmulationError


@dataclass(frozen=True)
class LineTraffic:
    """The memory traffic of one instruction: `units` are sectors (global) or wavefronts (shared)."""

    space: str
    ptx_line: int
    instruction: str
    source: str
    requests: int
    units: int
    ideal: int


@dataclass
class Report:
    """The outcome of one launch.

    `instructions` counts thread-instructions (each thread that executes an instruction counts once), `by_class`
    the same by first word of the opcode, `by_line` by source line (or PTX line where there is none). `errors` and
    `races` hold what was found with `checks="collect"`. `output` is what the kernel printed. `traffic` is there
    when counters were asked for.
    """

    kernel: str = ""
    instructions: int = 0
    by_class: dict[str, int] = field(default_factory=dict)
    by_line: dict[str, int] = field(default_factory=dict)
    errors: list[EmulationError] = field(default_factory=list)
    races: list[EmulationError] = field(default_factory=list)
    output: str = ""
    blocks: int = 0
    threads: int = 0
    traffic: list[LineTraffic] | None = None

    @property
    def ok(self) -> bool:
        """No error and no race."""
        return not self.errors and not self.races

    @property
    def sectors(self) -> int | None:
        """Sectors of 32 bytes that loads and stores moved to and from global memory; None if not counted."""
        return self._sum("global", "units")

    @property
    def sectors_ideal(self) -> int | None:
        """The sectors that the same bytes would need at best."""
        return self._sum("global", "ideal")

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts of shared memory; None if not counted."""
        return self._sum("shared", "units")

    @property
    def wavefronts_ideal(self) -> int | None:
        """The wavefronts without bank conflicts."""
        return self._sum("shared", "ideal")

    @property
    def bank_conflicts(self) -> int | None:
        """Wavefronts beyond the ideal; None if not counted."""
        taken, ideal = self.wavefronts, self.wavefronts_ideal
        return None if taken is None or ideal is None else taken - ideal

    def _sum(self, space: str, name: str) -> int | None:
        if self.traffic is None:
            return None
        return sum(int(getattr(line, name)) for line in self.traffic if line.space == space)
