"""Granules: the units in which notes on memory are kept, words at first and bytes once smaller accesses come."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.lanes import Array

WORD = 2
"""log2 of the bytes of a word."""


def split(offsets: Array, size: int, granule: int) -> tuple[Array, int]:
    """The granules of `1 << granule` bytes of accesses of `size` bytes at offsets, one access after another, and how
    many each has. Offsets are multiples of `size`, which is no smaller than a granule."""
    each = max(size >> granule, 1)
    first = offsets >> granule if granule else offsets
    if each > 1:
        first = (first[:, None] + np.arange(each)).reshape(-1)
    return first, each


def pieces(start: int, count: int) -> tuple[Array, int]:
    """The first bytes of the pieces that make up a run of bytes, and the bytes of each: words, if it has whole ones."""
    step = 4 if count % 4 == 0 and start % 4 == 0 else 1
    return np.arange(start, start + count, step), step
