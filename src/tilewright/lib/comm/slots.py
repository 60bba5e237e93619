"""Places in shared memory through which the warps of a block exchange numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import calling_location
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.tensors.algebra import make_layout
from tilewright.lang.tensors.allocation import SmemAllocator
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import is_static
from tilewright.layout.query import room

ALIGN = 16  # bytes: several slots are read by one access


def smem_bytes(types: Sequence[type[Numeric]], slots: int) -> int:
    """Bytes that `slots` numbers of each type take, each type's at a multiple of `ALIGN`."""
    return sum(-(-slots * cls.width // 8 // ALIGN) * ALIGN for cls in types)


def slots_of(smem: Any, types: Sequence[type[Numeric]], slots: int) -> list[Tensor]:
    """`slots` places for a number of each type: in `smem`, or in memory of their own.

    Raises:
        CompileError: `smem` is no shared memory, or too small.
    """
    layout = make_layout(slots)
    if smem is None:  # in whole accesses: what lies between two numbers may be read with them
        arrays = [smem_bytes([cls], slots) * 8 // cls.width for cls in types]
        found = [SmemAllocator().allocate_array(cls, count, ALIGN) for cls, count in zip(types, arrays, strict=True)]
        return [make_tensor(pointer, layout) for pointer in found]
    pointer = _memory(smem, smem_bytes(types, slots))
    tensors, offset = [], 0
    for cls in types:
        tensors.append(make_tensor((pointer + offset).recast(cls).with_alignment(ALIGN), layout))
        offset += smem_bytes([cls], slots) * 8 // pointer.dtype.width
    return tensors


def _memory(smem: Any, needed: int) -> Pointer:
    pointer = smem.iterator if isinstance(smem, Tensor) else smem
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem or pointer.alignment % ALIGN:
        raise CompileError(
            "smem is shared memory at a multiple of 16 bytes",
            location=calling_location(),
            values={"got": smem},
            hint="utils.SmemAllocator().allocate_tensor(cutlass.Int8, bytes, 16), or leave smem out",
        )
    if isinstance(smem, Tensor) and is_static(smem.layout):
        given = room(smem.layout) * pointer.dtype.width // 8
        if given < needed:
            raise CompileError(
                f"smem has {given} bytes, and {needed} are needed",
                location=calling_location(),
                hint="16 bytes at least for each value: a number for each warp, in 32 or 64 bits",
            )
    return pointer
