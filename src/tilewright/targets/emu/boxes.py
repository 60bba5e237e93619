"""Boxes of tensor copies: which of their elements lie in the tensor, and where in global memory."""

from __future__ import annotations

from functools import reduce

import numpy as np

from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.numerics.im2col import pixels
from tilewright.targets.emu.tensormap import TensorMap


def _wrapped(number: int) -> int:
    """An address or stride as a signed number of 64 bits: sums of them wrap, and ragged tensors rely on it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def box_addresses(made: TensorMap, start: list[int]) -> Array:
    """The addresses of a box's units (elements, or slices of channels) in the tensor, uint64, in no order of note.

    `start` has the box's first coordinates, and behind them the offsets of an im2col copy.
    """
    if made.im2col:
        channels, channel = _channels(made, start), made.channel_mode
        places = column_pixels(made, start)
        rows = places[_in_image(made, places)] @ np.array([made.all_strides[m] for m in made.pixel_modes], np.int64)
        steps = channels[_below(channels, made.extents[channel])] * made.all_strides[channel]
        return np.asarray((_wrapped(made.address) + rows[:, None] + steps).reshape(-1)).astype(np.uint64)
    addresses = np.array([_wrapped(made.address)], np.int64)
    for places, extent, stride in zip(_places(made, start), made.extents, made.all_strides, strict=True):
        addresses = (addresses[:, None] + places[_below(places, extent)] * _wrapped(stride)).reshape(-1)
    return addresses.astype(np.uint64)


def box_inside(made: TensorMap, start: list[int]) -> Array:
    """Which units of a box lie in the tensor: booleans in the order in which the box is stored, without swizzle."""
    if made.im2col:
        extent = made.extents[made.channel_mode]
        inside = [_in_image(made, column_pixels(made, start)), _below(_channels(made, start), extent)]
    else:
        inside = [_below(x, extent) for x, extent in zip(_places(made, start), made.extents, strict=True)][::-1]
    return np.asarray(reduce(np.logical_and.outer, inside)).reshape(-1)


def column_pixels(made: TensorMap, start: list[int]) -> Array:
    """The coordinates of an im2col copy's pixels, (pixels, modes but that of channels)."""
    base, steps = ([values[m] for m in made.pixel_modes] for values in (start, made.steps))
    return pixels(base, made.lower, made.last, steps, start[made.rank :], made.box[1])


def _places(made: TensorMap, start: list[int]) -> list[Array]:
    """A tile's coordinates along each mode."""
    modes = zip(start, made.counts, made.steps, strict=True)
    return [x + step * np.arange(count, dtype=np.int64) for x, count, step in modes]


def _channels(made: TensorMap, start: list[int]) -> Array:
    return start[made.channel_mode] + np.arange(made.counts[0], dtype=np.int64)


def _below(places: Array, extent: int) -> Array:
    return np.asarray((places >= 0) & (places < extent))


def _in_image(made: TensorMap, places: Array) -> Array:
    return np.asarray(((places >= 0) & (places < [made.extents[m] for m in made.pixel_modes])).all(axis=1))
