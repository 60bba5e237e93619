"""Which pixels an im2col copy takes (PTX ISA 9.1, 5.5.4): a walk through the bounding box of a batch of images.

Dimensions are W, H, D (as many as the images have), then N. The walk starts at the base, goes along W in steps of the
traversal stride, on reaching the end of the bounding box returns to its lower corner and steps along H, and so on; then
from image to image, in steps of the stride of N. The offsets of the filter are added to each place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.targets.emu.numerics.formats import Array


def pixels(
    base: Sequence[int], lower: Sequence[int], last: Sequence[int], steps: Sequence[int], offsets: Sequence[int],
    count: int,
) -> Array:  # fmt: skip
    """Coordinates of `count` pixels, int64 (count, dimensions of the image + 1).

    Args:
        base: where the walk starts: W, H, D, N; inside the bounding box.
        lower: the bounding box's least coordinates, without N.
        last: its greatest coordinates, without N.
        steps: traversal strides: W, H, D, N.
        offsets: added to each pixel's coordinates, without N.
        count: pixels per column.
    """
    index = np.arange(count, dtype=np.int64)
    found = []
    for start, low, high, step, offset in zip(base[:-1], lower, last, steps[:-1], offsets, strict=True):
        position, index = _along(index, start, low, high, step)
        found.append(position + offset)
    return np.stack([*found, base[-1] + index * steps[-1]], axis=1)


def _along(index: Array, start: int, low: int, high: int, step: int) -> tuple[Array, Array]:
    """Positions of the steps of a walk that returns to `low` beyond `high`; how often it had returned by each."""
    first, later = (high - start) // step + 1, (high - low) // step + 1
    beyond = index - first
    position = np.where(beyond < 0, start + index * step, low + beyond % later * step)
    return position, np.where(beyond < 0, 0, 1 + beyond // later)
