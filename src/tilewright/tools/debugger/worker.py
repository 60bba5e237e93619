"""The process that is debugged: it compiles the function, runs it on the emulator, and answers where it stops.

Snapshots are forks of it, which wait: to go back, one of them forks again and runs on from there. All of them talk to
the front end (`session`) alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import tilewright.cute as cute
import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base import settings
from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.targets.emu.checks import STANDARD, Observer
from tilewright.targets.emu.recording import reports_of
from tilewright.tools.arguments import parse_argument, values
from tilewright.tools.debugger.driver import Driver
from tilewright.tools.debugger.inspector import Inspector
from tilewright.tools.debugger.lines import Lines
from tilewright.tools.debugger.link import connect
from tilewright.tools.debugger.plan import Breakpoint, Focus, Moment, Plan, Program, Stop
from tilewright.tools.debugger.results import described
from tilewright.tools.debugger.standing import Standing
from tilewright.tools.function_lookup import line_at_fault, load_function

SNAPSHOT_EVERY = 0.1
"""Seconds of running between two snapshots."""


class Worker:
    """One debugged process, and its snapshots."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._link = connect(address)
        self._link.send(("worker", os.getpid()))
        self._made = 0
        self._last = 0.0
        self._last_moment: Moment | None = None
        self.driver = Driver(self._serve, self._checkpoint, self._log)
        self.executor: Any = None

    def run(self) -> None:
        """Compile and run the program that the front end names; the front end hears how it ends."""
        program: Program = self._link.recv()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # snapshots that end leave nothing behind
        signal.signal(signal.SIGUSR1, self._pause)
        try:
            function = load_function(program.place)
            given = values([parse_argument(word) for word in program.arguments])
            with settings.scope(seed=program.seed, pin_variables=program.pinned):
                self._compile(function, given, program)
                checkers: list[type[Observer]] = [*(STANDARD if program.checks else ()), self.driver.onlooker]
                with reports_of(checks=checkers, debugger=self.driver, progress=False, echo=False) as reports:
                    self.executor(*given)
        except TilewrightError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001  whatever the user's function raises
            place = line_at_fault(error, Path(program.file).resolve())
            self._failed(ArgumentError(f"{program.place} raised {type(error).__name__}: {error}", location=place))
        else:
            self._over("ended", described(program.arguments, given, reports))

    def _compile(self, function: Any, given: Sequence[Any], program: Program) -> None:
        options = [program.options]
        self.executor = cute.compile(
            function, *given, options=options, arch=program.arch, target="emu", no_cache=True
        )  # fmt: skip
        self.driver.lines = Lines(self.executor.job.inlined)

    def _failed(self, error: TilewrightError) -> None:
        """The run has ended by an error: the front end goes back to the instruction that it names."""
        if self.driver.launch is None:
            self._over("failed", str(error))
        number = str(error.values.get("PTX line", "")).partition(":")[0]
        moment = self.driver.moment_of(int(number)) if number.isdigit() else self.driver.moment
        focus = self.driver.named(error.values.get("block"), error.values.get("thread"))
        self._over("finding", str(error), moment, focus)

    def _over(self, reason: str, message: str, moment: Moment | None = None, focus: Focus | None = None) -> NoReturn:
        stop = Stop(reason, moment or self.driver.moment, focus=focus or Focus(0, 0), message=message,
                    candidate=self.driver.candidate, printed=self.driver.text())  # fmt: skip
        self._send(stop)
        while self._receive()[0] != "quit":
            self._link.send(("error", "the program has ended"))
        leave()

    # Called by the driver.

    def _serve(self, stop: Stop, here: Standing) -> Plan:
        """Tell the front end of a stop, and answer it until it says how to go on."""
        self._send(stop)
        inspector = Inspector(self.driver, here, self.executor)
        while True:
            message = self._receive()
            if message[0] == "go":
                self._last = time.perf_counter()
                plan: Plan = message[1]
                return plan
            if message[0] == "quit":
                leave()
            try:
                answer = getattr(inspector, message[1])(*message[2])
                self._link.send(("answer", answer))
            except TilewrightError as error:
                self._link.send(("error", str(replaced(error))))
            except Exception:  # noqa: BLE001  a fault of the debugger must not end the session
                self._link.send(("error", traceback.format_exc()))

    def _log(self, point: Breakpoint, thread: Focus, here: Standing) -> None:
        """Tell the front end what a breakpoint has to tell."""
        inspector = Inspector(self.driver, here, self.executor)
        try:
            self._link.send(("log", inspector.filled(thread, point.log)))
        except OSError:
            leave()

    def _checkpoint(self, moment: Moment) -> None:
        """Leave a snapshot behind now and then, and at the first moment of all; see whether the front end has gone."""
        now = time.perf_counter()
        if moment.visit > 1 and now - self._last < SNAPSHOT_EVERY:
            return
        self._last = now
        if self._link.poll():
            leave()
        if self.driver.plan.record or moment == self._last_moment:
            return
        self._last_moment = moment
        if forked():
            self._made += 1
            return
        self._wait(moment)

    def _wait(self, moment: Moment) -> None:
        """A snapshot waits until it is to run; then a fork of it does."""
        self._join(("snapshot", os.getpid(), moment))
        while True:
            message = self._receive()
            if message[0] == "quit":
                leave()
            if not forked():
                break
        self._join(("worker", os.getpid()))
        self._made, self._last = 0, time.perf_counter()
        self.driver.resume(message[1])

    def _join(self, hello: tuple[Any, ...]) -> None:
        """Meet the front end as a process of its own."""
        self._link.close()
        try:
            self._link = connect(self._address)
            self._link.send(hello)
        except OSError:  # the front end has gone
            leave()

    def _send(self, stop: Stop) -> None:
        sys.stdout.flush()
        try:
            self._link.send(("stop", stop, self._made))
        except OSError:
            leave()
        self._made = 0

    def _receive(self) -> Any:
        try:
            return self._link.recv()
        except (EOFError, OSError):
            leave()

    def _pause(self, number: int, frame: FrameType | None) -> None:
        self.driver.pausing = True


def forked() -> int:
    """Fork; 0 in the new process. NumPy's threads, which do nothing at the moment, are no obstacle."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def leave() -> NoReturn:
    """End this process, and nothing else: what a normal end would clean up belongs to the first one."""
    sys.stdout.flush()
    os._exit(0)


def replaced(error: TilewrightError) -> TilewrightError:
    """The error without a line of the debugger."""
    error.location = None
    return error


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the front end passes an interrupt on
    Worker(sys.argv[1]).run()
