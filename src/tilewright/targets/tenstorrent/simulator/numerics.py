"""Numbers of a Tensix core: tiles as four faces, formats, and what the engines compute.

The unpacker gives the matrix engine at most 19 bits of a Float32 (TF32): lower bits are cut off. DST holds Float32, or
bf16, which every result is rounded to. The packer rounds to nearest even. Functions of the vector engine are NumPy's,
where the machine has approximations of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from tilewright.hw.tensix import FACE, TILE

NUMPY: Final[dict[str, Any]] = {"Float16_b": np.dtype(ml_dtypes.bfloat16), "Float32": np.dtype(np.float32)}
_TF32: Final = np.uint32(0xFFFFE000)


def tilize(matrix: Any) -> Any:
    """A matrix as pages: (tiles, 1024) with tiles row by row, and each tile as its four faces of 16 x 16."""
    rows, cols = (extent // TILE for extent in matrix.shape)
    faces = TILE // FACE
    split = matrix.reshape(rows, faces, FACE, cols, faces, FACE)
    return np.ascontiguousarray(split.transpose(0, 3, 1, 4, 2, 5)).reshape(rows * cols, TILE * TILE)


def untilize(pages: Any, shape: tuple[int, int]) -> Any:
    """The matrix of that shape that pages hold."""
    rows, cols = (extent // TILE for extent in shape)
    faces = TILE // FACE
    split = pages.reshape(rows, cols, faces, faces, FACE, FACE)
    return split.transpose(0, 2, 4, 1, 3, 5).reshape(shape)


def unpacked(page: Any) -> Any:
    """A page as the matrix engine gets it: 32 x 32 numbers in float32, cut to 19 bits."""
    matrix = untilize(np.asarray(page), (TILE, TILE))
    if matrix.dtype != np.float32:
        return matrix.astype(np.float32)
    return (np.ascontiguousarray(matrix).view(np.uint32) & _TF32).view(np.float32)


def rounded(values: Any, mode: str) -> Any:
    """Numbers as DST holds them."""
    return values.astype(ml_dtypes.bfloat16).astype(np.float32) if mode == "bf16" else values


def spread(tile: Any, dim: str) -> Any:
    """A column, row or element of a tile, broadcast."""
    if dim == "cols":
        return np.broadcast_to(tile[:, :1], tile.shape)
    if dim == "rows":
        return np.broadcast_to(tile[:1, :], tile.shape)
    return np.broadcast_to(tile[:1, :1], tile.shape) if dim == "scalar" else tile


def _erf(x: Any) -> Any:
    """The error function of each element."""
    return np.vectorize(math.erf, otypes=[np.float32])(x)


UNARY: Final[dict[str, Callable[..., Any]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "tanh": np.tanh,
    "erf": _erf,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "negative": np.negative,
    "relu": lambda x: np.fmax(x, 0),
    "identity": lambda x: x,
    "max": np.fmax,
    "min": np.fmin,
}
BINARY: Final[dict[str, Callable[..., Any]]] = {"div": np.divide, "max": np.fmax, "min": np.fmin}
