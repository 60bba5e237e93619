"""A progress bar for launches that take long: one line on stderr, in a terminal only."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tilewright.base import settings

DELAY = 1.0
"""Seconds before a bar appears."""
EVERY = 0.25
"""Seconds between two looks of it."""
WIDTH, NAME = 20, 20
"""Columns of the bar, and of a kernel's name at most."""
ERASE = "\r\x1b[K"
UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


class Bar:
    """How far a launch is. Ask `due` often, `show` the state when it says so; used as a context, it leaves no trace.

    `wanted`: True or False, or None for the setting, without which a bar appears outside pytest and CI. `stream`
    (default stderr) must be a terminal, or nothing appears; `clock` gives seconds.
    """

    def __init__(
        self, kernel: str, blocks: int, wanted: bool | None = None, stream: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._kernel, self._blocks, self._wanted = kernel, blocks, wanted
        self._stream, self._clock = stream, clock
        self._start = clock()
        self._next = self._start + DELAY
        self._shown = False

    def due(self) -> bool:
        """Whether it is time to show the state. The first time, a second after the start, it is decided if ever."""
        now = self._clock()
        if now < self._next:
            return False
        if not self._shown:
            self._stream = sys.stderr if self._stream is None else self._stream
            if not appears(self._wanted, self._stream):
                self._next = float("inf")
                return False
        self._next = now + EVERY
        return True

    def show(self, done: int, instructions: int) -> None:
        """Draw the bar: blocks that have ended, thread instructions so far."""
        columns = shutil.get_terminal_size().columns
        text = line(self._kernel, done, self._blocks, instructions, self._clock() - self._start)
        self._write(ERASE + text[: columns - 1])
        self._shown = True

    def clear(self) -> None:
        """Take the bar off the screen; the next `show` draws it again."""
        if self._shown:
            self._write(ERASE)
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a terminal that is gone is no reason to stop
            self._next = float("inf")

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def appears(wanted: bool | None, stream: Any) -> bool:
    """Whether a bar appears on a stream."""
    if stream is None or not stream.isatty():
        return False
    choice = settings.get("progress") if wanted is None else wanted
    if choice is None:
        return "pytest" not in sys.modules and not settings.get("ci")
    return bool(choice)


def line(kernel: str, done: int, blocks: int, instructions: int, seconds: float) -> str:
    """`softmax  37%  0:14 [#########---------------] 1,024 of 2,768 blocks, 1.2 G instructions`."""
    filled = WIDTH * done // blocks
    minutes, rest = divmod(int(seconds), 60)
    name = kernel if len(kernel) <= NAME else kernel[: NAME - 3] + "..."
    return (
        f"{name} {100 * done // blocks:3}%  {minutes}:{rest:02} [{'#' * filled}{'-' * (WIDTH - filled)}] "
        f"{done:,} of {blocks:,} blocks, {short(instructions)} instructions"
    )


def short(number: int) -> str:
    """A number with three digits or so and a unit."""
    for unit, name in UNITS:
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number // unit:,} {name}"
    return str(number)
