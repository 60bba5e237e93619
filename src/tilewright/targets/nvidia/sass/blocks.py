"""Basic blocks of machine code: where they begin, where they go on, how much in them could run side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilewright.targets.nvidia.sass.listing import Instruction
from tilewright.targets.nvidia.sass.registers import Registers

_LABEL: Final = re.compile(r"^(?P<label>\.L\w*):")
_SECTION: Final = re.compile(r"^\.text\.(?P<kernel>[^:]+):")
_OFFSET: Final = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/")
_TARGET: Final = re.compile(r"`\((?P<label>\.L\w*)\)")
_JUMPS: Final = frozenset(("BRA", "JMP", "BRX", "JMX", "EXIT", "RET", "BREAK", "KILL"))
_INDIRECT: Final = frozenset(("BRX", "JMX", "BRXU", "JMXU"))
_LAST: Final = frozenset(("EXIT", "RET", "KILL"))


@dataclass
class Block:
    """Instructions that run one after another. `successors` are numbers of blocks; `steps` is the longest chain of
    instructions of which each needs the one before."""

    number: int
    instructions: list[Instruction]
    successors: list[int] = field(default_factory=list)
    steps: int = 0

    @property
    def parallelism(self) -> float:
        """Instructions for each step of the longest chain: what could be issued at once, latencies aside."""
        return len(self.instructions) / self.steps if self.steps else 0.0

    @property
    def last(self) -> Instruction:
        return self.instructions[-1]


def labels_of(text: str, kernel: str) -> dict[str, int]:
    """The offsets of the labels of a kernel in a disassembly."""
    found: dict[str, int] = {}
    waiting: list[str] = []
    inside = False
    for line in text.splitlines():
        section, label, offset = _SECTION.match(line), _LABEL.match(line), _OFFSET.match(line)
        if section:
            inside = section["kernel"] == kernel
        elif inside and label:
            waiting.append(label["label"])
        elif inside and offset:
            found.update((name, int(offset["offset"], 16)) for name in waiting)
            waiting.clear()
    return found


def is_jump(instruction: Instruction) -> bool:
    """True for what may go elsewhere than to the next instruction."""
    return instruction.mnemonic in _JUMPS


def target_of(instruction: Instruction, labels: Mapping[str, int]) -> int | None:
    """The offset that a jump names; None for one that names none."""
    found = _TARGET.search(instruction.text)
    return labels.get(found["label"]) if found else None


def blocks_of(
    instructions: Sequence[Instruction], labels: Mapping[str, int], registers: Mapping[int, Registers]
) -> list[Block]:
    """The blocks of one kernel, in order; block 0 is the entry."""
    targets = {place for item in instructions if is_jump(item) and (place := target_of(item, labels)) is not None}
    if any(item.mnemonic in _INDIRECT for item in instructions):
        targets |= set(labels.values())
    parts: list[list[Instruction]] = []
    for position, item in enumerate(instructions):
        if position == 0 or item.offset in targets or is_jump(instructions[position - 1]):
            parts.append([])
        parts[-1].append(item)
    starts = {part[0].offset: number for number, part in enumerate(parts)}
    blocks = [Block(number, part) for number, part in enumerate(parts)]
    for block in blocks:
        block.successors = _successors(block, len(blocks), starts, labels)
        block.steps = _steps(block.instructions, registers)
    return blocks


def _successors(block: Block, count: int, starts: Mapping[int, int], labels: Mapping[str, int]) -> list[int]:
    last = block.last
    after = [block.number + 1] if block.number + 1 < count else []
    if not is_jump(last):
        return after
    if last.mnemonic in _INDIRECT:
        return sorted({starts[place] for place in labels.values() if place in starts})
    place = target_of(last, labels)
    there = [starts[place]] if place is not None and place in starts and last.mnemonic not in _LAST else []
    conditional = bool(last.predicate) and last.predicate not in ("@PT", "@UPT")
    conditional |= "DIV" in last.modifiers or len(last.operands) > 1  # BRA.DIV, BRA P0, target
    return list(dict.fromkeys([*there, *(after if conditional else [])]))


def reachable(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that are ever run, in order: assemblers put a jump to itself behind the end."""
    seen: set[int] = set()
    waiting = [0] if blocks else []
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            waiting += blocks[number].successors
    return [block for block in blocks if block.number in seen]


def _steps(instructions: Sequence[Instruction], registers: Mapping[int, Registers]) -> int:
    """The longest chain of true dependences through registers."""
    ready: dict[str, int] = {}
    longest = 0
    for item in instructions:
        used = registers.get(item.offset)
        if used is None:
            longest = max(longest, 1)
            continue
        step = 1 + max((ready.get(name, 0) for name in used.reads), default=0)
        for name in used.writes:
            ready[name] = max(step, ready.get(name, 0)) if item.predicate else step
        longest = max(longest, step)
    return longest
