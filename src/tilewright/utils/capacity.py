"""Sizes of a chip's memories."""

from tilewright.lang.tensors.allocation import SmemAllocator

get_smem_capacity_in_bytes = SmemAllocator.capacity_in_bytes
