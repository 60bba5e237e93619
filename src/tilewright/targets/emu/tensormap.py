"""Tensor maps: the 128 bytes that describe a tensor to `cp.async.bulk.tensor`, in a format of our own.

The driver's format is not published, so a map made by `cuTensorMapEncodeTiled` is refused by name; the runtime
builds these instead. Fields follow the arguments of that function and of `cuTensorMapEncodeIm2col` (CUDA driver API,
"Tensor Map Object Management"). Layout, little endian:

    0  magic "TWTM"      4  type     5  rank - 1  6  interleave   7  swizzle
    8  base address (u64)           16  extents - 1 (5 x u32)    40  strides in bytes of modes 1 to 4 (4 x u64)
   72  box (5 x u16)     82  element strides (5 x u8)            87  fill (0 zeros, 1 NaN)
   88  mode (0 tiled, 1 im2col)     90  lower corner (3 x i16)   96  upper corner (3 x i16)

A map for im2col has its channels per pixel and pixels per column in place of the box.

An interleaved map is one of images whose channels lie in slices of 16 or 32 bytes (with two bytes a channel, NC/8HWC8
or NC/16HWC16). Measured on an H100: its modes are W, then H and D where the images have them, slices, N. Pixels of W
are a slice apart, the strides are those of the other modes; a copy takes one slice of channels, whatever the box says.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tilewright.base.errors import ArgumentError

MAGIC = b"TWTM"
SIZE = 128
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz")
WIDTHS = dict(zip(TYPES, (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4), strict=True))
REPLACED_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32ftz", "f64", "bf16", "tf32", "tf32ftz")
"""Element types by their number in `tensormap.replace` (PTX ISA 9.1, table 33), which is not the driver's."""
SWIZZLES = (16, 32, 64, 128)
"""Bytes of the swizzle span; 16 stands for none."""
MOST_BYTES = 228 << 10
"""Bytes of a box that the driver takes at most, the steps of all modes counted (tried with that of CUDA 13.0)."""
CORNERS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""By rank, the bound of the corners of an im2col bounding box (PTX ISA 9.1, 5.5.4.1)."""
INTEGERS = ("u8", "u16", "u32", "s32", "u64", "s64")
FIELDS = {
    "rank": (5, 1), "interleave_layout": (6, 1), "swizzle_mode": (7, 1), "global_address": (8, 8),
    "global_dim": (16, 4), "global_stride": (40, 8), "box_dim": (72, 2), "element_stride": (82, 1),
    "fill_mode": (87, 1), "elemtype": (4, 1),
}  # fmt: skip
"""The fields of `tensormap.replace`: where the first one lies, and the bytes of each."""
COUNTS = {"global_dim": 5, "global_stride": 4, "box_dim": 5, "element_stride": 5}
"""How many there are of the fields that have an ordinal."""


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves. Mode 0 is contiguous; sizes in elements, strides
    in bytes. `swizzle` is 16 (none), 32, 64 or 128 bytes; `fill_nan` fills what lies outside with NaN, not zero.

    For im2col, `box` is (channels per pixel, pixels per column), and `lower` and `upper` are the corners of the
    bounding box in the order of the modes (W, H, D), `upper` counted from the last element. `interleave` is 0, or the
    bytes of a slice of channels: 16 or 32."""

    type: str
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 16
    fill_nan: bool = False
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    interleave: int = 0

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def im2col(self) -> bool:
        """Whether the map is for im2col copies."""
        return bool(self.lower)

    @property
    def pixel_modes(self) -> tuple[int, ...]:
        """The modes of an im2col map that are W, H, D and N."""
        modes = tuple(range(self.rank))
        return (*modes[:-2], modes[-1]) if self.interleave else modes[1:]

    @property
    def channel_mode(self) -> int:
        """The mode of channels, or of slices of channels, of an im2col or interleaved map."""
        return self.rank - 2 if self.interleave else 0

    @property
    def last(self) -> tuple[int, ...]:
        """The greatest coordinates of an im2col bounding box."""
        return tuple(self.extents[m] - 1 + u for m, u in zip(self.pixel_modes, self.upper, strict=False))

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return WIDTHS[self.type]

    @property
    def unit(self) -> int:
        """Bytes that mode 0 counts: of an element, or of a slice of channels."""
        return self.interleave or self.width

    @property
    def all_strides(self) -> tuple[int, ...]:
        """Strides of all modes, in bytes."""
        return (self.unit, *self.strides)

    @property
    def steps(self) -> tuple[int, ...]:
        """The element strides that copies follow: that of mode 0 is ignored, except in an interleaved map."""
        return self.element_strides if self.interleave else (1, *self.element_strides[1:])

    @property
    def counts(self) -> tuple[int, ...]:
        """Units that a box yields along each mode; channels (or slices) and pixels of an im2col copy."""
        if self.im2col:
            return (1, self.box[1]) if self.interleave else self.box
        counts = tuple(-(-b // s) for b, s in zip(self.box, self.steps, strict=True))
        return (*counts[:-2], 1, counts[-1]) if self.interleave else counts

    @property
    def nbytes(self) -> int:
        """Bytes that one copy moves, those outside the tensor included."""
        return self.unit * prod(self.counts)

    @property
    def stored(self) -> TensorMap:
        """The map as stores follow it: they write whole 16 bytes along mode 0, and so beyond an extent that is no
        multiple of them (recorded on an H100 for tiles of u8; taken to hold for all)."""
        whole = -(-self.extents[0] * self.unit // 16) * 16 // self.unit
        return self if whole == self.extents[0] else replace(self, extents=(whole, *self.extents[1:]))

    @property
    def row(self) -> int:
        """Bytes of a box that lie together in shared memory, but for the swizzle: those of mode 0, or of channels. An
        interleaved box is one row."""
        return self.nbytes if self.interleave else self.counts[0] * self.width

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next in shared memory: a row narrower than the swizzle leaves a gap."""
        return -(-self.row // self.swizzle) * self.swizzle


def encode(
    type: str,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    element_strides: Sequence[int] | None = None,
    swizzle: int = 16,
    fill_nan: bool = False,
    interleave: int = 0,
) -> bytes:
    """The 128 bytes of a tensor map.

    Args:
        type: element type, one of `TYPES`.
        address: of the first element, a multiple of 16.
        extents: of the tensor, 1 to 5 modes, the contiguous one first.
        strides: of modes 1 and up, in bytes, multiples of 16 (one fewer than extents).
        box: elements that a copy spans along each mode, at most 256.
        element_strides: steps between the elements taken, that of mode 0 ignored; default 1.
        swizzle: 16 (none), 32, 64 or 128 bytes.
        fill_nan: fill what lies outside the tensor with NaN.
        interleave: 0 (none), or the bytes of a slice of channels, 16 or 32. The modes are then W, H and D (where the
            images have them), slices of channels, N; the step of mode 0 is followed, and a box has one slice.

    Raises:
        ArgumentError: the driver would refuse these arguments; the message says which.
    """
    steps = tuple(element_strides) if element_strides is not None else (1,) * len(extents)
    sizes = (tuple(extents), tuple(strides), tuple(box), steps)
    return pack(TensorMap(type, address, *sizes, swizzle, fill_nan, interleave=interleave))


def encode_for_driver(
    out: int, type: int, rank: int, address: int, extents: Any, strides: Any, box: Any, steps: Any, interleave: int,
    swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    """`encode` with the arguments of cuTensorMapEncodeTiled, as native code gives them: writes to address `out`."""
    made = encode(
        TYPES[type],
        address,
        extents[:rank],
        strides[: rank - 1],
        box[:rank],
        steps[:rank],
        SWIZZLES[swizzle],
        bool(fill),
        16 * interleave,
    )
    ctypes.memmove(out, made, SIZE)


def encode_im2col(
    type: str,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    element_strides: Sequence[int] | None = None,
    swizzle: int = 16,
    fill_nan: bool = False,
    interleave: int = 0,
) -> bytes:
    """The 128 bytes of a tensor map for im2col copies.

    Args:
        type: element type, one of `TYPES`.
        address: of the first element, a multiple of 16.
        extents: C, W, then H and D where the images have them, N: 3 to 5 modes. Of an interleaved map, W, H and D,
            slices of channels, N.
        strides: of modes 1 and up, in bytes, multiples of 16.
        lower: the bounding box's first corner, in the order W, H, D.
        upper: its last corner, counted from the last element: 0 is the image's end.
        channels: channels per pixel, at most 256; an interleaved copy takes one slice.
        pixels: pixels per column, at most 1024.
        element_strides: traversal strides, one for each mode; default 1.
        swizzle: 16 (none), 32, 64 or 128 bytes.
        fill_nan: fill what lies outside the tensor with NaN.
        interleave: 0 (none), or the bytes of a slice of channels, 16 or 32.

    Raises:
        ArgumentError: the driver would refuse these arguments; the message says which.
    """
    steps = tuple(element_strides) if element_strides is not None else (1,) * len(extents)
    if len(extents) not in CORNERS or not len(lower) == len(upper) == len(extents) - 2:
        raise ArgumentError("an im2col tensor map has 3 to 5 modes, and corners of two fewer",
                            values={"extents": tuple(extents), "corners": (tuple(lower), tuple(upper))})  # fmt: skip
    box, sizes = (channels, pixels), (tuple(extents), tuple(strides))
    corners = (tuple(lower), tuple(upper))
    return pack(TensorMap(type, address, *sizes, box, steps, swizzle, fill_nan, *corners, interleave))


def pack(made: TensorMap) -> bytes:
    """The bytes of a map; `ArgumentError` for one that the driver would refuse."""
    check(made)
    data = bytearray(SIZE)
    kind, swizzle = TYPES.index(made.type), SWIZZLES.index(made.swizzle)
    struct.pack_into("<4sBBBBQ", data, 0, MAGIC, kind, made.rank - 1, made.interleave // 16, swizzle, made.address)
    for mode in range(made.rank):
        struct.pack_into("<I", data, 16 + 4 * mode, made.extents[mode] - 1)
        struct.pack_into("<B", data, 82 + mode, made.element_strides[mode])
        if mode:
            struct.pack_into("<Q", data, 40 + 8 * (mode - 1), made.strides[mode - 1])
    struct.pack_into(f"<{len(made.box)}H", data, 72, *made.box)
    data[87], data[88] = made.fill_nan, made.im2col
    if made.im2col:
        struct.pack_into(f"<{len(made.lower)}h", data, 90, *made.lower)
        struct.pack_into(f"<{len(made.upper)}h", data, 96, *made.upper)
    return bytes(data)


def check(made: TensorMap) -> None:
    """`ArgumentError` for a tensor map beyond the limits that the driver puts on it."""
    if made.type not in TYPES:
        raise ArgumentError(f"tensor maps have no element type {made.type!r}", hint=f"one of {' '.join(TYPES)}")
    wanted = 2 if made.im2col else made.rank
    if not 1 <= made.rank <= 5 or len(made.strides) != made.rank - 1 or len(made.box) != wanted:
        raise ArgumentError("a tensor map has 1 to 5 modes, a box of as many and one stride fewer",
                            values={"extents": made.extents, "strides": made.strides, "box": made.box})  # fmt: skip
    for message, found in {**wrong_sizes(made), **wrong_box(made), **wrong_corners(made)}.items():
        if found:
            raise ArgumentError(f"tensor map: {message}", values={"map": made})


def wrong_sizes(made: TensorMap) -> dict[str, bool]:
    """What may be wrong with a map's tensor, and whether it is."""
    unit = 32 if made.interleave == 32 else 16
    return {
        "the interleave is 0 (none), 16 or 32": made.interleave not in (0, 16, 32),
        "an interleaved map has 3 to 5 modes": made.interleave > 0 and made.rank < 3,
        f"the address must be a multiple of {unit}": made.address % unit != 0,
        "extents lie between 1 and 2**32": not all(1 <= e <= 1 << 32 for e in made.extents),
        f"strides are multiples of {unit} below 2**40": not all(
            s % unit == 0 and 0 <= s < 1 << 40 for s in made.strides
        ),
        "integers are filled with zeros, not with NaN": made.fill_nan and made.type in INTEGERS,
    }


def wrong_box(made: TensorMap) -> dict[str, bool]:
    """What may be wrong with a map's box, and whether it is."""
    inner = made.box[0] * made.width
    limits = (256, 1024) if made.im2col else (256,) * made.rank
    sizes = (
        "channels lie between 1 and 256, pixels between 1 and 1024"
        if made.im2col
        else "box sizes lie between 1 and 256"
    )
    return {
        sizes: not all(1 <= b <= limit for b, limit in zip(made.box, limits, strict=True)),
        "element strides lie between 1 and 8": not all(1 <= s <= 8 for s in made.element_strides),
        "the swizzle is 16 (none), 32, 64 or 128": made.swizzle not in SWIZZLES,
        "the box must have a multiple of 16 bytes along mode 0": inner % 16 != 0,
        "the box must fit the swizzle along mode 0": not made.interleave and 16 < made.swizzle < inner,
        f"the box must have no more than {MOST_BYTES} bytes": box_bytes(made) > MOST_BYTES,
    }


def box_bytes(made: TensorMap) -> int:
    """Bytes of a box as the driver counts them: with the step of mode 0, and with all channels."""
    steps = (1, 1) if made.im2col else made.element_strides
    return made.width * prod(-(-b // max(s, 1)) for b, s in zip(made.box, steps, strict=True))


def wrong_corners(made: TensorMap) -> dict[str, bool]:
    """What may be wrong with the bounding box of an im2col map, and whether it is."""
    bound = CORNERS.get(made.rank, 0)
    return {
        f"corners lie between {-bound} and {bound - 1}": not all(
            -bound <= x < bound for x in (*made.lower, *made.upper)
        ),
        "the bounding box is empty": any(low > high for low, high in zip(made.lower, made.last, strict=False)),
    }


def decode(data: bytes) -> TensorMap | None:
    """The tensor map in 128 bytes, None if they are in another format. Its limits are those of `check`, not checked."""
    if len(data) != SIZE or data[:4] != MAGIC:
        return None
    _, kind, less, interleave, swizzle, address = struct.unpack_from("<4sBBBBQ", data, 0)
    rank, im2col = less + 1, data[88] == 1
    if kind >= len(TYPES) or rank > 5 or swizzle >= len(SWIZZLES) or (im2col and rank not in CORNERS):
        return None
    extents = tuple(e + 1 for e in struct.unpack_from(f"<{rank}I", data, 16))
    strides = struct.unpack_from(f"<{rank - 1}Q", data, 40) if rank > 1 else ()
    box = struct.unpack_from(f"<{2 if im2col else rank}H", data, 72)
    steps = struct.unpack_from(f"<{rank}B", data, 82)
    lower, upper = (struct.unpack_from(f"<{rank - 2}h", data, at) if im2col else () for at in (90, 96))
    return TensorMap(
        TYPES[kind],
        address,
        extents,
        strides,
        box,
        steps,
        SWIZZLES[swizzle],
        bool(data[87]),
        lower,
        upper,
        16 * interleave,
    )


def field_bytes(field: str, value: int) -> bytes:
    """What `tensormap.replace` writes for a new value of a field of `FIELDS`; `ArgumentError` for one out of range."""
    size = FIELDS[field][1]
    if field == "elemtype":
        if not 0 <= value < len(REPLACED_TYPES):
            raise ArgumentError("tensormap.replace.elemtype takes 0 to 12", values={"given": value},
                                hint="13 to 15 are types of sm_100")  # fmt: skip
        value = TYPES.index(REPLACED_TYPES[value])
    value = value - 1 if field == "global_dim" else value
    most = {"rank": 4, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}.get(field, (1 << 8 * size) - 1)
    if not 0 <= value <= most:
        raise ArgumentError(f"tensormap.replace.{field} got a value out of range", values={"value": value})
    return value.to_bytes(size, "little")
