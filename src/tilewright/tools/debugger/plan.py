"""What the front end asks of a run, and what it hears: plain data that travels between processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Triple = tuple[int, int, int]


class Moment(NamedTuple):
    """A point of the run, the same in every run with one seed.

    `launch` counts launches, `visit` the blocks of code that have begun to run since the first launch, both from 1;
    `done` counts the instructions of the last one that are done.
    """

    launch: int
    visit: int
    done: int


class Focus(NamedTuple):
    """The thread that is looked at: linear numbers of its block in the grid and of itself in the block."""

    block: int
    thread: int


FIRST = Focus(0, 0)


@dataclass(frozen=True)
class Breakpoint:
    """Where to stop: a line of a source file (the end of its path is enough), or of the PTX where `file` is empty.

    `condition` is an expression over threads (`conditions`); empty for any thread. `hits` says at which of the times
    that threads come by it counts (`hit_counts`); empty for each. One with a `log` does not stop: it tells that text,
    with the values of the expressions in it.
    """

    number: int
    file: str
    line: int
    condition: str = ""
    enabled: bool = True
    hits: str = ""
    log: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else f"PTX line {self.line}"
        condition = f" if {self.condition}" if self.condition else ""
        more = (f" hits {self.hits}" if self.hits else "") + (f" tells {self.log!r}" if self.log else "")
        return place + condition + more + ("" if self.enabled else " (disabled)")


@dataclass(frozen=True)
class Watch:
    """Bytes to watch: `places` are (first byte, bytes) in global memory or, of one block, in shared memory.

    `dtype` is the type of the elements there."""

    number: int
    text: str
    space: Literal["global", "shared"]
    places: tuple[tuple[int, int], ...]
    block: int = 0
    dtype: str = ""
    reads: bool = False

    def __str__(self) -> str:
        return f"{self.text} ({'reads and writes' if self.reads else 'writes'})"


Kind = Literal["run", "instruction", "line", "over", "out"]


@dataclass(frozen=True)
class Plan:
    """How to go on.

    `kind`: run to a breakpoint or a watched access, or one step of the thread in focus: an instruction, a line, a line
    with what it calls (`over`), up to the caller's line (`out`). `until` is a moment to stop at in any case. With
    `record` the run stops nowhere before `until` and tells of the last moment at which it would have.
    """

    kind: Kind = "run"
    focus: Focus | None = None
    breakpoints: tuple[Breakpoint, ...] = ()
    watches: tuple[Watch, ...] = ()
    until: Moment | None = None
    record: bool = False


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file; `function` is the one around it. No file: the code of a kernel without a line."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True)
class Stop:
    """Where a run has stopped, and why.

    `reason`: entry, breakpoint, watch, step, moment, pause, finding or ended. `stack` has the source line of the
    instruction that comes next and those of the calls that led there, innermost first. `candidate` is the last stop
    that a recording run would have made. `printed` is all that kernels have printed so far.
    """

    reason: str
    moment: Moment
    kernel: str = ""
    focus: Focus = FIRST
    place: tuple[Triple, Triple] = ((0, 0, 0), (0, 0, 0))
    stack: tuple[SourceLine, ...] = ()
    ptx_line: int = 0
    instruction: str = ""
    threads: int = 0
    numbers: tuple[int, ...] = ()
    message: str = ""
    candidate: Stop | None = None
    printed: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to run."""
        return self.reason in ("ended", "failed")


@dataclass(frozen=True)
class Program:
    """What to debug: FILE:FUNCTION, its arguments in the notation of `--arg`, and how to compile and run it."""

    place: str
    arguments: tuple[str, ...] = ()
    options: str = ""
    arch: str | None = None
    seed: int = 0
    checks: bool = True
    pinned: bool = True

    @property
    def file(self) -> str:
        """The file of the function."""
        return self.place.rpartition(":")[0]
