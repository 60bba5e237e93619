"""The boxes of tensor copies: their bytes in global memory, what fills the rest, and reductions into them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.numerics.formats import OOB_NAN
from tilewright.targets.emu.numerics.im2col import pixels
from tilewright.targets.emu.rules.atomics import combine
from tilewright.targets.emu.tensormap import TensorMap

TF32_NAN = 0x7FFFE000
COMPUTED_AS = {"f32ftz": "f32", "tf32": "f32", "tf32ftz": "f32"}
"""The types in which reductions of these tensors are computed."""


class Part(NamedTuple):
    """The part of a box that lies in its tensor: its bytes in global memory (a view, or `data` at `index`), and where
    that part is in the box; modes outermost first."""

    data: Array
    index: Any
    box: Any


def box_part(S: Any, site: int, made: TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """The part of a box inside the tensor, None if there is none."""
    return (column_part if made.im2col else tile_part)(S, site, made, start, lane, write)


def tile_part(S: Any, site: int, made: TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """A tile's part: a strided view of global memory, and slices of the box."""
    modes = zip(start, made.extents, made.counts, made.steps, made.all_strides, strict=True)
    offset, shape, steps, slices = 0, [], [], []
    for x, extent, count, step, stride in modes:
        first = -(-max(-x, 0) // step)
        last = min(count, -(-(extent - x) // step)) if extent > x else first
        last = max(last, first)
        offset += (x + first * step) * stride
        shape.append(last - first)
        steps.append(step * stride)
        slices.append(slice(first, last))
    if 0 in shape:
        return None
    last_byte = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) + made.unit
    data = tensor_bytes(S, site, made, offset, last_byte, lane, write)
    view = np.lib.stride_tricks.as_strided(data, (*shape[::-1], made.unit), (*steps[::-1], 1), writeable=write)
    return Part(view, ..., tuple(slices[::-1]))


def column_part(S: Any, site: int, made: TensorMap, start: list[int], lane: int, write: bool) -> Part | None:
    """A column's part: pixels of global memory by index, and the numbers of these pixels in the column."""
    modes, channel = made.pixel_modes, made.channel_mode
    base, offsets = [start[m] for m in modes], start[made.rank :]
    places = pixels(base, made.lower, made.last, [made.steps[m] for m in modes], offsets, made.box[1])
    inside = np.flatnonzero(((places >= 0) & (places < [made.extents[m] for m in modes])).all(axis=1))
    x, extent = start[channel], made.extents[channel]
    first, end = max(x, 0), min(x + made.counts[0], extent)
    if not len(inside) or first >= end:
        return None
    strides = np.array([made.all_strides[m] for m in modes], np.int64)
    rows = places[inside] @ strides + first * made.all_strides[channel]
    size = (end - first) * made.unit
    low = int(rows.min())
    data = tensor_bytes(S, site, made, low, int(rows.max()) + size, lane, write)
    index = (rows - low)[:, None] + np.arange(size)
    return Part(data, index.reshape(len(rows), end - first, made.unit), (inside, slice(first - x, end - x)))


def tensor_bytes(S: Any, site: int, made: TensorMap, first: int, end: int, lane: int, write: bool) -> Array:
    """Bytes of a tensor by their offsets; a fault where they are no memory of the launch.

    Addresses have 64 bits: a ragged tensor's begins before 0, and its coordinates come back.
    """
    address = (made.address + first) % (1 << 64)
    data = S.g.at(address, end - first)
    if data is None:
        bad = S.g.out_of_bounds(site, np.array([address], np.uint64), np.array([True]), end - first, write, True)
        bad.lanes = np.array([lane])
        bad.hint = "the tensor map spans more than the buffer"
        if write:
            bad.hint += ", or whole 16 bytes are stored where a row ends within them"
        raise bad
    if write and not S.g.buffer_of(address).writable:
        raise Fault("readonly", "Write to read-only global memory", site, np.array([lane]))
    return np.asarray(data)


def read_box(S: Any, site: int, made: TensorMap, start: list[int], lane: int) -> Array:
    """The bytes of a box, in order; what lies outside the tensor is zero (or NaN), and tf32 is rounded."""
    tile = np.zeros((*made.counts[::-1], made.unit), np.uint8)
    part = box_part(S, site, made, start, lane, False)
    if made.fill_nan:
        tile.view(np.uint16)[...] = OOB_NAN
    if part is not None:
        data = part.data[part.index]
        tile[part.box] = rounded_to_tf32(data) if made.type.startswith("tf32") else data
    return tile.reshape(-1)


def rounded_to_tf32(data: Array) -> Array:
    """Bytes of f32 rounded to the nearest tf32, ties to even, as loads of tf32 do; any NaN becomes one. Measured on an
    H100."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    odd = bits >> np.uint32(13) & np.uint32(1)
    nearest = bits + np.uint32(0xFFF) + odd & np.uint32(0xFFFFE000)
    is_nan = bits & np.uint32(0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, np.uint32(TF32_NAN), nearest).view(np.uint8)


def write_box(S: Any, site: int, made: TensorMap, start: list[int], data: Array, op: str, lane: int) -> None:
    """Store a box, or reduce it into the tensor."""
    part = box_part(S, site, made, start, lane, True)
    if part is None:
        return
    tile = data.reshape(*made.counts[::-1], made.unit)[part.box]
    if not op:
        part.data[part.index] = tile
        return
    kind = COMPUTED_AS.get(made.type, made.type)
    dtype = np.dtype(DTYPE[kind])
    old = np.ascontiguousarray(part.data[part.index]).view(dtype)
    flushed = made.type not in ("f32", "tf32")  # subnormals of f32: measured on an H100
    new = combine(op, kind, flushed)(old, np.ascontiguousarray(tile).view(dtype), None)
    part.data[part.index] = np.ascontiguousarray(new).view(np.uint8).reshape(tile.shape)
