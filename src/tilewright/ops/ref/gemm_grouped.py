"""Products of groups of rows by their definition, in PyTorch or NumPy: one after the other, in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.ops.frameworks import is_torch, torch
from tilewright.ops.ref.precision import computed, numpy_computed


def gemm_grouped(a: Any, b: Any, ends: Any) -> Any:
    """Rows of a (M, K), each times the matrix of b (G, K, N) of its group; rows behind the last group are zeros."""
    wide = computed if is_torch(a) else numpy_computed
    left, right = wide(a), wide(b)
    out = _zeros(left, (a.shape[0], b.shape[2]))
    for group, start, end in _groups(ends, a.shape[0]):
        out[start:end] = left[start:end] @ right[group]
    return out


def gemm_grouped_outer(a: Any, b: Any, ends: Any) -> Any:
    """(G, K, N): of each group the transpose of its rows of a (M, K), times its rows of b (M, N)."""
    wide = computed if is_torch(a) else numpy_computed
    left, right = wide(a), wide(b)
    out = _zeros(left, (ends.shape[0], a.shape[1], b.shape[1]))
    for group, start, end in _groups(ends, a.shape[0]):
        out[group] = left[start:end].swapaxes(0, 1) @ right[start:end]
    return out


def _groups(ends: Any, rows: int) -> Iterator[tuple[int, int, int]]:
    start = 0
    for group, end in enumerate(ends.tolist()):
        end = max(min(end, rows), start)
        yield group, start, end
        start = end


def _zeros(like: Any, shape: tuple[int, ...]) -> Any:
    return torch.zeros(shape, dtype=like.dtype, device=like.device) if is_torch(like) else np.zeros(shape, like.dtype)
