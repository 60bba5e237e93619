"""annotate-loops: hand the unrolling that the user asked for to LLVM.

before: `scf.for ... {tilewright.unroll = 4 : i32}`
after:  `scf.for ... {llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 4 ...>>}`, which MLIR puts on the
        loop's branch

`unroll=1` forbids unrolling; `unroll_full` asks for all of it. Loops without a wish are left to LLVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir
from tilewright.passes.lowering import number_of
from tilewright.passes.pipeline import Pass, register

if TYPE_CHECKING:
    from mlir import ir

UNROLL, UNROLL_FULL = "tilewright.unroll", "tilewright.unroll_full"
ANNOTATION = "llvm.loop_annotation"


@register
class AnnotateLoops(Pass):
    """See the module."""

    name = "annotate-loops"

    def run(self, module: ir.Operation) -> None:
        def visit(op: ir.Operation) -> Any:
            if op.name in ("scf.for", "scf.while"):
                _annotate(op)
            return mlir.ir.WalkResult.ADVANCE

        module.walk(visit, mlir.ir.WalkOrder.PRE_ORDER)


def _annotate(loop: ir.Operation) -> None:
    if UNROLL_FULL in loop.attributes:
        loop.attributes[ANNOTATION] = _unroll("disable = false, full = true")
    elif UNROLL in loop.attributes:
        count = number_of(loop, UNROLL)
        wish = "disable = true" if count == 1 else f"disable = false, count = {count} : i32"
        if count > 0:
            loop.attributes[ANNOTATION] = _unroll(wish)


def _unroll(wish: str) -> Any:
    return build.attribute(f"#llvm.loop_annotation<unroll = <{wish}>>")
