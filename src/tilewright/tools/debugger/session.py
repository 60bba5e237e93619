"""A debugging session: the front end's view of the processes that run the program.

To step back, the last snapshot before the moment runs on to it once more, and tells of the last point at which the
step or the breakpoint would have stopped; then a snapshot runs on to that point.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.tools.debugger.conditions import compiled
from tilewright.tools.debugger.hit_counts import counts
from tilewright.tools.debugger.lines import first_line
from tilewright.tools.debugger.link import Meeting
from tilewright.tools.debugger.plan import Breakpoint, Focus, Kind, Moment, Plan, Program, Stop, Triple, Watch

MOST_SNAPSHOTS = 16
LOST = "the debugged process has ended unexpectedly"


@dataclass
class Snapshot:
    """A process that waits at a moment."""

    link: Any
    moment: Moment
    pid: int


class Session:
    """Runs a program and goes through it, forwards and backwards.

    Args:
        program: what to debug.
        output: where what the program writes to stdout goes: a file descriptor, None for this process's own.
        folder: where the program runs, and relative paths begin.

    Attributes:
        told: called with the text of each breakpoint that tells something.
    """

    def __init__(self, program: Program, output: int | None = None, folder: str | None = None) -> None:
        self.program = program
        self.told: Callable[[str], None] = print
        self.breakpoints: dict[int, Breakpoint] = {}
        self.watches: dict[int, Watch] = {}
        self.stop = Stop("entry", Moment(0, 0, 0))
        self.focus = Focus(0, 0)
        self._numbers = 0
        self._snapshots: list[Snapshot] = []
        self._meeting = Meeting()
        self._link: Any = None
        self._pid = 0
        self._first = subprocess.Popen(
            [sys.executable, "-m", "tilewright.tools.debugger.worker", self._meeting.address], stdin=subprocess.DEVNULL,
            stdout=output, start_new_session=True, cwd=folder,
        )  # fmt: skip

    def start(self) -> Stop:
        """Compile the program and run it up to the first instruction of its first kernel.

        Raises:
            ArgumentError: it cannot be compiled, or launches no kernel.
        """
        try:
            self._adopt()
            self._link.send(self.program)
        except (EOFError, OSError) as error:
            raise ArgumentError(LOST, values={"reason": error}) from None
        stop = self._arrived("entry")
        if stop.ended:
            raise ArgumentError(stop.message if stop.reason == "failed" else "the function launches no kernel")
        return stop

    def close(self) -> None:
        """End all processes."""
        for link in (self._link, *(snapshot.link for snapshot in self._snapshots)):
            _quit(link)
        self._snapshots.clear()
        try:
            self._first.wait(5)
        except subprocess.TimeoutExpired:
            self._first.kill()
        self._meeting.close()

    # Breakpoints.

    def add_breakpoint(
        self, place: str, condition: str = "", *, hits: str = "", log: str = "", number: int | None = None
    ) -> Breakpoint:
        """Stop at `LINE` or `FUNCTION` of the file that is being run, `FILE:LINE`, or `ptx:LINE`.

        A line without code stands for the next one that has any. `hits` says at which times to stop (`hit_counts`);
        with a text to `log` nothing stops, and the text is told. `number` is given where others count.

        Raises:
            ArgumentError: there is no such line, or the condition is no expression.
        """
        if condition:
            compiled(condition)
        if hits:
            counts(hits, 1)
        file, _, line = place.strip().rpartition(":")
        if not file and not line.isdigit():
            file, line = self._function(line)
        if not line.isdigit():
            raise ArgumentError(f"{place!r} is no place", hint="a line, FUNCTION, FILE:LINE, or ptx:LINE")
        where = "" if file == "ptx" else file or (self.stop.stack[0].file if self.stop.stack else self.program.file)
        found = self.ask("breakable", where, int(line))
        if found is None:
            raise ArgumentError(
                f"{place} has no code" + (" of this kernel" if where else ""),
                values={"files": ", ".join(self.ask("files"))},
                hint="lines that only Python executes have none",
            )
        made = Breakpoint(self._number(number), found[0], found[1], condition, hits=hits, log=log)
        self.breakpoints[made.number] = made
        return made

    def _function(self, name: str) -> tuple[str, str]:
        for file in self.ask("files"):
            line = first_line(file, name)
            if line:
                return file, str(line)
        raise ArgumentError(
            f"{name!r} is no line and no function of the kernel", hint="a line, FUNCTION, FILE:LINE, or ptx:LINE"
        )

    def add_watch(self, text: str, reads: bool = False, number: int | None = None) -> Watch:
        """Stop where a tensor, or an element of it (`tile[3, 5]`), is written; with `reads` also where it is read.

        Raises:
            ArgumentError: it is no tensor of the thread in focus, or lies in registers.
        """
        found: Watch = self.ask("watch", self.focus, text)
        made = replace(found, number=self._number(number), reads=reads)
        self.watches[made.number] = made
        return made

    def _number(self, given: int | None) -> int:
        self._numbers += given is None
        return self._numbers if given is None else given

    def remove(self, number: int) -> None:
        """Forget a breakpoint or a watch.

        Raises:
            ArgumentError: there is none of that number.
        """
        if self.breakpoints.pop(number, None) is None and self.watches.pop(number, None) is None:
            raise ArgumentError(f"there is no breakpoint or watch {number}", hint="`breaks` lists them")

    def enable(self, number: int, enabled: bool) -> None:
        """Let a breakpoint count, or not."""
        if number not in self.breakpoints:
            raise ArgumentError(f"there is no breakpoint {number}", hint="`breaks` lists them")
        self.breakpoints[number] = replace(self.breakpoints[number], enabled=enabled)

    def look_at(self, block: int | Triple, thread: int | Triple) -> Focus:
        """Look at another thread from now on."""
        self.focus = self.ask("focus_of", block, thread)
        return self.focus

    # Going on.

    def go(self, kind: Kind = "run") -> Stop:
        """Go on to the next stop.

        Raises:
            ArgumentError: the program has ended.
        """
        if self.stop.ended:
            raise ArgumentError("the program has ended", hint="step back, or start again")
        if self.stop.reason == "finding":
            raise ArgumentError(
                "the program cannot go on behind what the emulator found",
                values={"found": self.stop.message.partition("\n")[0]},
                hint="step back, or debug with --no-checks",
            )
        self._link.send(("go", self._plan(kind)))
        return self._arrived()

    def goto(self, moment: Moment) -> Stop:
        """Run to a moment once more, past all breakpoints; those that count their hits go on counting."""
        counting = tuple(point for point in self.breakpoints.values() if point.hits)
        self._resume(moment, Plan(focus=self.focus, breakpoints=counting, until=moment, record=bool(counting)))
        return self._arrived()

    def back(self, kind: Kind = "line") -> Stop:
        """Go back to the moment before this one at which a step of this kind would have stopped.

        Raises:
            ArgumentError: there is none.
        """
        now = self.stop
        for snapshot in [s for s in reversed(self._snapshots) if s.moment < now.moment or now.ended]:
            plan = replace(self._plan(kind), until=None if now.ended else now.moment, record=True)
            self._run(snapshot, plan)
            found = self._heard().candidate
            if found is not None and (now.ended or found.moment < now.moment):
                self.goto(found.moment)
                self.focus = found.focus
                self.stop = replace(found, printed=self.stop.printed)
                return self.stop
        if not now.ended and self._snapshots:
            self.goto(now.moment)
        first = self._snapshots[0].moment if self._snapshots else now.moment
        if now.moment > first:
            self.goto(first)
            self.stop = replace(self.stop, reason="beginning")
            return self.stop
        raise ArgumentError("this is the beginning: there is nothing to go back to")

    def pause(self) -> None:
        """Ask the running process to stop."""
        if self._pid:
            os.kill(self._pid, signal.SIGUSR1)

    # Asking.

    def ask(self, name: str, *arguments: Any) -> Any:
        """An answer of the stopped process (`inspector.Inspector`).

        Raises:
            ArgumentError: there is none, and why.
        """
        if self.stop.ended:
            raise ArgumentError("the program has ended", hint="step back to look at its threads")
        try:
            self._link.send(("ask", name, arguments))
            word, answer = self._link.recv()
        except (EOFError, OSError) as error:
            raise ArgumentError(LOST) from error
        if word == "error":
            raise ArgumentError(answer)
        return answer

    # Processes.

    def _plan(self, kind: Kind) -> Plan:
        points = tuple(self.breakpoints.values())
        return Plan(kind, self.focus, points, tuple(self.watches.values()))

    def _adopt(self) -> None:
        """The next process that connects is the one that runs."""
        while True:
            link = self._meeting.accept(self._alive)
            word, pid, *moment = link.recv()
            if word == "worker":
                self._link, self._pid = link, pid
                return
            self._keep(Snapshot(link, moment[0], pid))

    def _alive(self) -> bool:
        return bool(self._snapshots) or self._first.poll() is None

    def _arrived(self, reason: str = "") -> Stop:
        """The next stop; one by a finding goes back to the instruction at fault."""
        stop = self._heard()
        if stop.reason == "finding" and self._snapshots:
            self.focus = stop.focus
            stop = replace(self.goto(stop.moment), reason="finding", message=stop.message)
        if not stop.ended:
            self.focus = stop.focus
            stop = replace(stop, reason=reason or stop.reason)
        self.stop = stop
        return stop

    def _heard(self) -> Stop:
        """What the running process says next; the snapshots that it has made are taken in."""
        try:
            taken = 0
            while True:
                if not self._ready():
                    self._take()
                    taken += 1
                    continue
                word, stop, *rest = self._link.recv()
                if word == "stop":
                    break
                self.told(stop)
            (made,) = rest
            for _ in range(made - taken):
                self._take()
        except (EOFError, OSError) as error:
            raise ArgumentError(LOST) from error
        found: Stop = stop
        return found

    def _ready(self) -> bool:
        """Wait for the running process; False where a snapshot wants to be taken in."""
        return self._link in wait([self._link, self._meeting.fileno()])

    def _take(self) -> None:
        """Take in the next snapshot."""
        link = self._meeting.accept(self._alive)
        _, pid, moment = link.recv()
        self._keep(Snapshot(link, moment, pid))

    def _keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, in order. Of too many one goes: they are the denser, the later they are."""
        kept = self._snapshots
        kept.append(snapshot)
        kept.sort(key=lambda item: item.moment)
        if len(kept) > MOST_SNAPSHOTS:
            end = kept[-1].moment.visit
            least = min(
                range(1, len(kept) - 1),
                key=lambda n: (kept[n + 1].moment.visit - kept[n - 1].moment.visit) / (end - kept[n].moment.visit + 1),
            )
            _quit(kept.pop(least).link)

    def _resume(self, moment: Moment, plan: Plan) -> None:
        """Let the last snapshot before a moment run on."""
        self._run([s for s in self._snapshots if s.moment <= moment][-1], plan)

    def _run(self, snapshot: Snapshot, plan: Plan) -> None:
        """Let a snapshot run on in place of the process that ran."""
        _quit(self._link)
        snapshot.link.send(("resume", plan))
        self._adopt()


def _quit(link: Any) -> None:
    """Tell a process to end."""
    try:
        if link is not None:
            link.send(("quit",))
            link.close()
    except OSError:
        pass  # it has ended by itself
