"""Relocations of the two host processors, as tables: number → where it points and how it is written.

Sources: System V ABI, AMD64 supplement, table 4.9; ELF for the Arm 64-bit Architecture, sections 5.7.4 to 5.7.12.
In the formulas S is the symbol's address, A the addend, P the place, G the address of the symbol's GOT slot,
L the address of its stub (the symbol itself when it is near).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tilewright.base.errors import CompileError

EM_X86_64, EM_AARCH64 = 62, 183

Via = Literal["symbol", "stub", "got"]
Write = Callable[[bytearray, int, int, int], None]


@dataclass(frozen=True)
class Rule:
    """One relocation: what it refers to (`via`) and `write(memory, offset, target, place)`, target = S|L|G + A."""

    name: str
    via: Via
    write: Write


def _fits(value: int, bits: int, signed: bool = True) -> bool:
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return low <= value < high


def _require(value: int, bits: int, signed: bool = True) -> int:
    if not _fits(value, bits, signed):
        raise CompileError(f"a relocation of the host object does not reach: {value:#x} in {bits} bits")
    return value


def _absolute64(memory: bytearray, offset: int, target: int, _: int) -> None:
    struct.pack_into("<Q", memory, offset, target & 0xFFFFFFFFFFFFFFFF)


def _relative64(memory: bytearray, offset: int, target: int, place: int) -> None:
    struct.pack_into("<q", memory, offset, target - place)


def _absolute32(memory: bytearray, offset: int, target: int, _: int) -> None:
    struct.pack_into("<I", memory, offset, _require(target, 32, signed=False))


def _absolute32_signed(memory: bytearray, offset: int, target: int, _: int) -> None:
    struct.pack_into("<i", memory, offset, _require(target, 32))


def _relative32(memory: bytearray, offset: int, target: int, place: int) -> None:
    struct.pack_into("<i", memory, offset, _require(target - place, 32))


def _patch(memory: bytearray, offset: int, keep: int, bits: int) -> None:
    (word,) = struct.unpack_from("<I", memory, offset)
    struct.pack_into("<I", memory, offset, (word & keep) | bits)


def _branch26(memory: bytearray, offset: int, target: int, place: int) -> None:
    _patch(memory, offset, 0xFC000000, (_require(target - place, 28) >> 2) & 0x03FFFFFF)


def _page21(memory: bytearray, offset: int, target: int, place: int) -> None:
    pages = _require((target & ~0xFFF) - (place & ~0xFFF), 33) >> 12
    _patch(memory, offset, 0x9F00001F, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _low12(scale: int) -> Write:
    """The low 12 bits of the target, in units of 2**scale bytes, as the immediate of ADD, LDR or STR."""

    def write(memory: bytearray, offset: int, target: int, _: int) -> None:
        _patch(memory, offset, 0xFFC003FF, ((target & 0xFFF) >> scale) << 10)

    return write


RULES: dict[int, dict[int, Rule]] = {
    EM_X86_64: {
        1: Rule("R_X86_64_64", "symbol", _absolute64),  # S + A
        2: Rule("R_X86_64_PC32", "symbol", _relative32),  # S + A - P
        4: Rule("R_X86_64_PLT32", "stub", _relative32),  # L + A - P
        9: Rule("R_X86_64_GOTPCREL", "got", _relative32),  # G + A - P
        10: Rule("R_X86_64_32", "symbol", _absolute32),
        11: Rule("R_X86_64_32S", "symbol", _absolute32_signed),
        24: Rule("R_X86_64_PC64", "symbol", _relative64),
        41: Rule("R_X86_64_GOTPCRELX", "got", _relative32),
        42: Rule("R_X86_64_REX_GOTPCRELX", "got", _relative32),
    },
    EM_AARCH64: {
        257: Rule("R_AARCH64_ABS64", "symbol", _absolute64),
        260: Rule("R_AARCH64_PREL64", "symbol", _relative64),
        261: Rule("R_AARCH64_PREL32", "symbol", _relative32),
        275: Rule("R_AARCH64_ADR_PREL_PG_HI21", "symbol", _page21),  # Page(S + A) - Page(P)
        277: Rule("R_AARCH64_ADD_ABS_LO12_NC", "symbol", _low12(0)),
        278: Rule("R_AARCH64_LDST8_ABS_LO12_NC", "symbol", _low12(0)),
        282: Rule("R_AARCH64_JUMP26", "stub", _branch26),
        283: Rule("R_AARCH64_CALL26", "stub", _branch26),
        284: Rule("R_AARCH64_LDST16_ABS_LO12_NC", "symbol", _low12(1)),
        285: Rule("R_AARCH64_LDST32_ABS_LO12_NC", "symbol", _low12(2)),
        286: Rule("R_AARCH64_LDST64_ABS_LO12_NC", "symbol", _low12(3)),
        299: Rule("R_AARCH64_LDST128_ABS_LO12_NC", "symbol", _low12(4)),
        311: Rule("R_AARCH64_ADR_GOT_PAGE", "got", _page21),  # Page(G) - Page(P)
        312: Rule("R_AARCH64_LD64_GOT_LO12_NC", "got", _low12(3)),
    },
}

STUB_SIZE = 16
"""Bytes of a stub: an indirect jump followed by the address it takes."""

_STUB_CODE = {
    EM_X86_64: bytes.fromhex("ff2502000000 0f0b"),  # jmp *8(%rip); ud2
    EM_AARCH64: bytes.fromhex("50000058 00021fd6"),  # ldr x16, #8; br x16
}


def stub(machine: int, target: int) -> bytes:
    """Code that jumps to `target`, anywhere in memory."""
    return _STUB_CODE[machine] + struct.pack("<Q", target)
