"""`cutlass.memory`: memory that kernels allocate."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.tensors.allocation import SmemAllocator

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = ["SmemAllocator"]
