"""How the values of machine code differ among the threads of a warp: which branches may diverge, which accesses are
coalesced.

A register holds the same in all threads, or `step` more in each next thread (an affine function of the lane), or
nothing that is known. The analysis follows registers through the blocks until nothing changes; what threads write on
two sides of a branch that may diverge is not known afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.targets.nvidia.sass.blocks import Block, is_jump
from tilewright.targets.nvidia.sass.listing import Instruction
from tilewright.targets.nvidia.sass.registers import Registers

WARP: Final = 32
_AND, _OR = 0xC0, 0xFC  # the tables of LOP3 for a & b, a | b
SECTOR: Final = 32  # bytes that global memory is moved in
BANKS, BANK_BYTES = 32, 4
_REGISTER: Final = re.compile(r"^[-~|!]*(U?R\d+)(?:\.\w+)*\|?$")
_ADDRESS: Final = re.compile(r"\[(?:(?P<register>R\d+)(?:\.\w+)*)?(?P<rest>[^\]\[]*)\]$")
_SAME_IN_WARP: Final = ("SR_CTAID", "SR_NTID", "SR_NCTAID", "SR_Cga", "SR_CLUSTER", "SR_VIRTUALSM", "SR_SM", "SR_GRID")
_OWN_MEMORY: Final = frozenset(("LDL", "ATOM", "ATOMG", "ATOMS", "LDSM", "MATCH", "ELECT", "CS2R"))


@dataclass(frozen=True)
class Lane:
    """A value as a function of the lane: what is the same in all threads + `step` * lane. `is_thread` tells the index
    of the thread itself, whose low bits are the lane; `in_warps` a multiple of 32 that is the same in all threads."""

    step: int = 0
    is_thread: bool = False
    in_warps: bool = False


UNIFORM: Final = Lane()
State = dict[str, "Lane | None"]
"""Values by register; None is not known, and what is missing is the same in all threads."""


class Lanes:
    """The analysis of one kernel. `block` is the extents of a block where they are known."""

    def __init__(
        self, blocks: Sequence[Block], registers: Mapping[int, Registers], block: tuple[int, int, int] | None = None
    ) -> None:
        self._blocks = blocks
        self._registers = registers
        self._rows_are_warps = block is None or block[0] % WARP == 0
        self._before: dict[int, State] = {}  # by offset
        self._divergent: dict[int, set[int]] = {}  # blocks that end in a branch which may diverge, and their regions
        self._run()

    def divergent(self) -> list[Instruction]:
        """The jumps and exits that some threads of a warp may take and others not."""
        found = []
        for block in self._blocks:
            found += [item for item in block.instructions if is_jump(item) and self._may_split(item)]
        return found

    def step_of(self, instruction: Instruction) -> int | None:
        """Bytes from the address of one thread to that of the next; None if they are not known."""
        state = self._before.get(instruction.offset, {})
        address = next((found for text in instruction.operands if (found := _ADDRESS.search(text))), None)
        if address is None:
            return None
        name = address["register"]
        value = state.get(name, UNIFORM) if name else UNIFORM
        return None if value is None else value.step

    # The analysis.

    def _run(self) -> None:
        entries: dict[int, State] = {0: {}}
        waiting = [0]
        while waiting:
            number = waiting.pop()
            block = self._blocks[number]
            out = self._through(block, dict(entries[number]))
            if number not in self._divergent and self._may_split(block.last) and len(block.successors) > 1:
                self._divergent[number] = self._region(number)
                waiting += [item for item in self._divergent[number] if item in entries]
            if any(number in region for region in self._divergent.values()):
                out |= dict.fromkeys(self._written(block), None)
            for successor in block.successors:
                joined = _joined(entries.get(successor), out)
                if joined != entries.get(successor):
                    entries[successor] = joined
                    waiting.append(successor)

    def _through(self, block: Block, state: State) -> State:
        for item in block.instructions:
            self._before[item.offset] = dict(state)
            used = self._registers.get(item.offset)
            if used is None:
                continue
            values = self._results(item, used, state)
            for name in used.writes:
                new = values(name)
                new = UNIFORM if name.startswith("U") and not _is_uniform(new) else new
                state[name] = self._kept(item, state, new, state.get(name, UNIFORM))
        return state

    def _kept(self, item: Instruction, state: State, new: Lane | None, old: Lane | None) -> Lane | None:
        """What a register holds behind an instruction that may have a predicate."""
        if not item.predicate or new == old:
            return new
        if not all(_is_uniform(state.get(name, UNIFORM)) for name in _predicates(item)):
            return None
        return _either(new, old)

    def _results(self, item: Instruction, used: Registers, state: State) -> Callable[[str], Lane | None]:
        """What each register gets that an instruction writes: the first the value, others what is the same everywhere
        or unknown."""
        first = _first_written(item, used)
        same = all(_is_uniform(state.get(name, UNIFORM)) for name in used.reads)
        value = self._value(item, state, same)
        rest = UNIFORM if _is_uniform(value) else None
        return lambda name: value if name == first else rest

    def _value(self, item: Instruction, state: State, same: bool) -> Lane | None:
        """What the first register gets. `same`: all that is read is the same in all threads."""
        name, operands = item.mnemonic, item.operands
        if name in ("S2R", "CS2R"):
            return self._special(operands[-1])
        if name == "SHFL":
            lane = _constant(operands[3]) if len(operands) > 3 else None
            return UNIFORM if "IDX" in item.modifiers and lane is not None else None
        if name in ("VOTE", "REDUX"):
            return UNIFORM
        if name in _OWN_MEMORY:
            return None
        if same:
            return Lane(in_warps=_in_warps(item))
        if ("HI" in item.modifiers and name in ("IMAD", "LEA")) or "X" in item.modifiers:
            return None
        terms = [_term(text, state) for text in operands[1:] if not re.match(r"^!?U?P(T|\d)", text)]
        if name == "ISETP":
            return _compared(item.modifiers, terms)
        return self._arithmetic(name, item.modifiers, terms)

    def _special(self, register: str) -> Lane | None:
        if register.startswith(_SAME_IN_WARP):
            return UNIFORM
        if register == "SR_LANEID" or (register == "SR_TID.X" and self._rows_are_warps):
            return Lane(1, True)
        return UNIFORM if register in ("SR_TID.Y", "SR_TID.Z") and self._rows_are_warps else None

    def _arithmetic(self, name: str, modifiers: Sequence[str], terms: Sequence[Term]) -> Lane | None:
        if name in ("MOV", "VIADD", "IADD3", "IADD") or (name == "IMAD" and modifiers[:1] in (("MOV",), ("IADD",))):
            return _sum(terms[-1:] if "MOV" in (name, *modifiers) else terms)
        if name == "IMAD" and len(terms) >= 3:
            return _added(_scaled(terms[0], terms[1]) or _scaled(terms[1], terms[0]), terms[2].value)
        if name == "LEA" and len(terms) >= 3 and terms[2].number is not None:
            return _added(_scaled(terms[0], Term(UNIFORM, 1 << terms[2].number)), terms[1].value)
        if name in ("SHF", "SHL") and "L" in (*modifiers, "L" if name == "SHL" else "") and terms[1].number is not None:
            return _scaled(terms[0], Term(UNIFORM, 1 << terms[1].number))
        if name == "SHF" and "R" in modifiers and len(terms) >= 3 and terms[1].number is not None:
            return UNIFORM if _is_thread(terms[2]) and terms[1].number >= 5 else None
        if name == "LOP3" and len(terms) > 3 and terms[2].number == 0:
            return _of_bits(terms[0], terms[1], terms[3].number)
        return None

    def _may_split(self, item: Instruction) -> bool:
        names = _predicates(item) or [text.lstrip("!") for text in item.operands if re.match(r"^!?P\d+$", text)]
        state = self._before.get(item.offset, {})
        return not all(_is_uniform(state.get(name, UNIFORM)) for name in names)

    # Control flow.

    def _region(self, number: int) -> set[int]:
        """The blocks that lie between a branch and where its sides have met again."""
        meeting = self._meeting(number)
        found: set[int] = set()
        waiting = list(self._going_on(number))
        while waiting:
            block = waiting.pop()
            if block not in found and block != meeting:
                found.add(block)
                waiting += self._going_on(block)
        return found

    def _going_on(self, number: int) -> list[int]:
        """Successors where threads stay: a block that is only an exit takes them out."""
        return [item for item in self._blocks[number].successors if not self._only_exits(item)]

    def _only_exits(self, number: int) -> bool:
        first = self._blocks[number].instructions[0]
        return first.mnemonic == "EXIT" and not first.predicate

    def _meeting(self, number: int) -> int | None:
        """The first block that all ways from a block to the end go through."""
        ways = [self._reached(item) for item in self._going_on(number)]
        if not ways:
            return None
        common = set.intersection(*map(set, ways))
        for candidate in ways[0]:
            if candidate in common and all(self._always_through(item, candidate) for item in self._going_on(number)):
                return candidate
        return None

    def _reached(self, number: int) -> list[int]:
        """The blocks that can be reached from a block, itself first, nearest first."""
        found, position = [number], 0
        while position < len(found):
            found += [item for item in self._going_on(found[position]) if item not in found]
            position += 1
        return found

    def _always_through(self, start: int, wanted: int) -> bool:
        """No way from `start` to an end leaves out `wanted`."""
        seen, waiting = set(), [start]
        while waiting:
            block = waiting.pop()
            if block == wanted or block in seen:
                continue
            seen.add(block)
            following = self._going_on(block)
            if not following and not self._blocks[block].successors:
                return False
            waiting += following
        return True

    def _written(self, block: Block) -> set[str]:
        used = [self._registers[item.offset] for item in block.instructions if item.offset in self._registers]
        return {name for item in used for name in item.writes if not name.startswith("U")}


# Values.


@dataclass(frozen=True)
class Term:
    """An operand: its value as a function of the lane, and its number where it is one."""

    value: Lane | None
    number: int | None = None
    negative: bool = False


def _term(text: str, state: State) -> Term:
    number = _constant(text)
    if number is not None:
        return Term(UNIFORM, number)
    found = _REGISTER.match(text)
    if found:
        return Term(state.get(found[1], UNIFORM), None, text.startswith("-"))
    return Term(UNIFORM)


def _constant(text: str) -> int | None:
    """The number that an operand is; RZ and URZ are 0."""
    if text.split(".")[0] in ("RZ", "URZ"):
        return 0
    return int(text, 16) if re.fullmatch(r"-?0x[0-9a-f]+", text) else None


def _is_thread(term: Term) -> bool:
    return term.value is not None and term.value.is_thread


def _compared(modifiers: Sequence[str], terms: Sequence[Term]) -> Lane | None:
    """A comparison of the thread's index with a bound between two warps is the same in each of them."""
    if len(terms) != 2 or not _is_thread(terms[0]) or terms[1].number is None:
        return None
    bound = terms[1].number + (modifiers[0] in ("GT", "LE"))
    return UNIFORM if modifiers[0] in ("GT", "LE", "GE", "LT") and bound % WARP == 0 else None


def _is_uniform(value: Lane | None) -> bool:
    return value is not None and value.step == 0


def _in_warps(item: Instruction) -> bool:
    """True for a uniform value that a shift or product makes a multiple of 32."""
    numbers = [_constant(text) for text in item.operands[1:]]
    if item.mnemonic in ("SHF", "USHF") and "L" in item.modifiers and len(numbers) > 1:
        return numbers[1] is not None and numbers[1] >= 5
    if item.mnemonic in ("IMAD", "UIMAD") and len(numbers) > 2:
        return numbers[2] == 0 and any(number is not None and number % WARP == 0 for number in numbers[:2])
    return False


def _of_bits(first: Term, second: Term, table: int | None) -> Lane | None:
    """The thread's index under a mask, or beside bits above those of the lane."""
    thread, other = (first, second) if _is_thread(first) else (second, first)
    if not _is_thread(thread):
        return None
    if table == _AND and other.number is not None:
        return _masked(other.number)
    return Lane(1) if table == _OR and other.value is not None and other.value.in_warps else None


def _masked(mask: int) -> Lane | None:
    """The thread's index under a mask: its lane, what is the same in a warp, or a part of the lane."""
    low = mask & (WARP - 1)
    return Lane(1, True) if low == WARP - 1 else UNIFORM if low == 0 else None


def _scaled(term: Term, factor: Term) -> Lane | None:
    if _is_uniform(term.value) and _is_uniform(factor.value):
        return UNIFORM
    if term.value is None or factor.number is None:
        return None
    return Lane(term.value.step * factor.number, term.value.is_thread and factor.number == 1)


def _added(first: Lane | None, second: Lane | None) -> Lane | None:
    if first is None or second is None:
        return None
    return Lane(first.step + second.step, False) if (first.step or second.step) else UNIFORM


def _sum(terms: Sequence[Term]) -> Lane | None:
    if len(terms) == 1:
        return terms[0].value
    total: Lane | None = UNIFORM
    for term in terms[:3]:
        value = term.value
        if value is not None and term.negative:
            value = Lane(-value.step)
        total = _added(total, value)
    return total


def _joined(known: State | None, new: State) -> State:
    if known is None:
        return dict(new)
    names = known.keys() | new.keys()
    return {name: _either(known.get(name, UNIFORM), new.get(name, UNIFORM)) for name in names}


def _either(first: Lane | None, second: Lane | None) -> Lane | None:
    """What holds of a value that is one of two."""
    if first is None or second is None or first.step != second.step:
        return None
    return Lane(first.step, first.is_thread and second.is_thread, first.in_warps and second.in_warps)


def _predicates(item: Instruction) -> list[str]:
    """The predicate that an instruction is under, if any."""
    return re.findall(r"^@!?(U?P\d+)", item.predicate)


def _first_written(item: Instruction, used: Registers) -> str:
    """The register that the first operand names."""
    names = (match[1] for text in item.operands if (match := _REGISTER.match(text)))
    return next((name for name in names if name in used.writes), "")


# Accesses.


def sectors(step: int, width: int) -> tuple[int, float]:
    """(sectors, share of their bytes that is used) of one access of a warp to global memory.

    `step` bytes lie between the addresses of neighbouring threads, each of which moves `width` bytes; the first
    address is taken to begin a sector.
    """
    touched = {lane * step + byte for lane in range(WARP) for byte in range(width)}
    count = len({byte // SECTOR for byte in touched})
    return count, len(touched) / (count * SECTOR)


def bank_conflicts(step: int, width: int) -> int:
    """The most different words of one bank that threads of a warp ask of shared memory at once: 1 is without conflict.

    Accesses of 8 bytes go by half warps, those of 16 by quarters.
    """
    lanes = WARP * BANK_BYTES // max(width, BANK_BYTES)
    words: dict[int, set[int]] = {}
    for lane in range(lanes):
        for byte in range(0, max(width, 1), BANK_BYTES):
            word = (lane * step + byte) // BANK_BYTES
            words.setdefault(word % BANKS, set()).add(word)
    return max(map(len, words.values()))
