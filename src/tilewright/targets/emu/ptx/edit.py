"""Changing PTX instruction by instruction: parsed to decide, edited as text, so that all else stays as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.ptx.ir import Instruction
from tilewright.targets.emu.ptx.parser import parse


def edit(text: str, change: Callable[[Instruction], str | None]) -> str:
    """The text with instructions changed.

    `change(instruction)` gives the text that takes the place of an instruction, guard and semicolon included ("" for
    nothing), or None where it stays.

    Raises:
        EmulationError: the text is not PTX that is known here, or an instruction to be changed shares its lines.
    """
    functions = parse(text).functions.values()
    lines = text.split("\n")
    found = [instruction for function in functions for instruction in function.body]
    count = Counter(instruction.line for instruction in found)
    for instruction in found:
        new = change(instruction)
        if new is None:
            continue
        line = lines[instruction.line - 1]
        code = line.partition("//")[0].rstrip()
        if count[instruction.line] > 1 or code.count(";") != 1 or not code.endswith(";"):
            raise EmulationError(
                f"PTX line {instruction.line}: the instruction does not fill the line",
                values={"text": line.strip()},
                hint="write one instruction a line",
            )
        indent = line[: len(line) - len(line.lstrip())]
        lines[instruction.line - 1] = indent + new
    return "\n".join(lines)
