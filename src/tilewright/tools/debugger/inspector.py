"""Answers of a stopped process: threads, registers, variables, memory, barriers, copies. All are plain data."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.emulate import parse_ptx
from tilewright.layout import size
from tilewright.targets.emu.ptx import Instruction
from tilewright.tools.debugger import barriers, conditions, tensors
from tilewright.tools.debugger.lines import Line, line_of, same_file
from tilewright.tools.debugger.numbers import shown
from tilewright.tools.debugger.plan import Focus, SourceLine, Triple, Watch
from tilewright.tools.debugger.standing import Standing, everyone, find, triple
from tilewright.tools.debugger.tensors import MOST_LISTED, Tensor
from tilewright.tools.debugger.variables import Kind

_BRACES = re.compile(r"\{([^{}]+)\}")

if TYPE_CHECKING:
    from tilewright.tools.debugger.driver import Driver


@dataclass(frozen=True)
class Thread:
    """Where one thread stands."""

    focus: Focus
    place: tuple[Triple, Triple]
    state: str
    stack: tuple[SourceLine, ...]
    ptx_line: int
    instruction: str


@dataclass(frozen=True)
class Named:
    """A variable or register as it is shown; of a tensor `parts` is the number of its elements, else 0."""

    name: str
    kind: str
    text: str
    parts: int = 0


class Inspector:
    """Answers about the run that has stopped at `here`."""

    def __init__(self, driver: Driver, here: Standing, executor: Any) -> None:
        self._driver, self._here, self._executor = driver, here, executor

    # Threads.

    def thread(self, focus: Focus) -> Thread:
        """Where a thread stands.

        Raises:
            ArgumentError: it has ended, or has not begun.
        """
        standing = self._standing(focus)
        i = standing.instruction
        state = standing.state if standing is not self._here else "stands here"
        place = triple(focus, standing.machine)
        stack = self._driver.lines.stack(i)
        return Thread(
            focus, place, state, stack, i.line if i is not None else 0, i.text if i is not None else "the end"
        )

    def threads(self) -> list[tuple[int, int, int, int, str, Thread]]:
        """Groups of threads that stand together: block, first and last warp, how many threads, what they do, the first.

        One row for each run of warps of one block.
        """
        rows = []
        for standing in everyone(self._here):
            L = standing.lanes
            first = True
            for block in np.unique(L.block).tolist():
                mine = np.flatnonzero(L.block == block)
                warps = L.thread[mine] >> 5
                thread = self.thread(Focus(block, int(L.thread[mine[0]])))
                rows.append((block, int(warps.min()), int(warps.max()), len(mine), standing.state, thread))
                first = False
            assert not first
        return sorted(rows, key=lambda row: row[:3])

    def _standing(self, focus: Focus) -> Standing:
        standing = find(self._here, focus)
        if standing is None:
            shape = self._here.machine.shape
            known = focus.block < shape.blocks and focus.thread < shape.threads
            raise ArgumentError(
                f"thread {focus.thread} of block {focus.block} "
                + ("has ended, or has not begun" if known else "does not exist"),
                values={"grid": shape.grid, "block": shape.block},
                hint="`threads` lists those that run",
            )
        return standing

    def focus_of(self, block: int | Triple, thread: int | Triple) -> Focus:
        """A thread by linear numbers or (x, y, z).

        Raises:
            ArgumentError: there is none at the moment.
        """
        shape = self._here.machine.shape
        found = Focus(_flat(block, shape.grid), _flat(thread, shape.block))
        self._standing(found)
        return found

    # Registers and variables.

    def registers(self, focus: Focus) -> list[Named]:
        """The registers of a thread that hold something."""
        standing = self._standing(focus)
        return [self._register(standing, focus, name) for name in standing.registers()]

    def _register(self, standing: Standing, focus: Focus, name: str) -> Named:
        value = standing.by_lane(name)[standing.position(focus)]
        text = shown(value) if np.ndim(value) == 0 else " ".join(f"{int(part):#x}" for part in value)
        return Named(name, str(np.asarray(value).dtype), text)

    def special(self, focus: Focus) -> list[Named]:
        """The numbers of a thread."""
        standing = self._standing(focus)
        block, thread = triple(focus, standing.machine)
        rows = {"tid": thread, "ctaid": block, "ntid": standing.machine.shape.block, "warp": focus.thread >> 5,
                "lane": focus.thread & 31, "nctaid": standing.machine.shape.grid}  # fmt: skip
        return [Named(name, "", str(value)) for name, value in rows.items()]

    def variables(self, focus: Focus) -> list[Named]:
        """The Python variables of a thread, those of the function that runs first."""
        standing = self._standing(focus)
        known = self._driver.of(standing.machine)
        lane = int(standing.lanes.ids[standing.position(focus)])
        stack = self._driver.lines.stack(standing.instruction)
        home = stack[0].function if stack else ""
        names = sorted(known.names(lane), key=lambda key: key[0] != home)
        seen: set[str] = set()
        rows = []
        for function, name in names:
            kind, words = known.value(function, name, lane)
            text, parts = self._text(standing, lane, kind, words)
            rows.append(Named(name if name not in seen else f"{function}.{name}", kind.text.split(" ")[0], text, parts))
            seen.add(name)
        return rows

    def _text(self, standing: Standing, lane: int, kind: Kind, words: list[int]) -> tuple[str, int]:
        if kind.text.startswith("constant "):
            return kind.text.removeprefix("constant "), 0
        if kind.text.startswith("tensor "):
            tensor = Tensor.parsed(kind.text, words)
            return tensor.title, int(size(tensor.layout))
        return tensors.number_text(kind.text, words), 0

    def _lookup(self, focus: Focus, name: str) -> tuple[Standing, int, Kind, list[int]]:
        """A variable by its name or as FUNCTION.NAME."""
        standing = self._standing(focus)
        known = self._driver.of(standing.machine)
        lane = int(standing.lanes.ids[standing.position(focus)])
        stack = self._driver.lines.stack(standing.instruction)
        home = stack[0].function if stack else ""
        keys = [key for key in known.names(lane) if name in (key[1], f"{key[0]}.{key[1]}")]
        if not keys:
            close = sorted({key[1] for key in known.names(lane)})
            raise ArgumentError(
                f"the thread has no variable {name}" + ("" if close else ": none has a value yet"),
                hint=f"it has: {', '.join(close)}"
                if close
                else "a variable has a value from the line after its own on",
            )
        function, variable = min(keys, key=lambda key: key[0] != home)
        return standing, lane, *known.value(function, variable, lane)

    def evaluate(self, focus: Focus, text: str) -> str:
        """An expression of registers, variables and numbers for one thread; a tensor's name draws it."""
        word = text.strip()
        if word.replace(".", "_").isidentifier() and word not in conditions.NUMBERS:
            standing, lane, kind, words = self._lookup(focus, word)
            if kind.text.startswith("tensor "):
                return self.draw(focus, word)
            return self._text(standing, lane, kind, words)[0]
        head, bracket, rest = word.partition("[")
        if bracket and rest.endswith("]") and head.isidentifier():
            return self._element(focus, head, rest[:-1])
        standing = self._standing(focus)
        position = standing.position(focus)

        def read(name: str) -> Any:
            if name in conditions.NUMBERS:
                return conditions.NUMBERS[name](standing.lanes)
            return conditions.widened(self._driver.read(standing, name))

        value = np.asarray(conditions.evaluate(word, read))
        return shown(value if value.ndim == 0 else value[position])

    def filled(self, focus: Focus, text: str) -> str:
        """A text with the values of the expressions that stand in braces."""

        def value(found: re.Match[str]) -> str:
            try:
                return self.evaluate(focus, found[1])
            except ArgumentError as error:
                return f"<{error.message}>"

        return _BRACES.sub(value, text)

    # Tensors and memory.

    def _tensor(self, focus: Focus, name: str) -> tuple[Standing, int, Tensor]:
        standing, lane, kind, words = self._lookup(focus, name)
        if not kind.text.startswith("tensor "):
            raise ArgumentError(f"{name} is no tensor", values={"it is": kind.text})
        return standing, lane, Tensor.parsed(kind.text, words)

    def _element(self, focus: Focus, name: str, index: str) -> str:
        standing, lane, tensor = self._tensor(focus, name)
        return tensor.element(standing.machine, lane, tensors.coordinate(index))

    def draw(self, focus: Focus, name: str) -> str:
        """The elements of a tensor, arranged as its layout has them."""
        standing, lane, tensor = self._tensor(focus, name)
        return tensor.drawn(standing.machine, lane)

    def elements(self, focus: Focus, name: str, start: int = 0, count: int = MOST_LISTED) -> list[Named]:
        """Elements of a tensor, one by one, in the order of its layout."""
        standing, lane, tensor = self._tensor(focus, name)
        listed = tensor.listed(standing.machine, lane, start, count)
        return [Named(index, tensor.dtype, text) for index, text in listed]

    def tensor(self, focus: Focus, name: str) -> Named:
        """What a tensor is, with the number of its elements.

        Raises:
            ArgumentError: it is no tensor of the thread.
        """
        _, _, tensor = self._tensor(focus, name)
        return Named(name, "tensor", tensor.title, int(size(tensor.layout)))

    def layout(self, focus: Focus, name: str) -> str:
        """Where the elements of a tensor lie: their offsets, drawn as the elements are."""
        _, _, tensor = self._tensor(focus, name)
        return tensor.offsets_drawn()

    def watch(self, focus: Focus, text: str) -> Watch:
        """What to watch for a tensor or one element of it."""
        head, bracket, rest = text.strip().partition("[")
        standing, lane, tensor = self._tensor(focus, head)
        index = tensors.coordinate(rest.removesuffix("]")) if bracket else None
        space, places = tensor.bytes_at(standing.machine, lane, index)
        block = focus.block
        if space == "shared":  # of another block of the cluster, perhaps
            slot, _ = tensors.shared_place(standing.machine, lane, places[0][0])
            block = int(standing.machine.blocks[slot])
            places = tuple((tensors.shared_place(standing.machine, lane, at)[1], nbytes) for at, nbytes in places)
        return Watch(0, text.strip(), space, places, block, tensor.dtype)

    # Barriers and copies.

    def barriers(self, focus: Focus) -> list[str]:
        """The state of the barriers and mbarriers of a thread's block."""
        standing = self._standing(focus)
        return barriers.states(standing.machine, focus.block)

    def copies(self, focus: Focus) -> list[str]:
        """The asynchronous copies of a thread's block that no one has waited for."""
        standing = self._standing(focus)
        return barriers.copies(standing.machine, focus.block)

    # Code.

    def instructions(self) -> list[Instruction]:
        """All instructions of the kernel that runs."""
        launch = self._here.machine.launch
        return [i for function in launch.program.functions() for i in function.body if i.op != "pin"]

    def ptx(self) -> str:
        """The PTX text of the kernel that runs."""
        return str(self._here.machine.launch.program.program.text)

    def breakable(self, file: str, line: int) -> tuple[str, int] | None:
        """The file and the first line from `line` on that has instructions; None where there is none.

        An empty file means lines of the PTX.
        """
        if not file:
            lines = sorted(i.line for i in self.instructions() if i.line >= line)
            return ("", lines[0]) if lines else None
        later = sorted((number, name) for name, number in self._lines if same_file(file, name) and number >= line)
        return (later[0][1], later[0][0]) if later else None

    def lines_with_code(self, file: str, first: int, last: int) -> list[int]:
        """The lines of a source file, or of the PTX where it is empty, that have instructions."""
        if not file:
            return sorted({i.line for i in self.instructions() if first <= i.line <= last})
        return sorted({number for name, number in self._lines if same_file(file, name) and first <= number <= last})

    def files(self) -> list[str]:
        """The source files that the instructions of all kernels of the function come from."""
        return sorted({name for name, _ in self._lines})

    @functools.cached_property
    def _lines(self) -> set[Line]:
        """The source lines with instructions: of the kernel that runs, and of the function's other ones."""
        running = self._here.machine.launch.kernel
        others = [kernel.stages["ptx"] for name, kernel in self._executor.kernels.items() if name != running]
        functions = [function for text in others for function in parse_ptx(text).functions.values()]
        found = [*self.instructions(), *(i for function in functions for i in function.body if i.op != "pin")]
        return {where for i in found if (where := line_of(i)) is not None}


def _flat(place: int | Triple, shape: Triple) -> int:
    if isinstance(place, int):
        return place
    return place[0] + shape[0] * (place[1] + shape[1] * place[2])
