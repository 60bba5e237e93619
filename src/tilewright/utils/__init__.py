"""`cutlass.utils`: helpers of kernels."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.tensors.allocation import SmemAllocator
from tilewright.layout.draw.show import print_latex, print_latex_tv
from tilewright.utils import sm90
from tilewright.utils.capacity import get_smem_capacity_in_bytes
from tilewright.utils.hardware_info import HardwareInfo
from tilewright.utils.layout_enum import LayoutEnum
from tilewright.utils.tensor_helpers import create_cute_tensor_for_fp8, is_fp8_dtype

hopper_helpers = sm90

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "HardwareInfo", "LayoutEnum", "SmemAllocator", "create_cute_tensor_for_fp8", "get_smem_capacity_in_bytes",
    "hopper_helpers", "is_fp8_dtype", "print_latex", "print_latex_tv", "sm90",
]  # fmt: skip
