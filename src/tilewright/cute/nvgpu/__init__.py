"""`cute.nvgpu`: copy and MMA operations."""

from tilewright.cute.nvgpu import common, cpasync, warp
from tilewright.lang.atoms import CopyUniversalOp, MmaUniversalOp
from tilewright.lang.nvgpu.cpasync import LoadCacheMode

__all__ = [
    "CopyUniversalOp", "LoadCacheMode", "MmaUniversalOp", "common", "cpasync", "warp",
]  # fmt: skip
