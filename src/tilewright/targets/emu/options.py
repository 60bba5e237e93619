"""How a launch runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.checks import STANDARD, Batch, Observer
from tilewright.targets.emu.debug import Spectator

BATCH_LANES = 16384
Checks = bool | Literal["collect"] | Sequence[type[Observer] | bool]
"""What a launch looks for: see `Options`."""
HINT = "True, False, 'collect', or a list of classes: checks=[True, Mine], or [Races, Mine] for these alone"


@dataclass(frozen=True)
class Options:
    """How a launch runs.

    `checks`: True raises at the first finding, "collect" gathers all, False looks for nothing but accesses out of
    bounds; a list has the classes of the checkers (`checks.Observer`), in which True stands for all standard ones.
    `collect` gathers findings whatever the checks. `seed` varies the order of blocks and warps; `limit` bounds the
    blocks of code run by all cohorts (an `EmulationError` beyond it), None for no bound. `echo` writes what the kernel
    prints to stdout. `lockstep` reports races within a warp too, which no hardware shows while its threads run in
    lockstep. `counters` counts sectors and wavefronts. `debugger` looks on, instruction by instruction. `progress`:
    whether a launch that takes long says so (`progress.Bar`); None for the setting's value. `timeout`: the most seconds
    that it may run (an `EmulationError` beyond), None for the setting's value. `all_arrive`: every thread reaches each
    barrier of its block or warp, as the DSL has it; by PTX it may have ended. `thread_clock`: `%clock64` counts the
    instructions that a thread has executed, not the time of the launch.

    Raises:
        ArgumentError: `checks` is none of these, or the time limit is not positive.
    """

    checks: Checks = True
    seed: int = 0
    limit: int | None = None
    echo: bool = True
    batch_lanes: int = BATCH_LANES
    lockstep: bool = False
    counters: bool = False
    debugger: Spectator | None = None
    progress: bool | None = None
    timeout: float | None = None
    all_arrive: bool = False
    collect: bool = False
    thread_clock: bool = False

    def __post_init__(self) -> None:
        checkers(self.checks)
        if self.timeout is not None and not self.timeout > 0:
            raise ArgumentError(f"a time limit of {self.timeout} seconds", hint="timeout=None for no limit")

    @property
    def checkers(self) -> tuple[Callable[[Batch], Observer], ...]:
        """The classes of the checkers, each once."""
        return checkers(self.checks)

    @property
    def checked(self) -> bool:
        """Whether the code of kernels tells what it does."""
        return bool(self.checkers) or self.counters

    @property
    def collects(self) -> bool:
        """Whether findings are gathered rather than raised."""
        return self.collect or self.checks == "collect"


def checkers(checks: Checks) -> tuple[type[Observer], ...]:
    """The classes that `checks` stands for, each once.

    Raises:
        ArgumentError: it is none of the values that `Options.checks` takes.
    """
    if isinstance(checks, bool):
        return STANDARD if checks else ()
    if isinstance(checks, str):
        if checks != "collect":
            raise ArgumentError(f"checks={checks!r} is unknown", hint=HINT)
        return STANDARD
    if not isinstance(checks, list | tuple):
        raise ArgumentError(f"checks={checks!r} is unknown", hint=HINT)
    found: list[type[Observer]] = []
    for item in checks:
        if isinstance(item, bool):
            found += STANDARD if item else ()
        elif isinstance(item, type) and issubclass(item, Observer):
            found.append(item)
        else:
            raise ArgumentError(f"checks has {item!r}, which is no checker",
                                hint="a checker is a class derived from tilewright.emulate.Observer")  # fmt: skip
    return tuple(dict.fromkeys(found))
