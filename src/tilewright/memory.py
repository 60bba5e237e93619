"""`cutlass.memory`: memory that kernels allocate."""

from tilewright.lang.memory import SmemAllocator

__all__ = ["SmemAllocator"]
