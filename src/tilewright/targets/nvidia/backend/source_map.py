"""From a line of Python to the PTX and SASS made of it, and back, with the calls of inlined helpers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.base.location import SourceLocation
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.nvidia.backend.assembling import assemble_kernel
from tilewright.targets.nvidia.backend.options import options_of
from tilewright.targets.nvidia.backend.ptx_lines import placed_lines
from tilewright.targets.nvidia.binary.cubin import line_table
from tilewright.targets.nvidia.sass.listing import parse

_OFFSET = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")


@dataclass(frozen=True)
class Instruction:
    """A PTX or SASS instruction: kernel, line number in the stage's text (from 1), its text."""

    kernel: str
    line: int
    text: str


Chains = dict[tuple[str, int], list[SourceLocation]]
Table = dict[tuple[str, int], list[Instruction]]


@dataclass(frozen=True)
class SourceMap:
    """Both directions between Python lines and instructions.

    `ptx` and `sass` map (file, line) to instructions; `chains` maps (file, line) of an inlined helper to the places
    it was called from, innermost first.
    """

    ptx: dict[tuple[str, int], list[Instruction]]
    sass: dict[tuple[str, int], list[Instruction]]
    chains: Chains

    @classmethod
    def of(cls, executor: Any) -> SourceMap:
        ptx: Table = defaultdict(list)
        sass: Table = defaultdict(list)
        job = executor.job
        for name, kernel in executor.kernels.items():
            _add_ptx(name, kernel.stages["ptx"], ptx)
            _add_sass(job.kernels[name], job, kernel.stages["sass"], sass)
        return cls(dict(ptx), dict(sass), call_chains(job.locations))

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
    has_lines = options_of(job).generate_line_info
    cubin = kernel.texts["cubin"] if has_lines else assemble_kernel(kernel, job, lineinfo=True).data
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


def call_chains(locations: Iterable[SourceLocation]) -> Chains:
    """(file, line) of inlined code to the places that called it, innermost first; nearer callers first."""
    chains: Chains = defaultdict(list)
    for location in locations:
        inner, *callers = location.chain()
        known = chains[(inner.file, inner.line)] if callers else []
        known += [place for place in map(_place, callers) if place not in known]
    return dict(chains)


def _place(location: SourceLocation) -> SourceLocation:
    return SourceLocation(location.file, location.line)
