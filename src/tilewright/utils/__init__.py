"""`cutlass.utils`: helpers of kernels."""

from tilewright.lang.memory import SmemAllocator
