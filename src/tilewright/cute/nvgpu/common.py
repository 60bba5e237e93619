"""`cute.nvgpu.common`: operations of one thread."""

from tilewright.lang.atoms import CopyUniversalOp, MmaUniversalOp
from tilewright.lang.nvgpu.cpasync import LoadCacheMode

__all__ = [
    "CopyUniversalOp", "LoadCacheMode", "MmaUniversalOp",
]  # fmt: skip
