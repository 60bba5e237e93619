"""The line of Python that each line of the texts of stages `llvm`, `ptx` and `sass` comes from."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import Final, TypeVar

from tilewright.base.escaped_names import from_hex
from tilewright.targets.nvidia.backend.ptx_lines import Place, placed_lines
from tilewright.targets.nvidia.binary.cubin import line_table, ptx_line_table

T = TypeVar("T")

_NODE: Final = re.compile(r"^(!\d+) = (?:distinct )?!(\w+)\((.*)\)$", re.MULTILINE)
_FIELD: Final = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|([^,"()]+))')
_DEBUG: Final = re.compile(r"!dbg (!\d+)")
_OFFSET: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+\S")


def llvm_places(text: str) -> list[Place | None]:
    """Those of LLVM IR, from its debug metadata."""
    nodes = {name: _fields(content) for name, _, content in _NODE.findall(text)}
    return [_llvm_place(found[1], nodes) if (found := _DEBUG.search(line)) else None for line in text.splitlines()]


def _fields(content: str) -> dict[str, str]:
    return {name: quoted or plain.strip() for name, quoted, plain in _FIELD.findall(content)}


def _llvm_place(name: str, nodes: dict[str, dict[str, str]]) -> Place | None:
    node = nodes.get(name, {})
    line = int(node.get("line", "0"))
    while node and "file" not in node:
        node = nodes.get(node.get("scope", ""), {})
    file = nodes.get(node.get("file", ""), {})
    if not line or not file.get("filename"):
        return None
    folder = file.get("directory", "")
    return from_hex(f"{folder}/{file['filename']}" if folder else file["filename"]), line


def ptx_places(text: str) -> list[Place | None]:
    """Those of PTX, from its `.loc` directives."""
    return [place if line.startswith("\t") else None for _, line, place in placed_lines(text)]


def sass_places(text: str, cubin: bytes, kernel: str) -> tuple[list[Place | None], list[int | None]]:
    """Those of a kernel's machine code, and the line of PTX (from 1) of each of its lines.

    `cubin` is the same code assembled with line tables.
    """
    python = [(offset, (file, line)) for offset, file, line in sorted(line_table(cubin, kernel))]
    ptx = sorted(ptx_line_table(cubin, kernel))
    places: list[Place | None] = []
    lines: list[int | None] = []
    for offset in sass_offsets(text, kernel):
        places.append(_before(python, offset))
        lines.append(_before(ptx, offset))
    return places, lines


def sass_offsets(text: str, kernel: str) -> list[int | None]:
    """The offset in the kernel, in bytes, of the instruction on each line; None for lines without one."""
    offsets: list[int | None] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(".text."):
            inside = line.strip() == f".text.{kernel}:"
        found = _OFFSET.match(line) if inside else None
        offsets.append(int(found[1], 16) if found else None)
    return offsets


def _before(rows: Sequence[tuple[int, T]], offset: int | None) -> T | None:
    """What the last row at or before an offset says."""
    if offset is None:
        return None
    at = bisect.bisect_right(rows, offset, key=lambda row: row[0])
    return rows[at - 1][1] if at else None
