"""Products with scales by their definition, in float32: with those of blocks, both matrices are scaled first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.kernels.gemm_sm90_scaled import BLOCK
from tilewright.ops.frameworks import is_torch
from tilewright.ops.ref.precision import computed, numpy_computed


def gemm_scaled(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    """a (M, K) · b (K, N) in float32, times scale_a (M, 1) and scale_b (1, N), or numbers."""
    wide = computed if is_torch(a) else numpy_computed
    return (wide(a) @ wide(b)) * scale_a * scale_b


def gemm_scaled_blocks(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    """a (M, K) times scale_a (M, blocks of K), by b (K, N) times scale_b (blocks of K, blocks of N), in float32."""
    wide = computed if is_torch(a) else numpy_computed
    k, n = b.shape
    left = wide(a) * _spread(scale_a, 1)[:, :k]
    right = wide(b) * _spread(_spread(scale_b, 0), 1)[:k, :n]
    return left @ right


def _spread(scale: Any, dim: int) -> Any:
    """Each scale for all elements of its block along a dimension."""
    if is_torch(scale):
        return scale.repeat_interleave(BLOCK, dim)
    return np.repeat(scale, BLOCK, dim)
