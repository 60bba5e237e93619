"""Where a running kernel is: the loop that its threads stay in, as a line of the user's source."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.base.location import SourceLocation
from tilewright.targets.emu.cfg import Nest
from tilewright.targets.emu.code import COND, Code
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import source_location
from tilewright.targets.emu.ptx import Instruction


def loop_of(cohort: Cohort, ran: Mapping[int, int]) -> Instruction | None:
    """The instruction at which the loop that some threads stay in goes round, None if they are in none.

    Of loops in one another it is the innermost that holds all blocks of its function that ran of late, else the
    outermost. `ran` has how often each block did so, by serial number.
    """
    places = [(cohort.code, cohort.pc), *((frame.code, frame.pc) for frame in reversed(cohort.frames))]
    found: tuple[Code, Nest, int] | None = None
    for code, block in places:
        nest = nest_of(code)
        recent = [number for number, b in enumerate(code.blocks) if b.serial in ran]
        for head in nest.loops_at(block):
            found = code, nest, head
            if all(head in nest.loops_at(number) for number in recent):
                return _turning(*found)
    return None if found is None else _turning(*found)


def nest_of(code: Code) -> Nest:
    """The loops of a function, worked out when they are first asked for."""
    if code.nest is None:
        code.nest = Nest([block.targets for block in code.blocks])
    return code.nest


def _turning(code: Code, nest: Nest, head: int) -> Instruction | None:
    """The branch back to a loop's head; one with a source line if there is any.

    LLVM may merge it with that of a loop inside and keep the line of that; then the branch in front of the loop, which
    asks for the first time whether it goes on, has the loop's own.
    """
    found = _branch_back(code, nest, head)
    inside = [_branch_back(code, nest, other) for other, around in nest.around.items() if around == head]
    if found is not None and any(other is not None and _line(other) == _line(found) for other in inside):
        before = [b.last for n, b in enumerate(code.blocks) if b.kind == COND and _guards(code, nest, n, head)]
        return next((i for i in before if i is not None and _line(i) not in (None, _line(found))), found)
    return found


def _branch_back(code: Code, nest: Nest, head: int) -> Instruction | None:
    back = [b.last for n, b in enumerate(code.blocks) if head in b.targets and head in nest.loops_at(n)]
    known = [i for i in (*back, code.blocks[head].first) if i is not None]
    return next((i for i in known if _line(i) is not None), known[0] if known else None)


def _guards(code: Code, nest: Nest, block: int, head: int) -> bool:
    """Whether a branch outside of a loop leads to its head, directly or by a block that does nothing else."""
    if head in nest.loops_at(block):
        return False
    targets = code.blocks[block].targets
    return any(target == head or code.blocks[target].targets == [head] for target in targets)


def _line(instruction: Instruction) -> tuple[str, int] | None:
    place = instruction.place
    return (place.file, place.line) if place is not None and place.line else None


def place_of(instruction: Instruction) -> SourceLocation | None:
    """The source line of an instruction, None where it has none."""
    place = instruction.place
    return source_location(place) if place is not None and place.line else None


def described(instruction: Instruction) -> str:
    """`kernel.py:12  while i < n:`, or the PTX line where there is no source."""
    place = place_of(instruction)
    if place is None:
        return f"PTX line {instruction.line}: {instruction.text}"
    return f"{place}  {place.source().strip()}".rstrip()
