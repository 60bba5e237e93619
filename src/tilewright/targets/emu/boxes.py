"""Boxes of tensor copies: which of their elements lie in the tensor, and where in global memory."""

from __future__ import annotations

from functools import reduce

import numpy as np

from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.numerics.im2col import pixels
from tilewright.targets.emu.tensormap import TensorMap


def box_addresses(made: TensorMap, start: list[int]) -> Array:
    """The addresses of a box's elements that lie in the tensor, uint64, in no order of note.

    `start` has the box's first coordinates, and behind them the offsets of an im2col copy.
    """
    if made.im2col:
        places = column_pixels(made, start)
        channels = _channels(made, start)
        rows = made.address + places[_in_image(made, places)] @ np.array(made.strides, np.int64)
        return np.asarray(
            (rows[:, None] + channels[_below(channels, made.extents[0])] * made.width).reshape(-1)
        ).astype(np.uint64)
    addresses = np.array([made.address], np.int64)
    for places, extent, stride in zip(_places(made, start), made.extents, (made.width, *made.strides), strict=True):
        addresses = (addresses[:, None] + places[_below(places, extent)] * stride).reshape(-1)
    return addresses.astype(np.uint64)


def box_inside(made: TensorMap, start: list[int]) -> Array:
    """Which elements of a box lie in the tensor: booleans in the order in which the box is stored, without swizzle."""
    if made.im2col:
        inside = [_in_image(made, column_pixels(made, start)), _below(_channels(made, start), made.extents[0])]
    else:
        inside = [_below(x, extent) for x, extent in zip(_places(made, start), made.extents, strict=True)][::-1]
    return np.asarray(reduce(np.logical_and.outer, inside)).reshape(-1)


def column_pixels(made: TensorMap, start: list[int]) -> Array:
    """The coordinates of an im2col copy's pixels, (pixels, modes but the first)."""
    rank = made.rank
    return pixels(start[1:rank], made.lower, made.last, made.steps[1:-1], start[rank:], made.box[1])


def _places(made: TensorMap, start: list[int]) -> list[Array]:
    """A tile's coordinates along each mode."""
    modes = zip(start, made.counts, made.steps, strict=True)
    return [x + step * np.arange(count, dtype=np.int64) for x, count, step in modes]


def _channels(made: TensorMap, start: list[int]) -> Array:
    return start[0] + np.arange(made.box[0], dtype=np.int64)


def _below(places: Array, extent: int) -> Array:
    return np.asarray((places >= 0) & (places < extent))


def _in_image(made: TensorMap, places: Array) -> Array:
    return np.asarray(((places >= 0) & (places < made.extents[1:])).all(axis=1))
