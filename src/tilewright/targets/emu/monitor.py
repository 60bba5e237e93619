"""A look at a running launch now and then: it shows progress, keeps the time limit, and remembers what ran of late."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.loops import described, loop_of, place_of
from tilewright.targets.emu.progress import Bar
from tilewright.targets.emu.ptx import Instruction

OFTEN, SELDOM = 0.02, 0.1
"""Seconds between two looks, about."""
FIRST_STRIDE = 64
"""Blocks of code before the first look."""
PERIOD = 1.0
"""Seconds that a count of what ran is kept for, at least."""


class Launch(Protocol):
    """What a monitor asks of a launch: its name, how often each block of code ran, ended blocks and instructions."""

    kernel: str
    hits: Any

    def state(self) -> tuple[int, int]: ...


class Machine(Protocol):
    """What it asks of a batch: the threads that run, and those that may."""

    current: Cohort | None
    ready: dict[tuple[int, ...], list[Cohort]]


class Monitor:
    """Looks at a launch whenever it has run `due` blocks of code, a number that it keeps in the launch's counts.

    What ran of late is what ran since the last but one count. Counts are taken when a second has passed or, in the
    first seconds, when twice as much has run as at the one before.
    """

    def __init__(
        self, launch: Launch, bar: Bar, timeout: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._launch, self._bar, self._timeout, self._clock = launch, bar, timeout, clock
        self._start = self._last = self._counted = clock()
        self._stride = FIRST_STRIDE
        self._before: dict[int, int] = {}
        self._recent: dict[int, int] = {}
        self._recent_steps = 0
        launch.hits.due = FIRST_STRIDE

    def look(self, machine: Machine, running: int) -> int:
        """Look; the launch has run `running` blocks of code beside those counted. How many to run until the next look.

        Raises:
            EmulationError: the launch has run longer than its time limit.
        """
        now, hits = self._clock(), self._launch.hits
        steps = hits.steps + running
        if now - self._last < OFTEN:
            self._stride *= 2
        elif now - self._last > SELDOM:
            self._stride = max(1, self._stride // 2)
        self._last = now
        hits.due = steps + self._stride
        if now - self._counted >= PERIOD or steps >= 2 * self._recent_steps:
            self._counted, self._recent_steps = now, steps
            self._before, self._recent = self._recent, dict(hits)
        if self._timeout is not None and now - self._start > self._timeout:
            raise self.too_long({"limit": f"{self._timeout:g} seconds"}, machine)
        if self._bar.due():
            loop = self.loop(machine) if self._bar.long() else None
            self._bar.show(*self._launch.state(), None if loop is None else described(loop))
        return self._stride

    def ran(self) -> dict[int, int]:
        """How often each block of code ran of late, by its serial number."""
        before = self._before
        return {
            serial: times - before.get(serial, 0)
            for serial, times in self._launch.hits.items()
            if times > before.get(serial, 0)
        }

    def loop(self, machine: Machine | None) -> Instruction | None:
        """Where the loop goes round that threads are in: those that run, else any of the batch."""
        if machine is None:
            return None
        ran = self.ran()
        cohorts = [c for c in (machine.current, *(c for group in machine.ready.values() for c in group)) if c]
        return next((loop for cohort in cohorts if (loop := loop_of(cohort, ran)) is not None), None)

    def too_long(self, limit: dict[str, Any], machine: Machine | None) -> EmulationError:
        """The error of a launch that goes on beyond a limit."""
        loop = self.loop(machine)
        place = None if loop is None else place_of(loop)
        values: dict[str, Any] = {"kernel": self._launch.kernel, **limit}
        if loop is not None and place is None:
            values["loop"] = described(loop)
        message = "The launch ran longer than its limit" + ("" if loop is None else ", in this loop")
        hint = "does the loop come to an end? If it only takes long, raise the limit"
        return EmulationError(message, values=values, hint=hint, kind="limit", location=place)

    def interrupted(self, error: BaseException, machine: Machine | None) -> None:
        """Say in an exception from outside, such as KeyboardInterrupt, where it found the launch."""
        loop = self.loop(machine)
        where = "" if loop is None else f", in the loop at {described(loop)}"
        text = f"kernel {self._launch.kernel} was running on the emulator{where}"
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (text,)
        else:
            error.add_note(text)
