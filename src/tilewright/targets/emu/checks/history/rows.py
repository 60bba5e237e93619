"""Granules that come in whole rows: most kernels touch runs of memory, and NumPy moves rows faster than elements."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.lanes import Array

ROW = 32
STEPS = np.arange(ROW)
FEWEST = 1 << 10
"""Granules that are not worth a look."""


def padded(count: int) -> int:
    """A number of granules rounded up to whole rows."""
    return -(-count // ROW) * ROW


def rows_of(cells: Array) -> Array | None:
    """The rows that granules are, in order, if they are nothing but whole rows."""
    n = len(cells)
    if n < FEWEST or n % ROW or cells[ROW - 1] - cells[0] != ROW - 1:
        return None
    first = cells[::ROW]
    if np.count_nonzero(first & (ROW - 1)) or np.count_nonzero(cells.reshape(-1, ROW) != first[:, None] + STEPS):
        return None
    return np.asarray(first // ROW)


def gather(table: Array, cells: Array, rows: Array | None) -> Array:
    """The entries of granules; `rows` is what `rows_of` says of them."""
    if rows is None:
        return np.asarray(table.take(cells))
    return np.asarray(table.reshape(-1, ROW).take(rows, 0).reshape(-1))


def scatter(table: Array, cells: Array, rows: Array | None, values: Array) -> None:
    """Set the entries of granules; of several values for one the last stays."""
    if rows is None:
        table[cells] = values
    else:
        table.reshape(-1, ROW)[rows] = values.reshape(-1, ROW)
