"""The matrix product by its definition: in float32, or float64 for float64; of int8 in int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch
from tilewright.ops.ref.precision import computed, numpy_computed


def gemm(a: Any, b: Any, batch_invariant: bool = False) -> Any:
    """a (..., M, K) · b (..., K, N); PyTorch says nothing about whether rows depend on the batch."""
    if a.dtype == b.dtype == torch.int8:
        return (a.double() @ b.double()).to(torch.int32)  # exact: float64 has 53 bits
    product = computed(a) @ computed(b)
    return product if 1 in (a.dtype.itemsize, b.dtype.itemsize) else product.to(a.dtype)  # of 8 bits as it was added


def numpy_gemm(a: Any, b: Any, batch_invariant: bool = False) -> Any:
    """`gemm` of arrays of NumPy."""
    if a.dtype == b.dtype == np.int8:
        return a.astype(np.int32) @ b.astype(np.int32)
    product = numpy_computed(a) @ numpy_computed(b)
    return product if 1 in (a.dtype.itemsize, b.dtype.itemsize) else product.astype(a.dtype)
