"""`cute.nvgpu`: copy and MMA operations."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.cute.nvgpu import common, cpasync, warp, warpgroup
from tilewright.lang.atoms import CopyUniversalOp, MmaUniversalOp
from tilewright.lang.atoms.copy_hints import CacheEvictionPriority, L2PrefetchSize
from tilewright.lang.nvgpu.cpasync import LoadCacheMode
from tilewright.lang.nvgpu.warpgroup import OperandMajorMode

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "CacheEvictionPriority", "CopyUniversalOp", "L2PrefetchSize", "LoadCacheMode", "MmaUniversalOp", "OperandMajorMode",
    "common", "cpasync", "warp", "warpgroup",
]  # fmt: skip
