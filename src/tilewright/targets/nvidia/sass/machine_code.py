"""The machine code of a kernel, and what it says of speed: instructions by kind, accesses, branches, basic blocks.

It is read from the cubin by nvdisasm alone, so it holds for code that was compiled elsewhere too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.cubin import read_cubin
from tilewright.targets.nvidia.sass import listing as sass
from tilewright.targets.nvidia.sass.blocks import Block, blocks_of, labels_of, reachable
from tilewright.targets.nvidia.sass.lanes import Lanes, bank_conflicts, sectors
from tilewright.targets.nvidia.sass.listing import Instruction
from tilewright.targets.nvidia.sass.registers import Registers, read_registers
from tilewright.targets.nvidia.sass.table import Space


@dataclass(frozen=True)
class Access:
    """A load, store, atomic or copy of a warp.

    Attributes:
        bytes: that each thread moves; 0 where the instruction moves a block.
        step: bytes from one thread's address to the next one's, where they are all alike; else None.
        sectors: of 32 bytes that a warp touches in global memory.
        used: the share of their bytes that it asked for.
        conflicts: the most threads that wait for one bank of shared memory; 1 is without conflict.
    """

    instruction: Instruction
    space: Space
    bytes: int
    step: int | None
    sectors: int | None = None
    used: float | None = None
    conflicts: int | None = None

    def __str__(self) -> str:
        return f"{self.instruction.offset:04x}  {self.instruction.text:<48} {self.space:<8} {self._said()}"

    def _said(self) -> str:
        if not self.bytes:
            return "a block"
        if self.step is None:
            return f"{self.bytes} bytes a thread, how far apart is not known"
        apart = "at one address" if self.step == 0 else f"{self.step} apart"
        text = f"{self.bytes} bytes a thread, {apart}"
        if self.sectors is not None and self.used is not None:
            return f"{text}: {self.sectors} sector{'s' * (self.sectors > 1)}, {self.used:.0%} used"
        return text if self.conflicts is None else f"{text}: {self.conflicts}-way" + " conflict" * (self.conflicts > 1)


class MachineCode:
    """The machine code of one kernel; prints as nvdisasm shows it."""

    def __init__(self, cubin: bytes, kernel: str | None = None) -> None:
        """`kernel` may be left out where the cubin holds one.

        Raises:
            CompileError: there is no such kernel, or nvdisasm is missing.
        """
        known = read_cubin(cubin).kernels
        if kernel is None and len(known) == 1:
            kernel = next(iter(known))
        if kernel is None or kernel not in known:
            raise CompileError(f"the cubin has no kernel {kernel!r}", hint=f"it has: {', '.join(known) or 'none'}")
        self.kernel: str = kernel
        self._cubin = cubin
        self._block = known[kernel].max_threads if known[kernel].required_threads or known[kernel].max_threads else None

    @functools.cached_property
    def text(self) -> str:
        """nvdisasm's listing."""
        return sass.disassemble(self._cubin, kernel=self.kernel)

    @functools.cached_property
    def instructions(self) -> list[Instruction]:
        return [item for item in sass.parse(self.text) if item.kernel == self.kernel]

    @property
    def histogram(self) -> dict[str, int]:
        """How often each mnemonic occurs, most frequent first."""
        return sass.histogram(self.instructions)

    @property
    def graph(self) -> str:
        """The control-flow graph in the language of graphviz."""
        return sass.control_flow_graph(self._cubin, kernel=self.kernel)

    @functools.cached_property
    def live(self) -> str:
        """The listing with the live registers beside it."""
        return sass.live_registers(self._cubin, kernel=self.kernel)

    @property
    def most_live(self) -> dict[str, int]:
        """The most registers of each kind (GPR, PRED, UGPR, UPRED) that are live at one instruction."""
        most: dict[str, int] = {}
        for item in self.registers.values():
            most |= {kind: max(count, most.get(kind, 0)) for kind, count in item.live.items()}
        return most

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The basic blocks, with how many of their instructions could run side by side."""
        return blocks_of(self.instructions, labels_of(self.text, self.kernel), self.registers)

    @property
    def branches(self) -> list[Instruction]:
        """The jumps and exits at which a warp may diverge."""
        return self._lanes.divergent()

    @property
    def memory(self) -> list[Access]:
        """The accesses, in order, with their coalescing or bank conflicts."""
        return [self._access(item) for item in sass.memory_accesses(self.instructions)]

    def _access(self, item: sass.MemoryAccess) -> Access:
        step = self._lanes.step_of(item.instruction) if item.bytes else None
        plain = Access(item.instruction, item.space, item.bytes, step)
        if step is None:
            return plain
        if item.space == "global":
            count, used = sectors(step, item.bytes)
            return Access(item.instruction, item.space, item.bytes, step, count, used)
        if item.space == "shared":
            return Access(item.instruction, item.space, item.bytes, step, conflicts=bank_conflicts(step, item.bytes))
        return plain

    @functools.cached_property
    def registers(self) -> dict[int, Registers]:
        """What each instruction reads and writes, by offset."""
        found = read_registers(self.live)
        return {offset: item for (kernel, offset), item in found.items() if kernel == self.kernel}

    @functools.cached_property
    def _lanes(self) -> Lanes:
        return Lanes(self.blocks, self.registers, self._block)

    def __str__(self) -> str:
        return self.text

    def view(self, name: str) -> str:
        """One of `VIEWS` as text.

        Raises:
            CompileError: there is no such view.
        """
        if name not in VIEWS:
            raise CompileError(f"there is no view {name!r} of machine code", hint=f"views: {', '.join(VIEWS)}")
        return VIEWS[name](self)


def _histogram(code: MachineCode) -> str:
    return "\n".join(f"{count:7d} {name}" for name, count in code.histogram.items())


def _categories(code: MachineCode) -> str:
    groups = sass.by_category(code.instructions)
    return "\n".join(f"{len(items):7d} {category}" for category, items in groups.items())


def _memory(code: MachineCode) -> str:
    return "\n".join(map(str, code.memory)) or "no accesses"


def _branches(code: MachineCode) -> str:
    found = [f"{item.offset:04x}  {item.text}" for item in code.branches]
    return "\n".join(found) or "no branch may diverge"


def _blocks(code: MachineCode) -> str:
    lines = ["block  from  instructions  steps  parallel  to"]
    for block in reachable(code.blocks):
        to = ", ".join(map(str, block.successors)) or "end"
        first, count = block.instructions[0].offset, len(block.instructions)
        lines.append(f"{block.number:5d}  {first:04x}  {count:12d}  {block.steps:5d}  {block.parallelism:8.1f}  {to}")
    return "\n".join(lines)


VIEWS: Final[dict[str, Callable[[MachineCode], str]]] = {
    "code": lambda code: code.text,
    "histogram": _histogram,
    "categories": _categories,
    "memory": _memory,
    "branches": _branches,
    "blocks": _blocks,
    "graph": lambda code: code.graph,
    "live": lambda code: code.live,
}
"""What machine code can be shown as, by name."""
