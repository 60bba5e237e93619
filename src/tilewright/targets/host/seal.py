r"""The checksum at the end of an exported object: what follows the sections of an ELF file, linkers pass over.

    8 bytes  "TWSEAL1\n"
    8 bytes  the size of the object before them
    4 bytes  CRC-32 (ISO 3309) of the object, the text and the size
    4 bytes  0

All numbers are little-endian. `cute/export/runtime/object.c` reads it too.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

MARK: Final = b"TWSEAL1\n"
SIZE: Final = 24


def sealed(data: bytes) -> bytes:
    """The object with its checksum."""
    body = data + MARK + struct.pack("<Q", len(data))
    return body + struct.pack("<II", zlib.crc32(body), 0)


def is_sealed(data: bytes) -> bool:
    """Whether a checksum stands at the end, right or wrong."""
    return data[-SIZE:].startswith(MARK) and len(data) >= SIZE


def fault(data: bytes) -> str:
    """What is wrong with an object by its checksum; nothing if it is as it was written."""
    if not is_sealed(data):
        return "it does not end with its checksum"
    return "" if sealed(data[:-SIZE]) == data else "its checksum does not fit"
