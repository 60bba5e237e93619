"""expand-tiles: block-level operations as CuTe code of threads.

before: `%t = cute.tile_load %x, %i, %j : tensor<64x32xf32>`, arithmetic of `arith` and `math` on such values
after:  loads, stores and arithmetic of each thread's elements, vectors of them in loops and branches; shuffles, shared
        memory and barriers where threads need what others hold

Who holds which element is said in `assignment` and `distribution`. What does the work is loaded with the first kernel
that has tiles.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from tilewright.base.interrupts import uninterrupted
from tilewright.ir import mlir
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import kernels

if TYPE_CHECKING:
    from mlir import ir


@functools.cache
def _expansion() -> Any:
    return uninterrupted(lambda: importlib.import_module("tilewright.targets.nvidia.tiles.expansion"))


@register
class ExpandTiles(Pass):
    """See the module."""

    name = "expand-tiles"

    def run(self, module: ir.Operation) -> None:
        for kernel in kernels(module):
            ops = operations(kernel)
            if any(_has_tiles(op) for op in ops):
                _expansion().expand(module, kernel, ops)


def _has_tiles(op: ir.Operation) -> bool:
    return op.name.startswith("cute.tile_") or any(
        isinstance(result.type, mlir.ir.RankedTensorType) for result in op.results
    )
