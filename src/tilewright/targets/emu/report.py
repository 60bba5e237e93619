"""What a launch tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.base.errors import EmulationError


@dataclass
class Report:
    """The outcome of one launch.

    `instructions` counts thread-instructions (each thread that executes an instruction counts once), `by_class`
    the same by first word of the opcode. `errors` and `races` hold what was found with `checks="collect"`.
    `output` is what the kernel printed.
    """

    kernel: str = ""
    instructions: int = 0
    by_class: dict[str, int] = field(default_factory=dict)
    errors: list[EmulationError] = field(default_factory=list)
    races: list[EmulationError] = field(default_factory=list)
    output: str = ""
    blocks: int = 0
    threads: int = 0

    @property
    def ok(self) -> bool:
        """No error and no race."""
        return not self.errors and not self.races
