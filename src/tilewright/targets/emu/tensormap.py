"""Tensor maps: the 128 bytes that describe a tensor to `cp.async.bulk.tensor`, in a format of our own.

The driver's format is not published, so a map made by `cuTensorMapEncodeTiled` is refused by name; the runtime
builds these instead. Fields follow the arguments of that function (CUDA driver API, "Tensor Map Object
Management"). Layout, little endian:

    0  magic "TWTM"      4  type     5  rank      6  interleave   7  swizzle
    8  base address (u64)           16  extents - 1 (5 x u32)    40  strides in bytes of modes 1 to 4 (4 x u64)
   72  box (5 x u16)     82  element strides (5 x u8)            87  fill (0 zeros, 1 NaN)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.base.errors import ArgumentError

MAGIC = b"TWTM"
SIZE = 128
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz")
WIDTHS = dict(zip(TYPES, (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4), strict=True))
SWIZZLES = (16, 32, 64, 128)
"""Bytes of the swizzle span; 16 stands for none."""


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves. Mode 0 is contiguous; sizes in elements, strides
    in bytes. `swizzle` is 16 (none), 32, 64 or 128 bytes; `fill_nan` fills what lies outside with NaN, not zero."""

    type: str
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 16
    fill_nan: bool = False

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return WIDTHS[self.type]

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that a box yields along each mode."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.element_strides, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes that one copy moves, those outside the tensor included."""
        total = self.width
        for count in self.counts:
            total *= count
        return total


def encode(
    type: str,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    element_strides: Sequence[int] | None = None,
    swizzle: int = 16,
    fill_nan: bool = False,
) -> bytes:
    """The 128 bytes of a tensor map.

    Args:
        type: element type, one of `TYPES`.
        address: of the first element, a multiple of 16.
        extents: of the tensor, 1 to 5 modes, the contiguous one first.
        strides: of modes 1 and up, in bytes, multiples of 16 (one fewer than extents).
        box: elements that a copy spans along each mode, at most 256.
        element_strides: steps between the elements taken; default 1.
        swizzle: 16 (none), 32, 64 or 128 bytes.
        fill_nan: fill what lies outside the tensor with NaN.

    Raises:
        ArgumentError: the driver would refuse these arguments; the message says which.
    """
    steps = tuple(element_strides) if element_strides is not None else (1,) * len(extents)
    made = TensorMap(type, address, tuple(extents), tuple(strides), tuple(box), steps, swizzle, fill_nan)
    check(made)
    data = bytearray(SIZE)
    struct.pack_into("<4sBBBBQ", data, 0, MAGIC, TYPES.index(type), made.rank, 0, SWIZZLES.index(swizzle), address)
    for mode in range(made.rank):
        struct.pack_into("<I", data, 16 + 4 * mode, made.extents[mode] - 1)
        struct.pack_into("<H", data, 72 + 2 * mode, made.box[mode])
        struct.pack_into("<B", data, 82 + mode, made.element_strides[mode])
        if mode:
            struct.pack_into("<Q", data, 40 + 8 * (mode - 1), made.strides[mode - 1])
    data[87] = fill_nan
    return bytes(data)


def check(made: TensorMap) -> None:
    """The limits that the driver puts on a tensor map."""
    if made.type not in TYPES:
        raise ArgumentError(f"tensor maps have no element type {made.type!r}", hint=f"one of {' '.join(TYPES)}")
    if not 1 <= made.rank <= 5 or len(made.strides) != made.rank - 1 or len(made.box) != made.rank:
        raise ArgumentError("a tensor map has 1 to 5 modes, a box of as many and one stride fewer",
                            values={"extents": made.extents, "strides": made.strides, "box": made.box})  # fmt: skip
    wrong = {
        "the address must be a multiple of 16": made.address % 16 != 0,
        "extents lie between 1 and 2**32": not all(1 <= e <= 1 << 32 for e in made.extents),
        "strides are multiples of 16 below 2**40": not all(s % 16 == 0 and 0 <= s < 1 << 40 for s in made.strides),
        "box sizes lie between 1 and 256": not all(1 <= b <= 256 for b in made.box),
        "element strides lie between 1 and 8": not all(1 <= s <= 8 for s in made.element_strides),
        "the swizzle is 16 (none), 32, 64 or 128": made.swizzle not in SWIZZLES,
        "the box must have a multiple of 16 bytes along mode 0": made.box[0] * made.width % 16 != 0,
        "the box must fit the swizzle along mode 0": made.swizzle > 16 and made.box[0] * made.width > made.swizzle,
    }
    for message, found in wrong.items():
        if found:
            raise ArgumentError(f"tensor map: {message}", values={"map": made})


def decode(data: bytes) -> TensorMap | None:
    """The tensor map in 128 bytes, None if they are in another format."""
    if len(data) != SIZE or data[:4] != MAGIC:
        return None
    _, kind, rank, _, swizzle, address = struct.unpack_from("<4sBBBBQ", data, 0)
    if kind >= len(TYPES) or not 1 <= rank <= 5 or swizzle >= len(SWIZZLES):
        return None
    extents = tuple(e + 1 for e in struct.unpack_from(f"<{rank}I", data, 16))
    strides = struct.unpack_from(f"<{rank - 1}Q", data, 40) if rank > 1 else ()
    box = struct.unpack_from(f"<{rank}H", data, 72)
    steps = struct.unpack_from(f"<{rank}B", data, 82)
    return TensorMap(TYPES[kind], address, extents, strides, box, steps, SWIZZLES[swizzle], bool(data[87]))
