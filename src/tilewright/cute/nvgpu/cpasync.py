"""`cute.nvgpu.cpasync`: asynchronous copies."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.nvgpu.bulk_copies import CopyBulkG2SMulticastOp, CopyBulkG2SOp, CopyBulkS2GOp
from tilewright.lang.nvgpu.cpasync import CopyG2SOp, LoadCacheMode
from tilewright.lang.nvgpu.multicast import create_tma_multicast_mask
from tilewright.lang.nvgpu.tma import TmaAtom, prefetch_descriptor, tma_partition
from tilewright.lang.nvgpu.tma_descriptors import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from tilewright.lang.nvgpu.tma_maps import make_tiled_tma_atom
from tilewright.lang.nvgpu.tma_ops import (
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
    CopyReduceBulkTensorTileS2GOp,
    ReductionKind,
)

ReductionOp = ReductionKind

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "CopyBulkG2SMulticastOp", "CopyBulkG2SOp", "CopyBulkS2GOp", "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp", "CopyBulkTensorTileS2GOp", "CopyG2SOp", "CopyReduceBulkTensorTileS2GOp", "LoadCacheMode",
    "ReductionKind", "ReductionOp", "TmaAtom", "copy_tensormap", "cp_fence_tma_desc_release",
    "create_tma_multicast_mask", "fence_tma_desc_acquire", "fence_tma_desc_release", "make_tiled_tma_atom",
    "prefetch_descriptor", "tma_partition", "update_tma_descriptor",
]  # fmt: skip
