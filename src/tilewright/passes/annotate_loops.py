"""annotate-loops: hand the unrolling that the user asked for to LLVM, and that which registers need.

before: `scf.for ... {tilewright.unroll = 4 : i32}`
after:  `scf.for ... {llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 4 ...>>}`, which scf-to-cf puts on
        the loop's branch

`unroll=1` forbids unrolling; `unroll_full` asks for all of it, which LLVM does in two steps where it is much
(`split_unrolled`). A loop without an option over constant bounds is unrolled when it picks registers by its index:
registers have no addresses, and the array would go to local memory. Other loops are left to LLVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir
from tilewright.ir.accessors import number_of, ptr_info
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.split_unrolled import split

if TYPE_CHECKING:
    from mlir import ir

UNROLL, UNROLL_FULL = "tilewright.unroll", "tilewright.unroll_full"
ANNOTATION = "llvm.loop_annotation"
MOST_ITERATIONS = 256
"""Longest loop that is unrolled without being asked for."""


@register
class AnnotateLoops(Pass):
    """See the module."""

    name = "annotate-loops"

    def run(self, module: ir.Operation) -> None:
        for op in reversed(operations(module)):  # the inner ones first
            if op.name == "scf.for" and UNROLL_FULL in op.attributes:
                split(op)
        for op in operations(module):
            if op.name in ("scf.for", "scf.while"):
                _annotate(op)


def _annotate(loop: ir.Operation) -> None:
    if UNROLL_FULL in loop.attributes:
        loop.attributes[ANNOTATION] = _unroll("disable = false, full = true")
    elif UNROLL in loop.attributes:
        count = number_of(loop, UNROLL)
        wish = "disable = true" if count == 1 else f"disable = false, count = {count} : i32"
        if count > 0:
            loop.attributes[ANNOTATION] = _unroll(wish)
    elif loop.name == "scf.for" and 1 < trip_count(loop) <= MOST_ITERATIONS and picks_registers(loop):
        loop.attributes[ANNOTATION] = _unroll("disable = false, full = true")


def trip_count(loop: ir.Operation) -> int:
    """How often a loop over constant bounds runs; 0 where a bound is known only at run time."""
    bounds = [constant_of(operand) for operand in list(loop.operands)[:3]]
    if any(bound is None for bound in bounds):
        return 0
    lower, upper, step = (int(bound) for bound in bounds if bound is not None)
    return max(-(-(upper - lower) // step), 0) if step > 0 else 0


def constant_of(value: ir.Value) -> int | None:
    """The integer that `arith.constant` gives, None for other values."""
    owner = value.owner
    if not isinstance(owner, mlir.ir.Operation | mlir.ir.OpView) or owner.operation.name != "arith.constant":
        return None
    return int(mlir.ir.IntegerAttr(owner.operation.attributes["value"]).value)


def picks_registers(loop: ir.Operation) -> bool:
    """True when an element or a view of a register tensor is chosen by the loop's index."""
    derived = {loop.regions[0].blocks[0].arguments[0]}
    for op in operations(loop)[1:]:
        if any(operand in derived for operand in op.operands):
            derived.update(op.results)
            if _picks(op, derived):
                return True
    return False


def _picks(op: ir.Operation, derived: set[ir.Value]) -> bool:
    if op.name in ("cute.ptr_offset", "cute.view"):
        return ptr_info(op.operands[0].type).space == "rmem" and any(index in derived for index in op.operands[1:])
    if op.name not in ("cute.load", "cute.store"):
        return False
    *before, coord32, coord64 = build.groups(op)
    return ptr_info(before[-1][0].type).space == "rmem" and any(index in derived for index in (*coord32, *coord64))


def _unroll(wish: str) -> Any:
    return build.attribute(f"#llvm.loop_annotation<unroll = <{wish}>>")
