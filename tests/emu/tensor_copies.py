"""What the rows of kernels with tensor maps say: the maps, and what each block copies.

`scripts/record_emu_reference.py` makes the maps with the driver, the comparison with `targets.emu.tensormap`; both from
here. Nothing is needed but the standard library and NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz")
"""Element types by their numbers in CUtensorMapDataType (CUDA driver API)."""
WIDTHS = dict(zip(TYPES, (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4), strict=True))
SWIZZLES = (16, 32, 64, 128)
"""Bytes of the span by number in CUtensorMapSwizzle; 16 for none."""
OPERATIONS = ("", "add", "min", "max", "inc", "dec", "and", "or", "xor")
"""Of a tensor store, by the number that the kernels of tensors.ptx take."""
REDUCTIONS = (
    *(f"{op}.{kind}" for op in ("and", "or", "xor") for kind in ("b32", "b64")),
    *(f"{op}.{kind}" for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64", "f16", "bf16")),
    *(f"add.{kind}" for kind in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")),
    "inc.u32", "dec.u32",
)  # fmt: skip
"""Of a bulk reduction, by the number that the kernels of bulk_reductions.ptx take."""
FIELDS = 16
"""Words for each block: five coordinates, three im2col offsets, then those of `BYTES` and up."""
BYTES, PLACE, ROOM, MODE, OPERATION, MASK = range(8, 14)
"""Bytes that arrive at the block's barrier, where the box lies in shared memory, how much of that the block copies in
or out, rank (8 more for im2col, 16 more for multicast), operation, and the blocks of the cluster that it copies to."""


@dataclass(frozen=True)
class Map:
    """The arguments of cuTensorMapEncodeTiled, or cuTensorMapEncodeIm2col where there are corners.

    `of` is the tensor's memory: an input by its number, or "out". Strides are in bytes, by default those of a compact
    tensor. For im2col `box` is (channels per pixel, pixels per column), and corners are in the order of the modes.
    """

    type: str
    extents: tuple[int, ...]
    box: tuple[int, ...]
    of: int | str = 0
    strides: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    swizzle: int = 16
    nan: bool = False
    interleave: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """Modes of the tensor."""
        return len(self.extents)

    @property
    def all_strides(self) -> tuple[int, ...]:
        """Strides of modes 1 and up, in bytes."""
        width = WIDTHS[self.type]
        return self.strides or tuple(width * prod(self.extents[:mode]) for mode in range(1, self.rank))

    @property
    def all_steps(self) -> tuple[int, ...]:
        """Element strides of all modes."""
        return self.steps or (1,) * self.rank

    @property
    def nbytes(self) -> int:
        """Bytes of a box. An interleaved box has one slice of channels, and its step of mode 0 counts."""
        if self.lower:
            pixel = self.interleave or self.box[0] * WIDTHS[self.type]
            return pixel * self.box[1]
        counts = [-(-size // step) for size, step in zip(self.box, self.all_steps, strict=True)]
        if self.interleave:
            return prod(counts) // counts[-2] * self.interleave
        return self.box[0] * prod(counts[1:]) * WIDTHS[self.type]


def map_of(row: dict[str, Any]) -> Map:
    """A map from its entry in a row."""
    return Map(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})


def table(kernel: Any) -> np.ndarray[Any, Any]:
    """The words that the blocks of a kernel read, int32 (blocks x `FIELDS`), flat."""
    words = np.zeros((kernel.grid, FIELDS), np.int32)
    made = kernel.maps[0] if kernel.maps else None
    size, dtype = kernel.out[1], {"u16": 2, "u64": 8}.get(kernel.out[0], 4)
    words[:, ROOM] = kernel.room or kernel.block * size * dtype
    words[:, PLACE] = kernel.place
    words[:, MASK] = kernel.masks or 0
    if made is None:
        words[:, OPERATION] = REDUCTIONS.index(kernel.op)
        return words.reshape(-1)
    words[:, MODE] = made.rank + (8 if made.lower else 0) + (16 if kernel.masks else 0)
    words[:, OPERATION] = OPERATIONS.index(kernel.op)
    words[:, BYTES] = made.nbytes
    for block, place in enumerate(kernel.at):
        words[block, : made.rank] = place[: made.rank]
        words[block, 5 : 5 + len(place) - made.rank] = place[made.rank :]
    if kernel.masks:
        words[:, BYTES] = [made.nbytes * copies for copies in _arrivals(kernel.masks, kernel.cluster)]
    return words.reshape(-1)


def _arrivals(masks: Sequence[int], cluster: int) -> list[int]:
    """How many multicast copies arrive at each block."""
    blocks = range(len(masks))
    groups = [masks[block // cluster * cluster :][:cluster] for block in blocks]
    return [sum(mask >> block % cluster & 1 for mask in group) for block, group in zip(blocks, groups, strict=True)]
