"""The attributes that ptxas leaves in `.nv.info` sections of a cubin.

Each is a format byte, a number, and two bytes of value, or with format 4 the length of the bytes that follow. The
numbers are those which `nvdisasm` prints as EIATTR names for the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_THREADS: Final = 0x05
PARAM_CBANK: Final = 0x0A
REQNTID: Final = 0x10
FRAME_SIZE: Final = 0x11
MIN_STACK_SIZE: Final = 0x12
KPARAM_INFO: Final = 0x17
CBANK_PARAM_SIZE: Final = 0x19
REGCOUNT: Final = 0x2F
CTA_PER_CLUSTER: Final = 0x3D
MAX_CLUSTER_RANK: Final = 0x3F
NUM_BARRIERS: Final = 0x4C
ANNOTATIONS: Final = 0x55

SPILL_ANNOTATION: Final = 1
"""The kind of annotation that marks an instruction as a register spill or its reload."""

_SIZED: Final = 4
_PARAMETER_SIZE_SHIFT: Final = 18


@dataclass(frozen=True)
class Attribute:
    """One attribute: the two bytes of value for the short formats, else the `payload`."""

    number: int
    value: int
    payload: bytes

    def words(self) -> tuple[int, ...]:
        """The payload as 32-bit numbers; bytes that fill no whole word are dropped."""
        count = len(self.payload) // 4
        return struct.unpack_from(f"<{count}I", self.payload)


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: its place in the parameter block, in bytes."""

    index: int
    offset: int
    size: int


def read_attributes(data: bytes) -> Iterator[Attribute]:
    """The attributes of one section, in order; a cut-off one at the end is dropped."""
    at = 0
    while at + 4 <= len(data):
        kind, number, value = struct.unpack_from("<BBH", data, at)
        at += 4
        payload = data[at : at + value] if kind == _SIZED else b""
        at += len(payload)
        yield Attribute(number, value, payload)


def read_parameter(attribute: Attribute) -> Parameter:
    """The parameter that a KPARAM_INFO attribute describes."""
    _, ordinal, offset, packed = struct.unpack_from("<IHHI", attribute.payload)
    return Parameter(ordinal, offset, packed >> _PARAMETER_SIZE_SHIFT)
