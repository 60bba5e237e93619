"""A reader of 64-bit little-endian ELF files, as much as a cubin needs.

Layout: System V ABI, "Object Files", ELF-64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError

EM_CUDA: Final = 190
SHT_SYMTAB: Final = 2
SHT_RELA: Final = 4
SHT_NOBITS: Final = 8
SHT_REL: Final = 9

DAMAGE: Final = (struct.error, IndexError, ValueError, OverflowError)
"""What reading a file with wrong numbers in it raises."""

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_REL: Final = struct.Struct("<QQ")
_RELA: Final = struct.Struct("<QQq")


@dataclass(frozen=True)
class Section:
    """One section: header fields and contents (empty for sections without bits, whose `size` still counts)."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    entry_size: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """One symbol: `kind` is the ELF type (2 a function, 1 an object, 3 a section), `section` an index."""

    name: str
    kind: int
    bind: int
    other: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """A place in a section that the loader fills in with a symbol's address plus `addend`."""

    offset: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True)
class Elf:
    """A file taken apart."""

    flags: int
    abi_version: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def relocations(self, target: Section) -> Iterator[Relocation]:
        """The relocations that apply to a section."""
        for section in self.sections:
            if section.type not in (SHT_REL, SHT_RELA) or section.info != target.index:
                continue
            layout = _RELA if section.type == SHT_RELA else _REL
            for entry in layout.iter_unpack(section.data[: len(section.data) // layout.size * layout.size]):
                symbol = entry[1] >> 32
                if symbol < len(self.symbols):
                    yield Relocation(entry[0], self.symbols[symbol], entry[2] if len(entry) == 3 else 0)


def string_at(table: bytes, offset: int) -> str:
    """The zero-terminated string at an offset of a string table."""
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode(errors="replace")


def read_elf(data: bytes) -> Elf:
    """Take a cubin's ELF file apart.

    Raises:
        CompileError: the bytes are not a cubin, or are cut short.
    """
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise CompileError("not a cubin: no 64-bit ELF header", values={"bytes": len(data), "start": data[:8].hex()})
    _, _, machine, _, _, _, table, flags, _, _, _, entry_size, count, names = _HEADER.unpack_from(data)
    if machine != EM_CUDA:
        raise CompileError("not a cubin: ELF for another machine", values={"machine": machine, "CUDA": EM_CUDA})
    try:
        sections = _sections(data, table, entry_size, count, names)
        return Elf(flags, data[8], sections, _symbols(sections))
    except DAMAGE as error:
        raise CompileError(f"damaged cubin: {error}", values={"bytes": len(data)}) from error


def _sections(data: bytes, table: int, entry_size: int, count: int, names: int) -> tuple[Section, ...]:
    headers = [_SECTION.unpack_from(data, table + i * entry_size) for i in range(count)]
    if not headers:
        return ()
    strings = data[headers[names][4] : headers[names][4] + headers[names][5]]
    return tuple(_section(data, i, header, strings) for i, header in enumerate(headers))


def _section(data: bytes, index: int, header: tuple[int, ...], strings: bytes) -> Section:
    name, kind, flags, _, offset, size, link, info, _, entry_size = header
    if kind != SHT_NOBITS and offset + size > len(data):
        raise IndexError(f"section {index} ends at byte {offset + size}")
    contents = b"" if kind == SHT_NOBITS else data[offset : offset + size]
    return Section(index, string_at(strings, name), kind, flags, size, link, info, entry_size, contents)


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    table = next((section for section in sections if section.type == SHT_SYMTAB), None)
    if table is None:
        return ()
    strings = sections[table.link].data
    return tuple(
        Symbol(string_at(strings, name), info & 15, info >> 4, other, section, value, size)
        for name, info, other, section, value, size in _SYMBOL.iter_unpack(table.data)
    )
