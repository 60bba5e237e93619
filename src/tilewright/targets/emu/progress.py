"""What a launch that takes long shows: a bar in a terminal or a notebook, else a line on stderr now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType, TracebackType
from typing import Any, Literal

from tilewright.base import settings
from tilewright.base.notebook import NotebookBar, display_module

DELAY = 1.0
"""Seconds before a bar appears."""
EVERY = 0.25
"""Seconds between two looks of it."""
LONG = 5.0
"""Seconds from which on it is worth a word where the threads are; a first line comes then."""
RARELY = 600.0
"""Seconds between two lines at most; until then, each comes when twice the time has passed."""
WIDTH, NAME = 20, 20
"""Columns of the bar, and of a kernel's name at most."""
ERASE = "\r\x1b[K"
UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

Form = Literal["bar", "notebook", "lines"]


class Bar:
    """How far a launch is. Ask `due` often, `show` the state when it says so; used as a context, a bar leaves no trace.

    `wanted`: True or False, or None for the setting, without which a bar appears in a terminal or a notebook outside
    pytest and CI, and lines everywhere else. `stream` is stderr by default; `clock` gives seconds.
    """

    def __init__(
        self, kernel: str, blocks: int, wanted: bool | None = None, stream: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._kernel, self._blocks, self._wanted = kernel, blocks, wanted
        self._stream, self._clock = stream, clock
        self._start = clock()
        self._next = self._start + DELAY
        self._form: Form | None = None
        self._cell: NotebookBar | None = None
        self._shown = False

    def due(self) -> bool:
        """Whether it is time to show the state. The first time, a second after the start, it is decided how."""
        now = self._clock()
        if now < self._next:
            return False
        if self._form is None:
            self._form = form_of(self._wanted, self._out())
            if self._form is None:
                self._next = float("inf")
            elif self._form == "lines":
                self._next = self._start + LONG
            if now < self._next:
                return False
        taken = now - self._start
        self._next = now + (min(taken, RARELY) if self._form == "lines" else EVERY)
        return True

    def long(self) -> bool:
        """Whether the launch takes so long that the loop it is in should be named."""
        return self._clock() - self._start >= LONG

    def show(self, done: int, instructions: int, loop: str | None = None) -> None:
        """Say how many blocks have ended, the thread instructions so far, and the loop that threads are in."""
        seconds = self._clock() - self._start
        if self._form == "notebook":
            self._in_cell(done, instructions, seconds, loop)
            return
        if self._form == "bar":
            text = line(self._kernel, done, self._blocks, instructions, seconds, loop)
            self._write(ERASE + text[: shutil.get_terminal_size().columns - 1])
            self._shown = True
            return
        with shown_in_pytest():
            self._write(sentence(self._kernel, done, self._blocks, instructions, seconds, loop))

    def _in_cell(self, done: int, instructions: int, seconds: float, loop: str | None) -> None:
        """The bar below the cell; what the notebook does not take is no reason to stop."""
        display = display_module()
        if self._cell is None and display is not None:
            self._cell = NotebookBar(display)
        if self._cell is not None:
            text = line(self._kernel, done, self._blocks, instructions, seconds, loop, drawn=False)
            self._cell.show(done, self._blocks, text)

    def clear(self) -> None:
        """Take the bar off the screen; the next `show` draws it again."""
        if self._cell is not None:
            self._cell.clear()
        if self._shown:
            self._write(ERASE)
            self._shown = False

    def _out(self) -> Any:
        return sys.stderr if self._stream is None else self._stream

    def _write(self, text: str) -> None:
        stream = self._out()
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):  # a terminal that is gone is no reason to stop
            self._next = float("inf")

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def form_of(wanted: bool | None, stream: Any) -> Form | None:
    """What appears on a stream: a bar, lines or nothing."""
    choice = settings.get("progress") if wanted is None else wanted
    if stream is None or choice is False:
        return None
    if choice is None and ("pytest" in sys.modules or settings.get("ci")):
        return "lines"
    if stream is sys.stderr and display_module() is not None:
        return "notebook"
    return "bar" if stream.isatty() and settings.get("terminal") != "dumb" else "lines"


def shown_in_pytest() -> AbstractContextManager[Any]:
    """While it is open, pytest lets through what the test under way writes; nothing happens outside of tests."""
    frame: FrameType | None = sys._getframe() if "_pytest.runner" in sys.modules else None
    while frame is not None:
        if frame.f_globals.get("__name__") == "_pytest.runner" and "item" in frame.f_locals:
            manager = frame.f_locals["item"].config.pluginmanager.getplugin("capturemanager")
            return nullcontext() if manager is None else manager.global_and_fixture_disabled()
        frame = frame.f_back
    return nullcontext()


def line(
    kernel: str, done: int, blocks: int, instructions: int, seconds: float, loop: str | None = None, drawn: bool = True
) -> str:
    """`softmax  37%  0:14 [#########---------------] 1,024 of 2,768 blocks, 1.2 G instructions`, or the loop last.

    Without `drawn` the bar itself is left out.
    """
    filled = WIDTH * done // blocks
    bar = f"[{'#' * filled}{'-' * (WIDTH - filled)}] " if drawn else ""
    minutes, rest = divmod(int(seconds), 60)
    name = kernel if len(kernel) <= NAME else kernel[: NAME - 3] + "..."
    return (
        f"{name} {100 * done // blocks:3}%  {minutes}:{rest:02} {bar}"
        f"{done:,} of {blocks:,} blocks, {f'{short(instructions)} instructions' if loop is None else loop}"
    )


def sentence(kernel: str, done: int, blocks: int, instructions: int, seconds: float, loop: str | None) -> str:
    """The same in words, as lines of a log."""
    where = "" if loop is None else f"\n  in the loop at {loop}"
    return (
        f"\ntilewright: kernel {kernel} has been running on the emulator for {seconds:.0f} seconds: "
        f"{done:,} of {blocks:,} blocks have ended, {short(instructions)} instructions{where}\n"
    )


def short(number: int) -> str:
    """A number with three digits or so and a unit."""
    for unit, name in UNITS:
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number // unit:,} {name}"
    return str(number)
