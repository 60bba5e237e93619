"""`cute.nvgpu.cpasync`: asynchronous copies."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.nvgpu.cpasync import CopyG2SOp, LoadCacheMode

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "CopyG2SOp", "LoadCacheMode",
]  # fmt: skip
