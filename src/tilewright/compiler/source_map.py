"""From a line of Python to the PTX and SASS made of it, and back, with the calls of inlined helpers."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tilewright.base.location import SourceLocation
from tilewright.compiler.assembling import assemble_kernel
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.ptx_lines import placed_lines
from tilewright.targets.nvidia.cubin import line_table
from tilewright.targets.nvidia.sass import parse

_DI = re.compile(r"^!(\d+) = (?:distinct )?!DI(\w+)\((.*)\)$")
_OFFSET = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"((?:[^"\\]|\\.)*)")')


@dataclass(frozen=True)
class Instruction:
    """A PTX or SASS instruction: kernel, line number in the stage's text (from 1), its text."""

    kernel: str
    line: int
    text: str


Table = dict[tuple[str, int], list[Instruction]]


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
        ptx: Table = defaultdict(list)
        sass: Table = defaultdict(list)
        chains: dict[tuple[str, int], list[SourceLocation]] = defaultdict(list)
        job = executor.job
        for name, kernel in executor.kernels.items():
            _add_ptx(name, kernel.stages["ptx"], ptx)
            _add_sass(job.kernels[name], job, kernel.stages["sass"], sass)
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


def _add_ptx(kernel: str, text: str, table: Table) -> None:
    for number, line, place in placed_lines(text):
        if place and line.startswith("\t") and not line.strip().startswith((".", "//", "{", "}")):
            table[place].append(Instruction(kernel, number, line.strip()))


def _add_sass(kernel: KernelJob, job: Job, sass: str, table: Table) -> None:
    cubin = (
        kernel.texts["cubin"] if job.options.generate_line_info else assemble_kernel(kernel, job, lineinfo=True).data
    )
    starts = sorted(line_table(cubin, kernel.name))
    numbers = _offset_lines(sass, kernel.name)
    for instruction in parse(sass):
        before = [row for row in starts if row[0] <= instruction.offset]
        if before and instruction.kernel == kernel.name:
            _, file, line = before[-1]
            table[(file, line)].append(Instruction(kernel.name, numbers[instruction.offset], instruction.text))


def _offset_lines(sass: str, kernel: str) -> dict[int, int]:
    """Line number in the text by byte offset in the kernel."""
    numbers: dict[int, int] = {}
    inside = False
    for number, line in enumerate(sass.splitlines(), 1):
        if line.startswith(".text."):
            inside = line.strip() == f".text.{kernel}:"
        elif inside and (found := _OFFSET.match(line)):
            numbers.setdefault(int(found[1], 16), number)
    return numbers


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
