"""Verifiers of what stands around operations of `cute`: loops, signatures, launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import mlir, types
from tilewright.passes.verify.facts import Invalid, memory
from tilewright.passes.verify.table import verifies_values

if TYPE_CHECKING:
    from mlir import ir


@verifies_values("scf.for")
def _step(op: ir.Operation) -> None:
    """A loop goes up."""
    owner = op.operands[2].owner
    if getattr(owner, "name", "") == "arith.constant":
        step = int(mlir.ir.IntegerAttr(owner.operation.attributes["value"]).value)
        if step <= 0:
            raise Invalid("the step of a loop is positive", step=step)


@verifies_values("func.func", "gpu.func")
def _signature(op: ir.Operation) -> None:
    for block in op.regions[0]:
        for argument in block.arguments:
            if types.is_cute(argument.type):
                memory(argument.type)
        return


@verifies_values("gpu.launch_func")
def _launch(op: ir.Operation) -> None:
    """The kernel must be there, and take what the launch gives."""
    kernel = _kernel(op)
    wanted = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    start = sum(sizes[:-2])
    given = [operand.type for operand in list(op.operands)[start : start + sizes[-2]]]
    if given != wanted:
        number = next((n for n, pair in enumerate(zip(given, wanted)) if pair[0] != pair[1]), min(len(given), len(wanted)))
        raise Invalid(
            "the launch gives other arguments than the kernel takes",
            argument=number,
            given=given[number] if number < len(given) else "none",
            taken=wanted[number] if number < len(wanted) else "none",
        )


def _kernel(op: ir.Operation) -> ir.Operation:
    path = [part.strip("@") for part in str(op.attributes["kernel"]).split("::")]
    scope = op
    while scope.parent is not None:
        scope = scope.parent.operation if hasattr(scope.parent, "operation") else scope.parent
    for name in path:
        found = [
            inner.operation
            for inner in scope.regions[0].blocks[0]
            if "sym_name" in inner.operation.attributes
            and mlir.ir.StringAttr(inner.operation.attributes["sym_name"]).value == name
        ]
        if not found:
            raise Invalid("the launch names no kernel", kernel="::".join(path))
        scope = found[0]
    return scope
