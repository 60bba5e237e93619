"""`cute.nvgpu.common`: operations of one thread."""

from tilewright.lang.atoms import CopyUniversalOp, MmaUniversalOp
from tilewright.lang.atoms.copy_hints import CacheEvictionPriority, L2PrefetchSize
from tilewright.lang.nvgpu.cpasync import LoadCacheMode
from tilewright.lang.nvgpu.warpgroup import OperandMajorMode

__all__ = [
    "CacheEvictionPriority", "CopyUniversalOp", "L2PrefetchSize", "LoadCacheMode", "MmaUniversalOp", "OperandMajorMode",
]  # fmt: skip
