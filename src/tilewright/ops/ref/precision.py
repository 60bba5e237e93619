"""The precision in which references compute: float32, or float64 for tensors of float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch


def computed(tensor: Any) -> Any:
    """A tensor of PyTorch in the precision of the reference."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def numpy_computed(array: Any) -> Any:
    """An array of NumPy in the precision of the reference."""
    return array if array.dtype == np.float64 else array.astype(np.float32)


def optional(tensor: Any, convert: Callable[[Any], Any], neutral: int) -> Any:
    """`convert(tensor)`, or the neutral number where there is none."""
    return neutral if tensor is None else convert(tensor)
