"""Asking for memory ahead of its use."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.atoms.copy_atom import CopyAtom
from tilewright.lang.locations import user_location
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.element_limits import check_unrolled
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import is_static, product

_LINE_BITS = 128 * 8


def prefetch(atom: Any, src: Tensor, *, loc: object = None, ip: object = None) -> None:
    """Ask for the thread's part of `src`, global memory, to be brought into the second cache; nothing waits for it.

    One instruction for each line of 128 bytes where the strides are known, else for each value that an instruction of
    `atom` would read.

    Raises:
        CompileError: `src` is not in global memory, or its size is known only at run time.
    """
    if not isinstance(atom, CopyAtom):
        raise CompileError(
            f"cute.prefetch takes a copy atom or tiled copy first, not {type(atom).__name__}", location=user_location()
        )
    if not isinstance(src, Tensor) or src.is_coordinates or src.memspace is not AddressSpace.gmem:
        raise CompileError(
            "cute.prefetch takes a tensor in global memory", location=user_location(), values={"is": src}
        )
    trace.device("prefetch")
    count = product(src.shape)
    if not isinstance(count, int):
        raise CompileError(
            "a prefetch of a tensor whose size is known only at run time",
            location=user_location(),
            values={"tensor": src},
            hint="cut it into tiles of a static shape first",
        )
    check_unrolled(count, "a prefetch", src)
    for place in _places(src, count, max(atom.values, 1)):
        instruction("prefetch.global.L2 [$0];", ((src.iterator + place).toint(),))


def _places(src: Tensor, count: int, step: int) -> list[Any]:
    """Offsets, in elements, at which to ask."""
    if not is_static(src.layout):
        return [src.layout(index) for index in range(0, count, step)]
    apart = _LINE_BITS // src.element_type.width
    kept: list[Any] = []
    for offset in sorted({int(src.layout(index)) for index in range(count)}):
        if not kept or offset >= kept[-1] + apart:
            kept.append(offset)
    last = max((int(src.layout(index)) for index in range(count)), default=0)
    return kept if not kept or last == kept[-1] else [*kept, last]  # the memory may begin within a line
