"""`ldmatrix` and `stmatrix`: which bits of 8x8 matrices each lane names and holds.

Source: PTX ISA 9.0, "ldmatrix" and "stmatrix". Lanes 0-7, 8-15, 16-23, 24-31 give the addresses of the 16-byte rows of
matrix 0, 1, 2, 3; with fewer matrices the addresses of the other lanes are not used. Afterwards lane l holds, of each
matrix, the two 16-bit elements (row l / 4, columns 2 (l % 4) and 2 (l % 4) + 1); with `.trans` rows and columns change
places.

Layouts map (lane, bit) to a bit of the matrices, which follow one another, row after row.
"""

from __future__ import annotations

from tilewright.layout import Layout

MATRICES = (1, 2, 4)
ROW_BITS = 128
MATRIX_BITS = 8 * ROW_BITS


def row_addresses(count: int) -> Layout:
    """(lane, bit) of the rows that lanes name, for `count` matrices; further lanes repeat the first ones."""
    if count == 4:
        return Layout((32, ROW_BITS), (ROW_BITS, 1))
    return Layout(((8 * count, 4 // count), ROW_BITS), ((ROW_BITS, 0), 1))


def registers(count: int, transpose: bool) -> Layout:
    """(lane, bit) of the registers, for `count` matrices of 16-bit elements."""
    if transpose:
        bits, steps = ((16, 2), (1, ROW_BITS)) if count == 1 else ((16, 2, count), (1, ROW_BITS, MATRIX_BITS))
        return Layout(((4, 8), bits), ((2 * ROW_BITS, 16), steps))
    if count == 1:
        return Layout((32, 32), (32, 1))
    return Layout((32, (32, count)), (32, (1, MATRIX_BITS)))
