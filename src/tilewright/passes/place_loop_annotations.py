"""place-loop-annotations: put loop annotations where the translation to LLVM IR reads them.

before: `llvm.br ... {llvm.loop_annotation = #a}`      after: `llvm.br ... {loop_annotation = #a}`

MLIR carries the discardable attribute of an `scf.for` to its branch and leaves it at that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.walk import operations
from tilewright.passes.annotate_loops import ANNOTATION
from tilewright.passes.pipeline import Pass, register

if TYPE_CHECKING:
    from mlir import ir


_BRANCHES = ("llvm.br", "llvm.cond_br")


@register
class PlaceLoopAnnotations(Pass):
    """See the module."""

    name = "place-loop-annotations"
    in_cute = False

    def run(self, module: ir.Operation) -> None:
        for op in operations(module):
            if op.name in _BRANCHES and ANNOTATION in op.attributes:
                op.attributes["loop_annotation"] = op.attributes[ANNOTATION]
                del op.attributes[ANNOTATION]
