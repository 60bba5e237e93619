"""`cute.nvgpu.cpasync`: asynchronous copies."""

from tilewright.lang.nvgpu.cpasync import CopyG2SOp, LoadCacheMode

__all__ = [
    "CopyG2SOp", "LoadCacheMode",
]  # fmt: skip
