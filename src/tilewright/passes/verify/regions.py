"""Verifiers of what stands around operations of `cute`: loops, signatures, launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import mlir, types
from tilewright.passes.verify.facts import Invalid, memory
from tilewright.passes.verify.table import verifies_values

if TYPE_CHECKING:
    from mlir import ir


_BLOCK = "known_block_size"
_LAUNCHES = [[0, 1, 1, 1, 1, 1, 1, *cluster, shared] for cluster in ([0] * 3, [1] * 3) for shared in (0, 1)]
"""Groups of operands before the kernel's: tokens, grid, block, cluster, shared memory."""


@verifies_values("scf.for")
def _step(op: ir.Operation) -> None:
    """A loop goes up."""
    step = _constant(op.operands[2])
    if step is not None and step <= 0:
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
    stream = list(op.operands)[len(op.operands) - sizes[-1] :]
    if sizes[:-2] not in _LAUNCHES or len(stream) > 1 or any(str(value.type) != "!llvm.ptr" for value in stream):
        raise Invalid(
            "a launch has three extents of the grid and of the block, and may have three of the cluster, the bytes of "
            "shared memory, and a stream",
            sizes=sizes,
        )
    _check_block(kernel, list(op.operands)[3 + sizes[0] : 6 + sizes[0]])
    start = sum(sizes[:-2])
    given = [operand.type for operand in list(op.operands)[start : start + sizes[-2]]]
    if given != wanted:
        shorter = min(len(given), len(wanted))
        number = next((place for place in range(shorter) if given[place] != wanted[place]), shorter)
        raise Invalid(
            "the launch gives other arguments than the kernel takes",
            argument=number,
            given=given[number] if number < len(given) else "none",
            taken=wanted[number] if number < len(wanted) else "none",
        )


def _check_block(kernel: ir.Operation, extents: list[ir.Value]) -> None:
    """A kernel that was compiled for a block is launched with no other."""
    if _BLOCK not in kernel.attributes:
        return
    known = list(mlir.ir.DenseI32ArrayAttr(kernel.attributes[_BLOCK]))
    given = [_constant(extent) for extent in extents]
    if any(extent is not None and extent != wanted for extent, wanted in zip(given, known, strict=True)):
        raise Invalid("the launch has another block than the kernel is compiled for", block=given, kernel=known)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    return int(mlir.ir.IntegerAttr(owner.operation.attributes["value"]).value)


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
