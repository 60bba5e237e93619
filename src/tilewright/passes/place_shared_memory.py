"""place-shared-memory: give every shared allocation an offset in the block's dynamic shared memory.

before: `cute.alloc {bytes = 128}` in space smem          after: `cute.smem_base {offset = 0}`

The total is left on the kernel as `tilewright.smem_bytes`; a launch without `smem=` asks for that much. Allocations
that come after a run are placed behind its own by the next. A kernel that takes the base itself, of what its launch
asks for, is marked `tilewright.smem_base`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import number_of, ptr_info
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import NAME, kernels

if TYPE_CHECKING:
    from mlir import ir

SMEM_BYTES = "tilewright.smem_bytes"
SMEM_ALIGN = "tilewright.smem_align"
SMEM_BASE = "tilewright.smem_base"


@register
class PlaceSharedMemory(Pass):
    """See the module."""

    name = "place-shared-memory"

    def run(self, module: ir.Operation) -> None:
        for kernel in kernels(module):
            _place(kernel)


def _place(kernel: ir.Operation) -> None:
    end, widest = _placed(kernel)
    for op in _shared_allocations(kernel):
        align = ptr_info(op.results[0].type).align
        start = -(-end // align) * align
        end, widest = start + number_of(op, "bytes"), max(widest, align)
        location = op.location
        with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
            base = build.cute("smem_base", (op.results[0].type,), (), offset=build.i32(start))
            if NAME in op.attributes:
                base.attributes[NAME] = op.attributes[NAME]
        op.results[0].replace_all_uses_with(base.results[0])
        op.erase()
    kernel.attributes[SMEM_BYTES] = build.i32(end)
    kernel.attributes[SMEM_ALIGN] = build.i32(widest)


def _placed(kernel: ir.Operation) -> tuple[int, int]:
    """Bytes and alignment of what an earlier run placed; the pass may run again."""
    if SMEM_BYTES not in kernel.attributes:
        return 0, 16
    return number_of(kernel, SMEM_BYTES), number_of(kernel, SMEM_ALIGN)


def _shared_allocations(kernel: ir.Operation) -> list[ir.Operation]:
    inside = operations(kernel)
    first = SMEM_BYTES not in kernel.attributes  # later all allocations are bases
    if first and any(op.name == "cute.smem_base" for op in inside):
        kernel.attributes[SMEM_BASE] = build.attribute("unit")
    allocations = [op for op in inside if op.name == "cute.alloc"]
    return [op for op in allocations if ptr_info(op.results[0].type).space == "smem"]
