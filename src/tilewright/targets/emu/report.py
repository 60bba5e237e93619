"""What a launch tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.hw.peaks import peak
from tilewright.targets.emu.fidelity import Fidelity
from tilewright.targets.emu.roofline import Roofline, estimate


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


@dataclass(repr=False)
class Report:
    """The outcome of one launch.

    `instructions` counts thread-instructions (each thread that executes an instruction counts once), `by_class`
    the same by first word of the opcode, `by_line` by source line (or PTX line where there is none), `by_ptx_line` by
    line of the PTX text, `by_form` by opcode with its modifiers and types (`fidelity.form_of`). `errors` and `races`
    hold what was found with `checks="collect"`. `output` is what the kernel printed. `traffic` is there when counters
    were asked for, and so is `distinct_sectors`, the sectors of global memory that were read plus those that were
    written, each once. `work` counts operations by unit (f32, f64, special, tensor f16, ...).
    """

    kernel: str = ""
    instructions: int = 0
    by_class: dict[str, int] = field(default_factory=dict)
    by_line: dict[str, int] = field(default_factory=dict)
    by_form: dict[str, int] = field(default_factory=dict)
    by_ptx_line: dict[int, int] = field(default_factory=dict)
    errors: list[EmulationError] = field(default_factory=list)
    races: list[EmulationError] = field(default_factory=list)
    output: str = ""
    blocks: int = 0
    threads: int = 0
    traffic: list[LineTraffic] | None = None
    work: dict[str, float] = field(default_factory=dict)
    distinct_sectors: int | None = None

    def __repr__(self) -> str:
        """What a console shows: the counts, and how many findings there are."""
        counted = (
            f", {self.sectors:,} sectors, {self.bank_conflicts:,} bank conflicts" if self.traffic is not None else ""
        )
        found = "ok" if self.ok else f"{len(self.errors)} errors, {len(self.races)} races"
        launched = f"{self.blocks:,} blocks, {self.threads:,} threads, {self.instructions:,} instructions"
        return f"<{self.kernel or 'launch'}: {launched}{counted}; {found}>"

    @property
    def ok(self) -> bool:
        """No error and no race."""
        return not self.errors and not self.races

    @property
    def fidelity(self) -> Fidelity:
        """Which of the instructions that ran are recorded on a GPU, and which are taken from the manual."""
        return Fidelity.of(self.by_form)

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

    def counts(self) -> dict[str, Any]:
        """What was counted, for JSON: sectors of 32 bytes, wavefronts, and the least that would do."""
        return {
            "kernel": self.kernel, "blocks": self.blocks, "threads": self.threads, "instructions": self.instructions,
            "sectors": self.sectors, "sectors_ideal": self.sectors_ideal, "distinct_sectors": self.distinct_sectors,
            "wavefronts": self.wavefronts, "wavefronts_ideal": self.wavefronts_ideal, "fidelity": str(self.fidelity),
        }  # fmt: skip

    def roofline(self, chip: str) -> Roofline:
        """Which limit of a card would bind this launch: an estimate from counters and peak rates, not a measurement.

        Args:
            chip: a card such as "H100", "A100 40GB", "RTX 4090", or an architecture (`tilewright.hw.peaks`).

        Raises:
            ArgumentError: the launch ran without `counters=True`, or the card is not known, or it cannot do the work.
        """
        card = peak(chip)
        if self.sectors is None or self.wavefronts is None or self.distinct_sectors is None:
            raise ArgumentError("the launch counted no memory traffic", hint="run it with counters=True")
        lacking = [u for u in self.work if u.startswith("tensor ") and u.split()[1] not in card.tensor]
        if lacking:
            raise ArgumentError(f"{card.name} has no rate for {lacking[0]}", values={"kernel": self.kernel})
        moved = (self.distinct_sectors, self.sectors, self.wavefronts)
        return estimate(self.kernel, card, self.blocks, self.instructions, self.work, moved)

    def _sum(self, space: str, name: str) -> int | None:
        if self.traffic is None:
            return None
        return sum(int(getattr(line, name)) for line in self.traffic if line.space == space)
