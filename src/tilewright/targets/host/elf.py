"""Relocatable ELF64 objects, read as data: sections, symbols and relocations.

Formats: System V ABI, chapter 4 (object files).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tilewright.base.errors import CompileError

SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 1, 2, 4, 8
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
SHN_UNDEF, SHN_ABS, SHN_LORESERVE = 0, 0xFFF1, 0xFF00
ET_REL, _RELOCATABLE_64_LE = 1, b"\x7fELF\x02\x01"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_SEGMENT = struct.Struct("<IIQQQQQQ")


class Section(NamedTuple):
    """A section header with its name and bytes (empty for one that holds zeros only)."""

    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    align: int
    data: bytes


class Symbol(NamedTuple):
    """A symbol: its section's number and its offset in it."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """A place in section `section` that refers to symbol number `symbol`."""

    section: int
    offset: int
    type: int
    symbol: int
    addend: int


class Object(NamedTuple):
    """A parsed object; `machine` is the ELF number of its processor."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def parse(data: bytes) -> Object:
    """Read an object.

    Raises:
        CompileError: the bytes are not a whole relocatable ELF64 object.
    """
    try:
        return _parse(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CompileError("the host object is damaged", values={"bytes": len(data), "reason": error}) from error


def torn(data: bytes) -> str:
    """What shows that the end of a shared library is missing; nothing if it is whole, as far as its tables say."""
    try:
        header = _HEADER.unpack_from(data)
        segments, sections, segment_size, count, section_size, section_count = (
            header[i] for i in (5, 6, 9, 10, 11, 12)
        )
        ends = [sections + section_size * section_count, segments + segment_size * count]
        for number in range(count):
            segment = _SEGMENT.unpack_from(data, segments + number * segment_size)
            ends.append(segment[2] + segment[5])
    except struct.error:
        return "its header is cut off"
    return f"{max(ends) - len(data)} bytes are missing" if max(ends) > len(data) else ""


def _parse(data: bytes) -> Object:
    if data[: len(_RELOCATABLE_64_LE)] != _RELOCATABLE_64_LE:
        raise CompileError("the host object is not ELF64", values={"first bytes": data[:8].hex()})
    header = _HEADER.unpack_from(data)
    kind, machine, table, count, names = header[1], header[2], header[6], header[12], header[13]
    if kind != ET_REL:
        raise CompileError("the host object is not relocatable", values={"e_type": kind})
    rows = [_SECTION.unpack_from(data, table + index * _SECTION.size) for index in range(count)]
    strings = _bytes_of(data, rows[names])
    sections = tuple(_section(data, row, strings) for row in rows)
    return Object(machine, sections, _symbols(sections), tuple(_relocations(sections)))


def _bytes_of(data: bytes, row: tuple[int, ...]) -> bytes:
    start, size = row[4], row[5]
    if row[1] == SHT_NOBITS:
        return b""
    if start + size > len(data):
        raise IndexError("a section ends beyond the file")
    return data[start : start + size]


def _section(data: bytes, row: tuple[int, ...], strings: bytes) -> Section:
    name, kind, flags, _, _, size, link, info, align, _ = row
    return Section(_text(strings, name), kind, flags, size, link, info, max(align, 1), _bytes_of(data, row))


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    found: list[Symbol] = []
    for section in sections:
        if section.type == SHT_SYMTAB:
            strings = sections[section.link].data
            for name, _, _, index, value, _ in _SYMBOL.iter_unpack(section.data):
                found.append(Symbol(_text(strings, name), index, value))
    return tuple(found)


def _relocations(sections: tuple[Section, ...]) -> list[Relocation]:
    found: list[Relocation] = []
    for section in sections:
        if section.type == SHT_RELA and sections[section.info].flags & SHF_ALLOC:
            for offset, info, addend in _RELA.iter_unpack(section.data):
                found.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend))
    return found
