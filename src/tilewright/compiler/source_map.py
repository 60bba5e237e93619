"""From a line of Python to the PTX and SASS made of it, and back, with the calls of inlined helpers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tilewright.base.location import SourceLocation
from tilewright.targets.nvidia.assemble import assemble
from tilewright.targets.nvidia.cubin import line_table
from tilewright.targets.nvidia.sass import disassemble, parse

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_DI = re.compile(r"^!(\d+) = (?:distinct )?!DI(\w+)\((.*)\)$")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"((?:[^"\\]|\\.)*)")')


@dataclass(frozen=True)
class Instruction:
    """A PTX or SASS instruction: kernel, line number in the stage's text (from 1), its text."""

    kernel: str
    line: int
    text: str


@dataclass(frozen=True)
class SourceMap:
    """Both directions between Python lines and instructions.

    `ptx` and `sass` map (file, line) to instructions; `chains` maps (file, line) of an inlined helper to the places
    it was called from, innermost first.
    """

    ptx: dict[tuple[str, int], list[Instruction]]
    sass: dict[tuple[str, int], list[Instruction]]
    chains: dict[tuple[str, int], list[SourceLocation]]

    @classmethod
    def of(cls, executor: Any) -> SourceMap:
        ptx: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
        sass: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
        chains: dict[tuple[str, int], list[SourceLocation]] = defaultdict(list)
        for name, kernel in executor.kernels.items():
            text = kernel.stages["ptx"]
            _add_ptx(name, text, ptx)
            _add_sass(name, text, executor.arch, sass)
            for place, chain in call_chains(kernel.stages["llvm"]).items():
                chains[place] += [location for location in chain if location not in chains[place]]
        return cls(dict(ptx), dict(sass), dict(chains))

    def of_line(self, line: int, file: str | None = None) -> dict[str, list[Instruction]]:
        """The PTX and SASS made of a Python line; `file` is needed only where two files have that line."""
        return {"ptx": _pick(self.ptx, line, file), "sass": _pick(self.sass, line, file)}

    def of_ptx(self, line: int, kernel: str | None = None) -> tuple[str, int] | None:
        """The Python line from which line `line` of the PTX text comes."""
        return _find(self.ptx, line, kernel)

    def of_sass(self, line: int, kernel: str | None = None) -> tuple[str, int] | None:
        """The Python line from which line `line` of the SASS text comes."""
        return _find(self.sass, line, kernel)


def _pick(table: dict[tuple[str, int], list[Instruction]], line: int, file: str | None) -> list[Instruction]:
    return [
        item for (name, number), items in table.items() if number == line and file in (None, name) for item in items
    ]


def _find(table: dict[tuple[str, int], list[Instruction]], line: int, kernel: str | None) -> tuple[str, int] | None:
    for place, items in table.items():
        if any(item.line == line and kernel in (None, item.kernel) for item in items):
            return place
    return None


def _add_ptx(kernel: str, text: str, table: dict[tuple[str, int], list[Instruction]]) -> None:
    files = dict(_files(text))
    place: tuple[str, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if found := _LOC.match(line):
            place = (files.get(found[1], ""), int(found[2]))
        elif place and line.startswith("\t") and not line.strip().startswith((".", "//", "{", "}")):
            table[place].append(Instruction(kernel, number, line.strip()))


def _files(text: str) -> list[tuple[str, str]]:
    """(number, path) of the `.file` directives, which may come after their use."""
    found = [match for line in text.splitlines() if (match := _FILE.match(line))]
    return [(match[1], f"{match[2]}/{match[3]}" if match[3] else match[2]) for match in found]


def _add_sass(kernel: str, ptx: str, arch: str, table: dict[tuple[str, int], list[Instruction]]) -> None:
    cubin = assemble(ptx, arch, lineinfo=True).data
    rows = line_table(cubin, kernel)
    text = disassemble(cubin)
    lines = {item.offset: item for item in parse(text) if item.kernel == kernel}
    numbers = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    starts = sorted(rows)
    for offset, instruction in lines.items():
        before = [row for row in starts if row[0] <= offset]
        if before:
            _, file, line = before[-1]
            number = numbers.get(instruction.text, 0)
            table[(file, line)].append(Instruction(kernel, number, instruction.text))


def call_chains(llvm: str) -> dict[tuple[str, int], list[SourceLocation]]:
    """(file, line) of inlined code to the places that called it, from the debug metadata of LLVM IR text."""
    nodes = {match[1]: (match[2], _fields(match[3])) for line in llvm.splitlines() if (match := _DI.match(line))}
    chains: dict[tuple[str, int], list[SourceLocation]] = {}
    for kind, fields in nodes.values():
        if kind == "Location" and "inlinedAt" in fields:
            place = _place(fields, nodes)
            chains.setdefault((place.file, place.line), list(_callers(fields, nodes)))
    return chains


def _fields(text: str) -> dict[str, str]:
    return {match[1]: match[2] or match[3] or match[4] or "" for match in _FIELD.finditer(text)}


def _place(fields: dict[str, str], nodes: dict[str, tuple[str, dict[str, str]]]) -> SourceLocation:
    scope = fields.get("scope", "")
    while scope in nodes and nodes[scope][0] != "File":
        inner = nodes[scope][1]
        scope = inner.get("file") or inner.get("scope", "")
    file = nodes[scope][1] if scope in nodes else {}
    folder, name = file.get("directory", ""), file.get("filename", "")
    return SourceLocation(f"{folder}/{name}" if folder else name, int(fields.get("line", "0")))


def _callers(fields: dict[str, str], nodes: dict[str, tuple[str, dict[str, str]]]) -> list[SourceLocation]:
    found = []
    at = fields.get("inlinedAt", "")
    while at in nodes:
        found.append(_place(nodes[at][1], nodes))
        at = nodes[at][1].get("inlinedAt", "")
    return found
