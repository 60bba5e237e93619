"""The registers that each machine instruction reads and writes, as nvdisasm's columns of live registers show them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_ROW: Final = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/.*?// \|(?P<columns>.*)\|\s*$")
_HEAD: Final = re.compile(r"// \|(?P<columns>.*)\|\s*$")
_SECTION: Final = re.compile(r"^\.text\.(?P<kernel>[^:]+):")
_PREFIX: Final = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_READS, _WRITES = "vx", "^x"
_COPY: Final = re.compile(r"\*/\s+(?:@\S+\s+)?LDGSTS\b")
"""Writes shared memory and no register; nvdisasm marks the predicate that it reads as written too."""

Column = tuple[int, str]
"""Where a register's mark stands in a row, and the register."""


@dataclass(frozen=True)
class Registers:
    """The registers of an instruction: those that it reads and writes, and how many of each kind are live at it."""

    reads: frozenset[str]
    writes: frozenset[str]
    live: dict[str, int]


def read_registers(text: str) -> dict[tuple[str, int], Registers]:
    """The registers of each instruction, by kernel and offset, from the text that `sass.live_registers` gives."""
    found: dict[tuple[str, int], Registers] = {}
    kinds: list[str] = []
    columns: list[Column] = []
    kernel = ""
    for line in text.splitlines():
        head, row, section = _HEAD.search(line), _ROW.match(line), _SECTION.match(line)
        if section:
            kernel = section["kernel"]
        if row:
            used = _registers(row["columns"], kinds, columns)
            found[kernel, int(row["offset"], 16)] = replace(used, writes=frozenset()) if _COPY.search(line) else used
        elif head and any(kind in head["columns"].split() for kind in _PREFIX):
            kinds = head["columns"].replace("|", " ").split()
        elif head and "#" in head["columns"]:
            columns = _columns(head["columns"], kinds)
    return found


def _columns(head: str, kinds: list[str]) -> list[Column]:
    """The places of marks: under the last digit of each register's number. The column `#` counts live ones."""
    columns: list[Column] = []
    start = 0
    for kind, part in zip(kinds, head.split("|"), strict=True):
        for match in re.finditer(r"#|\d+", part):
            name = kind if match[0] == "#" else _PREFIX.get(kind, kind) + match[0]
            columns.append((start + match.end() - 1, name))
        start += len(part) + 1
    return columns


def _registers(row: str, kinds: list[str], columns: list[Column]) -> Registers:
    marks = {name: row[place] for place, name in columns if name not in kinds and place < len(row)}
    live: dict[str, int] = {}
    for kind, part in zip(kinds, row.split("|"), strict=True):
        number = re.match(r"\s*(\d+)", part)
        live[kind] = int(number[1]) if number else 0
    return Registers(
        frozenset(name for name, mark in marks.items() if mark in _READS),
        frozenset(name for name, mark in marks.items() if mark in _WRITES),
        live,
    )
