"""Line tables of a cubin: which source line each machine instruction comes from.

Format: DWARF version 2 to 4, section 6.2, "Line Number Information". `.debug_line` maps instructions to the files
of the PTX text's `.loc` directives, `.nv_debug_line_sass` to lines of the PTX text itself. NVIDIA adds extended
opcodes for inlined calls; they are skipped.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.base.escaped_names import from_cubin
from tilewright.targets.nvidia.binary.elf import Relocation, string_at

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_NEWEST_VERSION: Final = 4


@dataclass(frozen=True)
class Row:
    """One row: from byte `address` of section number `section` on, the code is that of `line` in `file`.

    `last` marks the end of a sequence: the first byte past its code.
    """

    section: int
    address: int
    file: str
    line: int
    last: bool = False


class _Reader:
    """Numbers from bytes, front to back."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def integer(self, size: int, signed: bool = False) -> int:
        if self.at + size > len(self.data):
            raise CompileError("damaged line table: it ends inside a number", values={"byte": self.at})
        value = int.from_bytes(self.data[self.at : self.at + size], "little", signed=signed)
        self.at += size
        return value

    def uleb(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.integer(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def string(self) -> str:
        text = string_at(self.data, self.at)
        end = self.data.find(b"\0", self.at)
        self.at = end + 1 if end >= 0 else len(self.data)
        return text


@dataclass
class _Header:
    """The constants of one line program."""

    end: int
    program: int
    minimum_length: int
    line_base: int
    line_range: int
    operand_counts: list[int]
    files: list[str]


@dataclass
class _State:
    """The registers of the line machine."""

    section: int = 0
    address: int = 0
    file: int = 1
    line: int = 1
    rows: list[Row] = field(default_factory=list)

    def emit(self, files: list[str], last: bool = False) -> None:
        name = files[self.file] if 0 <= self.file < len(files) else "?"
        self.rows.append(Row(self.section, self.address, name, self.line, last))

    def restart(self) -> None:
        self.section, self.address, self.file, self.line = 0, 0, 1, 1


def read_rows(data: bytes, relocations: Iterator[Relocation]) -> list[Row]:
    """All rows of a line section, in file order.

    Args:
        data: the section's bytes.
        relocations: those of the section: they say which code section each sequence is about.

    Raises:
        CompileError: the section is damaged or of an unknown version.
    """
    places = {relocation.offset: relocation for relocation in relocations}
    rows: list[Row] = []
    at = 0
    while at + 4 < len(data):
        header = _read_header(data, at)
        rows += _run(data, header, places)
        at = header.end
    return rows


def _read_header(data: bytes, start: int) -> _Header:
    reader = _Reader(data, start)
    length = reader.integer(4)
    end = reader.at + length
    version = reader.integer(2)
    if not 2 <= version <= _NEWEST_VERSION or end > len(data):
        raise CompileError("unknown kind of line table", values={"DWARF version": version, "bytes": len(data)})
    header_length = reader.integer(4)
    program = reader.at + header_length
    minimum_length = reader.integer(1)
    reader.at += 2 if version >= 4 else 1  # operations per instruction (from 4 on), default_is_stmt
    line_base, line_range, opcode_base = reader.integer(1, signed=True), reader.integer(1), reader.integer(1)
    if line_range == 0:
        raise CompileError("damaged line table: a line range of 0")
    counts = [0, *(reader.integer(1) for _ in range(opcode_base - 1))]
    return _Header(end, program, minimum_length, line_base, line_range, counts, _read_files(reader))


def _read_files(reader: _Reader) -> list[str]:
    """File names by number; number 0 is unused."""
    folders = [""]
    while folder := reader.string():
        folders.append(folder)
    files = ["?"]
    while name := reader.string():
        number = reader.uleb()
        reader.uleb()  # time
        reader.uleb()  # size
        files.append(from_cubin(posixpath.join(folders[number] if number < len(folders) else "", name)))
    return files


def _run(data: bytes, header: _Header, places: dict[int, Relocation]) -> list[Row]:
    reader = _Reader(data, header.program)
    state = _State()
    opcode_base = len(header.operand_counts)
    while reader.at < header.end:
        opcode = reader.integer(1)
        if opcode >= opcode_base:
            _special(opcode - opcode_base, header, state)
        elif opcode == 0:
            _extended(reader, header, state, places)
        else:
            _standard(opcode, reader, header, state)
    return state.rows


def _special(operation: int, header: _Header, state: _State) -> None:
    state.address += operation // header.line_range * header.minimum_length
    state.line += header.line_base + operation % header.line_range
    state.emit(header.files)


def _extended(reader: _Reader, header: _Header, state: _State, places: dict[int, Relocation]) -> None:
    length = reader.uleb()
    end = reader.at + length
    opcode = reader.integer(1) if length else 0
    if opcode == _END_SEQUENCE:
        state.emit(header.files, last=True)
        state.restart()
    elif opcode == _SET_ADDRESS:
        place = places.get(reader.at)
        address = reader.integer(length - 1)
        state.section = place.symbol.section if place is not None else 0
        # The function's own offset in its section counts too; REL keeps the addend in place.
        state.address = address + (place.addend + place.symbol.value if place is not None else 0)
    reader.at = end


def _standard(opcode: int, reader: _Reader, header: _Header, state: _State) -> None:
    if opcode == _COPY:
        state.emit(header.files)
    elif opcode == _ADVANCE_PC:
        state.address += reader.uleb() * header.minimum_length
    elif opcode == _ADVANCE_LINE:
        state.line += reader.sleb()
    elif opcode == _SET_FILE:
        state.file = reader.uleb()
    elif opcode == _CONST_ADD_PC:
        last = 255 - len(header.operand_counts)
        state.address += last // header.line_range * header.minimum_length
    elif opcode == _FIXED_ADVANCE_PC:
        state.address += reader.integer(2)
    else:
        for _ in range(header.operand_counts[opcode]):
            reader.uleb()
