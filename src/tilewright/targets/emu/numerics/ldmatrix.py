"""Lane maps of `ldmatrix`, `stmatrix` and `movmatrix` (PTX ISA 9.7.14.5.15 to 9.7.14.5.17).

An 8x8 matrix of b16 is eight rows of 16 bytes; lane 8m + r gives the address of row r of matrix m. Lane 4r + c
holds elements 2c and 2c + 1 of row r in one register; transposed, elements r of rows 2c and 2c + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics.formats import Array

LANES = np.arange(32)


@cache
def pieces(count: int, transposed: bool = False) -> tuple[Array, Array]:
    """Where the two 16-bit halves of each register of m8n8.b16 lie: `(address lane, byte offset in its row)`.

    Both have the shape (count, 32, 2): register, lane, half (low first). The same map serves loads and stores.
    """
    if count not in (1, 2, 4):
        raise EmulationError("ldmatrix and stmatrix move 1, 2 or 4 matrices", values={"given": count})
    matrix, half = np.arange(count)[:, None, None], np.arange(2)
    outer, inner = (LANES // 4)[:, None], 2 * (LANES % 4)[:, None] + half
    row, column = (inner, outer) if transposed else (outer, inner)
    shape = (count, 32, 2)
    return np.broadcast_to(8 * matrix + row, shape), np.broadcast_to(2 * column, shape)


def from_rows(rows: Array, count: int, transposed: bool = False) -> list[Array]:
    """The registers of `ldmatrix` from rows: uint8 of shape (..., lanes, 16), the row each address lane points to."""
    lane, offset = pieces(count, transposed)
    halves = np.ascontiguousarray(rows).view(np.uint16)
    words = np.ascontiguousarray(halves[..., lane, offset // 2]).view(np.uint32)[..., 0]
    return [words[..., r, :] for r in range(count)]


def to_rows(registers: Sequence[Array], transposed: bool = False) -> Array:
    """The rows that `stmatrix` writes: uint8 of shape (..., 8 * len(registers), 16), by address lane."""
    lane, offset = pieces(len(registers), transposed)
    words = np.ascontiguousarray(np.stack(registers, axis=-2), np.uint32)
    halves = words[..., None].view(np.uint16)
    rows = np.zeros((*words.shape[:-2], 8 * len(registers), 8), np.uint16)
    rows[..., lane, offset // 2] = halves
    return rows.view(np.uint8)


def transpose(register: Array) -> Array:
    """`movmatrix.m8n8.trans.b16`: the 8x8 matrix across the lanes (..., 32), transposed."""
    return from_rows(to_rows([register]), 1, transposed=True)[0]
