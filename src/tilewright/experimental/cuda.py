"""`cutlass.experimental.cuda`: tensor maps that are made by their numbers."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import PRIMITIVES as _PRIMITIVES
from tilewright.base.not_built import missing as _missing
from tilewright.cuda import initialize_cuda_context
from tilewright.lang.nvgpu.plain_maps import (
    TensorMap,
    TensorMapSwizzle,
    create_tensor_map_tiled,
    create_tensor_map_tiled_from_view,
)

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_PRIMITIVES)

__all__ = [
    "TensorMap", "TensorMapSwizzle", "create_tensor_map_tiled", "create_tensor_map_tiled_from_view",
    "initialize_cuda_context",
]  # fmt: skip
