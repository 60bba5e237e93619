"""Runs launches of the emulator up to where they shall stop.

The emulator asks before each block of code which form of it to run: the plain one, or the one that tells of each
instruction. So all but the blocks in which a run may stop go at full speed. A run is the same each time with one seed:
a moment of it is the number of the block that runs and that of the instruction in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.code import CodeBlock
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.debug import flat
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.launch import Launch
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.ptx import Instruction
from tilewright.tools.debugger import conditions
from tilewright.tools.debugger.hit_counts import counts
from tilewright.tools.debugger.lines import Line, Lines, first_of_lines, line_of, same_file
from tilewright.tools.debugger.numbers import changed
from tilewright.tools.debugger.onlooker import Onlooker
from tilewright.tools.debugger.plan import Breakpoint, Focus, Moment, Plan, Stop, Watch
from tilewright.tools.debugger.standing import Standing, find, triple
from tilewright.tools.debugger.variables import Variables

Serve = Callable[[Stop, Standing], Plan]
Log = Callable[[Breakpoint, Focus, Standing], None]


class Driver:
    """The debugger's end in the emulator, given to launches as their `debugger`.

    Args:
        serve: called where a run stops; it returns how to go on.
        checkpoint: called before each block of code.
        log: called where a thread comes to a breakpoint that tells something.
    """

    def __init__(self, serve: Serve, checkpoint: Callable[[Moment], None], log: Log) -> None:
        self._serve, self._checkpoint, self._log = serve, checkpoint, log
        self.lines = Lines()
        self.plan = Plan(until=Moment(1, 1, 0))
        self.launch: Launch | None = None
        self.launches = self.visit = self.index = 0
        self.pausing = False
        self.variables: WeakKeyDictionary[Machine, Variables] = WeakKeyDictionary()
        self.printed = ""
        """What the launches before this one have printed."""
        self.candidate: Stop | None = None
        self._origin: Line | None = None
        self._held: Line | None = None
        self._touches: list[tuple[Watch, Focus]] = []
        self._bytes: dict[int, bytes] = {}
        self._lost = False
        self._hits: dict[int, int] = {}
        self._starts: dict[int, tuple[Instruction | None, ...]] = {}
        self.onlooker: type[Onlooker] = type("Onlooker", (Onlooker,), {"listener": self})

    # What the emulator calls.

    def learn(self, program: Any) -> None:
        """A program is about to run."""

    def check(self) -> None:
        """Breakpoints at lines without code are the front end's to refuse."""

    def function(self, machine: Machine, cohort: Cohort, block: CodeBlock) -> Callable[..., Any]:
        """A block of code is about to run: the form of it to run."""
        if machine.launch is not self.launch:
            self._begin(machine.launch)
        self.visit += 1
        self.index = 0
        self._checkpoint(self.moment)
        self._arrive(Standing(machine, cohort))
        if self._looks_into(cohort, block):
            return block.stepped or block.run
        if self._held is not None and any(line not in (None, self._held) for line in map(line_of, block.body)):
            self._held = None
        return block.run

    def step(
        self, instruction: Instruction, cohort: Cohort, L: Lanes, names: dict[str, str], written: Sequence[str],
        address: str, values: dict[str, Any],
    ) -> None:  # fmt: skip
        """An instruction of a block that is looked into is done."""
        self.index += 1
        machine = self.launch.running if self.launch is not None else None
        if machine is not None:
            self._arrive(Standing(machine, cohort, self.index, names=names, values=values))

    def pin(self, instruction: Instruction, L: Lanes, values: Sequence[Any]) -> None:
        """Threads have given a Python variable its value."""
        machine = self.launch.running if self.launch is not None else None
        if machine is not None:
            self.of(machine).bind(instruction, L, values)

    # What the onlooker calls.

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The memory that is watched."""
        return self.plan.watches

    def touched(self, watch: Watch, L: Lanes, at: Array, site: int) -> None:
        """Threads access watched memory."""
        self._touches.append((watch, Focus(int(L.block[at[0]]), int(L.thread[at[0]]))))

    def threads_ended(self, L: Lanes) -> None:
        """Threads have ended: a step of one of them has come to its end, too."""
        focus = self.plan.focus
        if focus is not None and self.plan.kind != "run":
            self._lost |= bool(((L.thread == focus.thread) & (L.block == focus.block)).any())

    # Moments.

    @property
    def moment(self) -> Moment:
        """Where the run is."""
        return Moment(self.launches, self.visit, self.index)

    def of(self, machine: Machine) -> Variables:
        """The Python variables of a batch's threads."""
        found = self.variables.get(machine)
        if found is None:
            found = self.variables[machine] = Variables(len(machine.alive))
        return found

    def moment_of(self, ptx_line: int) -> Moment:
        """Of the block that runs, or ran last, the moment before the instruction of a PTX line."""
        machine = None if self.launch is None else self.launch.running
        cohort = None if machine is None else machine.current
        body = cohort.code.blocks[cohort.pc].body if cohort is not None else []
        index = next((n for n, i in enumerate(body) if i.line == ptx_line), self.index)
        return Moment(self.launches, self.visit, index)

    def resume(self, plan: Plan) -> None:
        """Go on as `plan` says from the moment of a snapshot, at which nothing has been looked at yet."""
        self.plan, self.candidate = plan, None
        self._held = self._origin = None
        self._lost = self.pausing = False
        self._touches.clear()
        self._bytes.clear()

    def named(self, block: Any, thread: Any) -> Focus | None:
        """The thread that an error names by (x, y, z)."""
        if self.launch is None or not (isinstance(block, tuple) and isinstance(thread, tuple)):
            return None
        return Focus(flat(block, self.launch.shape.grid), flat(thread, self.launch.shape.block))

    def text(self) -> str:
        """All that kernels have printed."""
        return self.printed + ("" if self.launch is None else "".join(self.launch.text))

    def _begin(self, launch: Launch) -> None:
        if self.launch is not None:
            self.printed += "".join(self.launch.text)
        self.launch = launch
        self.launches += 1
        self._starts.clear()

    # Stopping.

    def _arrive(self, here: Standing) -> None:
        """The threads at `here` come to their next instruction: stop, if that is asked for."""
        reason, numbers, focus, message = self._reason(here)
        if not reason:
            return
        stop = self.stop(here, reason, numbers, focus, message)
        if self.plan.record and stop.moment != self.plan.until:
            self.candidate = stop
            self._settle(here)
            return
        stop = replace(stop, candidate=self.candidate)
        self.candidate, self.pausing = None, False
        self.plan = self._serve(stop, here)
        self._settle(here)

    def _settle(self, here: Standing) -> None:
        """Note from where the run goes on."""
        focus = self.plan.focus
        standing = here if focus is None else find(here, focus)
        self._origin = None if standing is None else line_of(standing.instruction)
        self._held = line_of(here.instruction)
        self._lost = False
        self._touches.clear()
        for watch in self.watches:
            self._bytes[watch.number] = self._read(here.machine, watch)

    def stop(
        self, here: Standing, reason: str, numbers: tuple[int, ...], focus: Focus | None, message: str = ""
    ) -> Stop:
        """What there is to say of a stop."""
        focus = focus or self.plan.focus
        if focus is None or here.position(focus) is None:
            focus = here.first()
        i = here.instruction
        return Stop(
            reason, self.moment, here.machine.launch.kernel, focus, triple(focus, here.machine), self.lines.stack(i),
            i.line if i is not None else 0, i.text if i is not None else "the end", here.lanes.n, numbers, message,
            printed=self.text(),
        )  # fmt: skip

    def _reason(self, here: Standing) -> tuple[str, tuple[int, ...], Focus | None, str]:
        """Why to stop here, with the breakpoints or watches and the thread; an empty word for no reason."""
        instruction = here.instruction
        code = instruction is not None and instruction.op != "pin"
        said: list[str] = []
        numbers, first = self._broken(here, instruction, said) if code and instruction is not None else ((), None)
        if self.plan.until == self.moment:
            return "moment", (), None, ""
        watched = self._watched(here)
        if watched is not None:
            return watched
        if instruction is None or not code:
            return "", (), None, ""
        if numbers:
            return "breakpoint", numbers, first, "\n".join(said)
        if self._stepped(here, instruction):
            return "step", (), self.plan.focus, ""
        if self._lost:
            return "step", (), None, "the thread has ended"
        if self.pausing:
            return "pause", (), None, ""
        return "", (), None, ""

    def _watched(self, here: Standing) -> tuple[str, tuple[int, ...], Focus | None, str] | None:
        """A watched access that the last instruction made."""
        found = {watch.number: focus for watch, focus in self._touches}
        self._touches.clear()
        told = []
        for watch in self.watches:
            before, now = self._bytes.get(watch.number), self._read(here.machine, watch)
            self._bytes[watch.number] = now
            if before is not None and now != before:
                found.setdefault(watch.number, here.first())
            if watch.number in found:
                told.append(f"{watch.text}: {changed(watch.dtype, before or now, now)}")
        if not found:
            return None
        return "watch", tuple(sorted(found)), next(iter(found.values())), "\n".join(told)

    @staticmethod
    def _read(machine: Machine, watch: Watch) -> bytes:
        """The watched bytes as they are."""
        if watch.space == "global":
            parts = [machine.g.at(start, nbytes) for start, nbytes in watch.places]
            return b"".join(b"" if part is None else part.tobytes() for part in parts)
        for other in machine.launch.under_way() | {machine}:
            slots = np.flatnonzero(other.blocks == watch.block)
            if len(slots):
                first = int(slots[0]) * other.sh.stride
                return b"".join(other.sh.bytes[first + s : first + s + n].tobytes() for s, n in watch.places)
        return b""

    def _broken(
        self, here: Standing, instruction: Instruction, said: list[str]
    ) -> tuple[tuple[int, ...], Focus | None]:
        """The breakpoints that hold for threads at `here`, and the first such thread.

        One whose condition cannot be evaluated holds, and why not is `said`.
        """
        numbers, first = [], None
        for point in self.plan.breakpoints:
            if not self._is_at(point, here, instruction):
                continue
            try:
                at = self.threads_at(point, here)
            except ArgumentError as error:
                said.append(f"breakpoint {point.number}: {error.message}")
                at = np.arange(here.lanes.n)
            if len(at) and self._counts(point):
                position = None if self.plan.focus is None else here.position(self.plan.focus)
                chosen = position if position is not None and position in at else int(at[0])
                thread = Focus(int(here.lanes.block[chosen]), int(here.lanes.thread[chosen]))
                if point.log:
                    self._tell(point, thread, here)
                    continue
                numbers.append(point.number)
                first = first or thread
        return tuple(numbers), first

    def _counts(self, point: Breakpoint) -> bool:
        """Whether a breakpoint counts this time."""
        if not point.hits:
            return True
        self._hits[point.number] = self._hits.get(point.number, 0) + 1
        return counts(point.hits, self._hits[point.number])

    def _tell(self, point: Breakpoint, thread: Focus, here: Standing) -> None:
        if not self.plan.record:
            self._log(point, thread, here)

    def threads_at(self, point: Breakpoint, here: Standing) -> Array:
        """The positions of the threads for which a breakpoint's condition holds."""
        if not point.condition:
            return np.arange(here.lanes.n)
        return conditions.holds(point.condition, here.lanes, lambda name: self.read(here, name))

    def read(self, here: Standing, name: str) -> Any:
        """A register, or a number of Python, of all threads at `here`."""
        if name.startswith("%"):
            return here.by_lane(name)
        stack = self.lines.stack(here.instruction)
        return self.of(here.machine).numbers(name, here.lanes, stack[0].function if stack else "")

    def _is_at(self, point: Breakpoint, here: Standing, instruction: Instruction) -> bool:
        if not point.enabled:
            return False
        if not point.file:
            return point.line == instruction.line
        line = line_of(instruction)
        if line is None or line[1] != point.line or not same_file(point.file, line[0]) or line == self._held:
            return False
        return self._starts_line(here, instruction)

    def _starts_line(self, here: Standing, instruction: Instruction) -> bool:
        """Whether an instruction is the first one of its line in its block of code."""
        block = here.block
        firsts = self._starts.get(block.serial)
        if firsts is None:
            items = [item for item in (*block.body, block.last) if item is not None]
            firsts = self._starts[block.serial] = tuple(first_of_lines(items).values())
        return any(first is instruction for first in firsts)

    def _stepped(self, here: Standing, instruction: Instruction) -> bool:
        """Whether the step that is under way ends here."""
        plan = self.plan
        if plan.kind == "run" or plan.focus is None or here.position(plan.focus) is None:
            return False
        if plan.kind == "instruction":
            return True
        line = line_of(instruction)
        if line is None or line == self._origin or not self._starts_line(here, instruction):
            return False
        if self._origin is None or plan.kind == "line":
            return True
        if plan.kind == "out":
            return self.lines.inside(self._origin, line)
        return not self.lines.inside(line, self._origin)

    def _looks_into(self, cohort: Cohort, block: CodeBlock) -> bool:
        """Whether the run may stop within a block of code."""
        plan = self.plan
        if plan.watches or self.pausing or (plan.until is not None and plan.until[:2] == self.moment[:2]):
            return True
        if plan.kind != "run" and plan.focus is not None:
            L = cohort.L
            if ((L.thread == plan.focus.thread) & (L.block == plan.focus.block)).any():
                return True
        return any(point.enabled and self._passes(point, block) for point in plan.breakpoints)

    @staticmethod
    def _passes(point: Breakpoint, block: CodeBlock) -> bool:
        """Whether a breakpoint is in a block of code."""
        items = (*block.body, block.last)
        if not point.file:
            return any(item is not None and item.line == point.line for item in items)
        lines = {line for item in items if (line := line_of(item)) is not None}
        return any(number == point.line and same_file(point.file, file) for file, number in lines)
