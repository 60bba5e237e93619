"""Operands of products that are moved first, into an order and an alignment that a kernel reads faster.

Only neighbours along K share a register: `ldmatrix` cannot transpose bytes, and reading one at a time takes longer than
moving the matrix once. `wgmma` transposes elements of 16 bits alone. And the copy engine takes strides that are
multiples of 16 bytes: matrices with others are copied where the product takes so long that this pays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import Int8
from tilewright.kernels import gemm_sm90_calls, views
from tilewright.kernels.copy_transpose import copy_transpose
from tilewright.kernels.elementwise import copy
from tilewright.kernels.launching import on_gpu
from tilewright.torch import dtype as torch_dtype

_GRAIN = 16  # bytes of strides
_PAYS = 1 << 32  # products of a multiplication that takes longer than the copies of its operands, at least


def readable(a: Any, b: Any, whatever_size: bool = False) -> tuple[Any, Any]:
    """A and B as the kernels take them, moved if need be; `whatever_size`: the choice does not depend on extents."""
    a, b = with_k_inside(a, -1), with_k_inside(b, -2)
    size = a.dtype.itemsize
    if size == 8 or 0 in a.shape or 0 in b.shape:
        return a, b
    narrow = size == 1 and views.dtype_of(a) in views.FLOAT8  # which `mma.sync` of sm_80 does not take
    if not narrow and (whatever_size or math.prod(a.shape) * b.shape[-1] < _PAYS):
        return a, b
    if not gemm_sm90_calls.has_sm90(on_gpu(a)):
        return a, b
    return _aligned(a), _aligned(b)


def with_k_inside(matrix: Any, of_k: int) -> Any:
    """A matrix of bytes, or of float32 on sm_90, with contiguous K, dimension `of_k`; others as they are."""
    size = matrix.dtype.itemsize
    if size in (2, 8) or views.strides_of(matrix)[of_k] == 1 or 0 in matrix.shape:
        return matrix
    if size == 4 and not gemm_sm90_calls.has_sm90(on_gpu(matrix)):
        return matrix
    source = _as_moved(matrix)
    if of_k == -1:
        moved = _empty(source, source.shape)
        copy(moved, source)
        return moved if source is matrix else moved.view(matrix.dtype)
    moved = _empty(source, (*source.shape[:-2], source.shape[-1], source.shape[-2]))
    copy_transpose(moved, source)
    moved = moved if source is matrix else moved.view(matrix.dtype)
    return moved.swapaxes(-1, -2)


def _aligned(matrix: Any) -> Any:
    """The matrix, or a copy of it in the same order, with an address and strides that the copy engine takes."""
    seen = views.Strided(tuple(matrix.shape), views.strides_of(matrix))
    if gemm_sm90_calls.is_copied(seen, matrix):
        return matrix
    source = _as_moved(matrix)
    turned = seen.strides[-2] == 1 and seen.strides[-1] != 1
    *batch, rows, columns = source.shape
    lines, extent = (columns, rows) if turned else (rows, columns)
    grain = _GRAIN // matrix.dtype.itemsize
    made = _empty(source, (*batch, lines, -(-extent // grain) * grain))[..., :extent]
    made = made.swapaxes(-1, -2) if turned else made
    copy(made, source)
    return made if source is matrix else made.view(matrix.dtype)


def _empty(like: Any, shape: Sequence[int]) -> Any:
    """A new contiguous tensor of the same type where `like` lies."""
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(shape)


def _as_moved(matrix: Any) -> Any:
    """8-bit floats as bytes, which kernels that move take."""
    if views.dtype_of(matrix) not in views.FLOAT8:
        return matrix
    return matrix.view(np.int8 if isinstance(matrix, np.ndarray) else torch_dtype(Int8))
