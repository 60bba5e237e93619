"""`cute.nvgpu.warp`: matrix copies and products of a warp."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.nvgpu.warp import (
    LdMatrix8x8x16bOp,
    LdMatrix8x16x8bOp,
    MmaF16BF16Op,
    MmaF64Op,
    MmaFP8Op,
    MmaI8Op,
    MmaSyncOp,
    MmaTF32Op,
    StMatrix8x8x16bOp,
)

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "LdMatrix8x16x8bOp", "LdMatrix8x8x16bOp", "MmaF16BF16Op", "MmaF64Op", "MmaFP8Op", "MmaI8Op", "MmaSyncOp",
    "MmaTF32Op", "StMatrix8x8x16bOp",
]  # fmt: skip
