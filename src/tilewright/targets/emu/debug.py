"""Looking into a running kernel: traces of threads, breakpoints, watched addresses, the first NaN.

A `Debugger` is given to a launch; the kernel is then compiled with a call after every instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.cohort import Cohort, Pending
from tilewright.targets.emu.lanes import Array, Lanes, unflatten
from tilewright.targets.emu.ptx import Instruction

if TYPE_CHECKING:
    from tilewright.targets.emu.code import CodeBlock
    from tilewright.targets.emu.image import Program
    from tilewright.targets.emu.machine import Machine

Place = tuple[int, int, int]


@dataclass(frozen=True)
class Step:
    """One instruction of one thread: where it is, and the registers it wrote. `why` is trace, watch or nan."""

    why: str
    block: Place
    thread: Place
    ptx_line: int
    instruction: str
    source: str
    registers: dict[str, Any]
    address: int | None = None

    def __str__(self) -> str:
        place = f"  {self.source}" if self.source else ""
        values = ", ".join(f"{name} = {show(value)}" for name, value in self.registers.items())
        where = f" at {self.address:#x}" if self.address is not None else ""
        return f"{self.ptx_line:>5}: {self.instruction}{where}{'  ; ' + values if values else ''}{place}"


def show(value: Any) -> str:
    """A register's value: integers also in hexadecimal."""
    if isinstance(value, np.bool_ | bool | np.floating):
        return str(value)
    return f"{int(value)} ({int(value):#x})" if np.ndim(value) == 0 else str(value)


@dataclass
class Stop:
    """Threads at a breakpoint, after the instruction there. `register` reads any register of any of them."""

    instruction: Instruction
    lanes: Lanes
    cohort: Cohort
    names: dict[str, str]
    values: dict[str, Any]

    @property
    def threads(self) -> list[tuple[Place, Place]]:
        """(block, thread) of each thread that stands here."""
        shape = self.lanes.shape
        return [
            (unflatten(int(b), shape.grid), unflatten(int(t), shape.block))
            for b, t in zip(self.lanes.block, self.lanes.thread, strict=True)
        ]

    def registers(self) -> list[str]:
        """The registers that can be read here."""
        known = {*self.names, *self.cohort.code.numbers}
        return sorted(name for name in known if not name.startswith("%taint"))

    def register(self, name: str) -> Array:
        """The values of a register, one for each of `threads`."""
        if name not in self.names and name not in self.cohort.code.numbers:
            raise KeyError(f"there is no register {name} here; there are {', '.join(self.registers())}")
        if name in self.names:
            value = self.values[self.names[name]]
        else:
            value = self.cohort.R[self.cohort.code.numbers[name]]
        if value.__class__ is Pending:
            value = value.get()
        if value is None:
            raise KeyError(f"{name} holds nothing here")
        return np.broadcast_to(value, (self.lanes.n,)) if np.ndim(value) == 0 else np.asarray(value)


class Spectator(Protocol):
    """What a launch tells, instruction by instruction, to the one that it is given as `debugger`.

    Its kernel is then compiled with two functions for each block of code: one that tells of each instruction that it
    has done, and one that does not.
    """

    def learn(self, program: Program) -> None:
        """A program is about to be launched."""

    def check(self) -> None:
        """All launches have ended. Raises ArgumentError if what was asked for does not fit the programs."""

    def function(self, machine: Machine, cohort: Cohort, block: CodeBlock) -> Callable[..., Any]:
        """A block of code is about to run: `block.run` or `block.stepped`."""

    def step(
        self, instruction: Instruction, cohort: Cohort, L: Lanes, names: dict[str, str], written: Sequence[str],
        address: str, values: dict[str, Any],
    ) -> None:  # fmt: skip
        """An instruction is done.

        Args:
            names: for each register that the block has used so far the local variable that holds it.
            written: the registers that the instruction wrote.
            address: the variable that holds the address of a memory access; empty for none.
            values: the local variables.
        """

    def pin(self, instruction: Instruction, L: Lanes, values: Sequence[Any]) -> None:
        """Threads have given a variable of the source these values, in the registers that a pin names."""


@dataclass
class Debugger:
    """What to look at.

    Args:
        block, thread: trace this thread: linear numbers or (x, y, z).
        break_at: PTX lines, or `file:line` of source lines; `on_break` is called with a `Stop` for each group of
            threads that comes by. The end of a path is enough: `kernels.py:12`.
        watch: addresses; each access to one is a step.
        nan: note the first NaN that each instruction makes.
    """

    block: int | Place | None = None
    thread: int | Place | None = None
    break_at: int | str | Sequence[int | str] = ()
    on_break: Callable[[Stop], None] | None = None
    watch: Sequence[int] = ()
    nan: bool = False
    steps: list[Step] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)
    _lines: set[int | str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if isinstance(self.break_at, int | str):
            self.break_at = (self.break_at,)
        if self.break_at and self.on_break is None:
            raise ArgumentError("break_at without on_break", hint="on_break= is called with a Stop at each of them")

    def learn(self, program: Program) -> None:
        """Note the lines that have instructions."""
        for function in program.module.functions.values():
            for item in function.body:
                self._lines.add(item.line)
                if item.place is not None:
                    self._lines.add(f"{item.place.file}:{item.place.line}")

    def check(self) -> None:
        """Raise ArgumentError if a line to stop at is none of those of the programs launched."""
        for at in self.breaks:
            if not any(_is_at(at, line) for line in self._lines):
                near = _nearest(at, self._lines)
                raise ArgumentError(
                    f"no instruction is at line {at}",
                    values={"lines nearby": ", ".join(map(str, near))} if near else None,
                    hint="lines that only Python executes have none; a loop or a call may show at its first line",
                )

    @property
    def breaks(self) -> Sequence[int | str]:
        """The lines to stop at."""
        return (self.break_at,) if isinstance(self.break_at, int | str) else self.break_at

    def function(self, machine: Machine, cohort: Cohort, block: CodeBlock) -> Callable[..., Any]:
        """Called before a block runs: the function of the block to run."""
        return block.stepped or block.run

    def step(
        self, instruction: Instruction, cohort: Cohort, L: Lanes, names: dict[str, str], written: Sequence[str],
        address: str, values: dict[str, Any],
    ) -> None:  # fmt: skip
        """Called after each instruction with the values of all local names."""
        where = values.get(address) if address else None
        if self.block is not None or self.thread is not None:
            for lane in self._traced(L):
                self._note("trace", instruction, L, lane, names, written, values, where)
        if self.watch and where is not None:
            self._watched(instruction, L, names, written, values, where)
        if self.nan and id(instruction) not in self._seen:
            self._first_nan(instruction, L, names, written, values, where)
        if self.break_at and self.on_break is not None and self._breaks(instruction):
            self.on_break(Stop(instruction, L, cohort, names, values))

    def pin(self, instruction: Instruction, L: Lanes, values: Sequence[Any]) -> None:
        """Called where threads have given a variable of the source a value; it is of no use here."""

    def _traced(self, L: Lanes) -> Array:
        here = np.ones(L.n, bool)
        if self.block is not None:
            here &= L.block == flat(self.block, L.shape.grid)
        if self.thread is not None:
            here &= L.thread == flat(self.thread, L.shape.block)
        return np.flatnonzero(here)

    def _note(
        self, why: str, instruction: Instruction, L: Lanes, lane: int, names: dict[str, str], written: Sequence[str],
        values: dict[str, Any], where: Any,
    ) -> None:  # fmt: skip
        registers = {name: _at(values[names[name]], lane) for name in written}
        block = unflatten(int(L.block[lane]), L.shape.grid)
        thread = unflatten(int(L.thread[lane]), L.shape.block)
        place = instruction.place
        source = f"{place.file}:{place.line}" if place is not None else ""
        address = None if where is None else int(_at(where, lane))
        step = Step(why, block, thread, instruction.line, instruction.text, source, registers, address)
        self.steps.append(step)

    def _watched(
        self, instruction: Instruction, L: Lanes, names: dict[str, str], written: Sequence[str],
        values: dict[str, Any], where: Any,
    ) -> None:  # fmt: skip
        addresses = np.broadcast_to(where, (L.n,)).astype(np.uint64)
        for wanted in self.watch:
            for lane in np.flatnonzero(addresses == np.uint64(wanted)):
                self._note("watch", instruction, L, int(lane), names, written, values, where)

    def _first_nan(
        self, instruction: Instruction, L: Lanes, names: dict[str, str], written: Sequence[str],
        values: dict[str, Any], where: Any,
    ) -> None:  # fmt: skip
        for name in written:
            value = np.asarray(values[names[name]])
            if value.dtype.kind != "f" or not np.isnan(value).any():
                continue
            lane = int(np.flatnonzero(np.broadcast_to(np.isnan(value), (L.n,)))[0])
            self._seen.add(id(instruction))
            self._note("nan", instruction, L, lane, names, written, values, where)
            return

    def _breaks(self, instruction: Instruction) -> bool:
        place = instruction.place
        source = "" if place is None else f"{place.file}:{place.line}"
        return any(_is_at(at, instruction.line) or _is_at(at, source) for at in self.breaks)


def _is_at(at: int | str, line: int | str) -> bool:
    """Whether `line` is the one meant: a PTX line, or a path that ends in whole names as `at` does."""
    if isinstance(at, int) or isinstance(line, int):
        return at == line
    return line == at or line.endswith(f"/{at.removeprefix('./')}")


def _nearest(at: int | str, lines: set[int | str]) -> list[int]:
    """The lines with instructions that are nearest, of the same file."""
    file, _, number = str(at).rpartition(":")
    if not number.isdigit():
        return []
    if isinstance(at, int):
        known = {line for line in lines if isinstance(line, int)}
    else:
        paths = [line.rpartition(":") for line in lines if isinstance(line, str)]
        known = {int(line) for path, _, line in paths if _is_at(file, path)}
    return sorted(sorted(known, key=lambda line: abs(line - int(number)))[:4])


def flat(place: int | Place, shape: Place) -> int:
    """The linear number of (x, y, z)."""
    return place if isinstance(place, int) else place[0] + shape[0] * (place[1] + shape[1] * place[2])


def _at(value: Any, lane: int) -> Any:
    return value[lane] if value.__class__ is np.ndarray else value
