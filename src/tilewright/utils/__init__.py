"""`cutlass.utils`: helpers of kernels."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.tensors.allocation import SmemAllocator, SmemPartition
from tilewright.layout.draw.show import print_latex, print_latex_tv
from tilewright.utils import sm90
from tilewright.utils.capacity import get_smem_capacity_in_bytes
from tilewright.utils.grouped_gemm_tile_scheduler_helper import (
    GroupedGemmGroupSearchState,
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from tilewright.utils.hardware_info import HardwareInfo
from tilewright.utils.layout_enum import LayoutEnum
from tilewright.utils.static_persistent_tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)
from tilewright.utils.tensor_helpers import create_cute_tensor_for_fp8, is_fp8_dtype
from tilewright.utils.tensor_map_manager import TensorMapManager, TensorMapUpdateMode
from tilewright.utils.work_tile_info import WorkTileInfo

hopper_helpers = sm90

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "GroupSearchResult", "GroupedGemmGroupSearchState", "GroupedGemmTileSchedulerHelper", "HardwareInfo", "LayoutEnum",
    "PersistentTileSchedulerParams", "SmemAllocator", "SmemPartition", "StaticPersistentGroupTileScheduler",
    "StaticPersistentTileScheduler", "TensorMapManager", "TensorMapUpdateMode", "WorkTileInfo",
    "create_cute_tensor_for_fp8", "create_initial_search_state", "get_smem_capacity_in_bytes", "hopper_helpers",
    "is_fp8_dtype", "print_latex", "print_latex_tv", "sm90",
]  # fmt: skip
