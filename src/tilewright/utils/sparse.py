"""Matrices of which half the elements are zero, in the form that sparse products of warpgroups take (sm_90a).

This module needs NumPy; `import tilewright.utils.sparse` asks for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.hw.atoms import wgmma

Array = np.ndarray[Any, Any]
_TYPES = {2: "f16", 4: "tf32", 1: "e4m3"}
"""A type of each width in bytes: metadata depend on no more."""


def compress(dense: Array) -> tuple[Array, Array]:
    """A (M, K) with at most two numbers in each four along K, but for zeros, as its numbers and where they are.

    Of 32-bit elements (TFloat32), at most one in each two. M is a multiple of 64, K of 64 bytes.

    Returns:
        numbers: (M, K / 2), of the type of `dense`.
        words: (M / 64, K / k, 128) uint32, k elements for an instruction: the word of each thread of a warpgroup.

    Raises:
        ArgumentError: there are more numbers than that, or extents that do not fit.
    """
    rows, columns = dense.shape if dense.ndim == 2 else (0, 0)
    type_ = _TYPES.get(dense.dtype.itemsize, "")
    depth = 64 // dense.dtype.itemsize
    if not type_ or not rows or rows % wgmma.M or columns % depth:
        raise ArgumentError(
            "a sparse A is a matrix of M, a multiple of 64, and K, a multiple of 64 bytes",
            values={"shape": dense.shape, "dtype": str(dense.dtype)},
        )
    size = 2 if type_ == "tf32" else 4
    kept = size // 2
    chunks = dense.reshape(rows, columns // size, size)
    there = chunks != 0
    if (there.sum(axis=2) > kept).any():
        row, chunk = (int(at) for at in np.argwhere(there.sum(axis=2) > kept)[0])
        raise ArgumentError(
            f"more than {kept} of {size} elements are not zero",
            values={
                "row": row,
                "columns": f"{size * chunk} to {size * chunk + size - 1}",
                "elements": chunks[row, chunk],
            },
            hint="set the smaller ones to zero first",
        )
    # Those that are there come first, in their order; zeros fill up.
    order = np.sort(np.argsort(~there, axis=2, kind="stable")[:, :, :kept], axis=2)
    numbers = np.take_along_axis(chunks, order, axis=2).reshape(rows, columns // 2)
    nibbles = 4 + 10 * order[:, :, 0] if size == 2 else order[:, :, 0] | order[:, :, 1] << 2
    return np.ascontiguousarray(numbers), _words(nibbles, type_, depth // size)


def _words(nibbles: Array, type_: str, each: int) -> Array:
    """The words of threads, from four bits for each chunk of each row; an instruction takes `each` chunks of a row."""
    rows, chunks = nibbles.shape
    tiles = nibbles.reshape(rows // wgmma.M, wgmma.M, chunks // each, each).astype(np.uint32)
    words = np.zeros((rows // wgmma.M, chunks // each, wgmma.WARPGROUP), np.uint32)
    for row in range(wgmma.M):
        for chunk in range(each):
            thread, bit = wgmma.metadata_bits(type_, row, chunk)
            words[:, :, thread] |= tiles[:, row, :, chunk] << np.uint32(bit)
    return words
