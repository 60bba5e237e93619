"""Lines of the source: which an instruction belongs to, and by which calls a helper's line is reached.

PTX names the line of a helper alone; the compiler's list of inlined lines (`targets.inlined`) has the calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tilewright.base.location import SourceLocation
from tilewright.targets.emu.ptx import Instruction, Reg
from tilewright.tools.debugger.plan import SourceLine

Line = tuple[str, int]
Chain = tuple[Line, ...]
LONGEST = 200
"""Characters of a line that are shown."""


class Lines:
    """Source lines and the chains of calls that lead to them."""

    def __init__(self, inlined: Iterable[SourceLocation] = ()) -> None:
        self._chains: dict[Line, list[Chain]] = {}
        for location in inlined:
            first, *calls = [(place.file, place.line) for place in location.chain()]
            self._chains.setdefault(first, []).append(tuple(calls))

    def chains(self, line: Line) -> list[Chain]:
        """The chains of calls by which a line is reached, innermost first; a kernel's own has one without calls."""
        return self._chains.get(line, [()])

    def stack(self, instruction: Instruction | None) -> tuple[SourceLine, ...]:
        """The line of an instruction, then the calls that led there; where several chains do, up to the first fork."""
        line = line_of(instruction)
        if line is None:
            return ()
        chains = self.chains(line)
        shared: list[Line] = []
        for lines in zip(*chains, strict=False):
            if len(set(lines)) > 1:
                break
            shared.append(lines[0])
        return tuple(SourceLine(file, number, function_at(file, number)) for file, number in (line, *shared))

    def inside(self, line: Line, of: Line) -> bool:
        """Whether `line` belongs to what the function around `of` calls."""
        home = (of[0], function_at(*of))
        return any((file, function_at(file, number)) == home for c in self.chains(line) for file, number in c)


def line_of(instruction: Instruction | None) -> Line | None:
    """The source line of an instruction."""
    place = None if instruction is None else instruction.place
    return None if place is None or place.line == 0 else (place.file, place.line)


def first_of_lines(items: Sequence[Instruction]) -> dict[Line, Instruction]:
    """The first instruction of each source line in a block of code.

    A copy that is made for a pin counts only where its line has nothing else: it belongs to the line before, whose
    variables are known behind it.
    """
    pinned = {part.name for item in items if item.op == "pin" for part in item.ops if isinstance(part, Reg)}
    found: dict[Line, Instruction] = {}
    copies: dict[Line, Instruction] = {}
    for item in items:
        line = line_of(item)
        if line is None or item.op == "pin":
            continue
        target = item.ops[0] if item.op in ("mov", "cvt", "cvta") else None
        (copies if isinstance(target, Reg) and target.name in pinned else found).setdefault(line, item)
    return {**copies, **found}


def function_at(file: str, line: int) -> str:
    """The name of the innermost function around a line; empty where there is none."""
    found = [(first, name) for first, last, name in _functions(file) if first <= line <= last]
    return max(found)[1] if found else ""


def first_line(file: str, name: str) -> int:
    """The line at which a function of this name begins; 0 where a file has none."""
    return next((first for first, _, found in _functions(file) if found == name), 0)


def text_at(file: str, line: int) -> str:
    """The text of a line, cut where it is very long; empty where there is none."""
    lines = _text(file).split("\n")  # as Python counts lines: form feeds end none
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def same_file(wanted: str, file: str) -> bool:
    """Whether `wanted` is `file`, or the end of its path."""
    return file == wanted or file.endswith("/" + wanted.removeprefix("./"))


@lru_cache(maxsize=64)
def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


@lru_cache(maxsize=64)
def _functions(file: str) -> list[tuple[int, int, str]]:
    try:
        tree = ast.parse(_text(file))
    except SyntaxError:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, node.end_lineno or node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, kinds)
    ]
