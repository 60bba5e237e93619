"""Verifiers of what stands around operations of `cute`: loops, signatures, launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir, types
from tilewright.ir.context import current
from tilewright.passes.verify.bulk import map_info
from tilewright.passes.verify.operation import Invalid, memory
from tilewright.passes.verify.table import verifies_values

if TYPE_CHECKING:
    from mlir import ir


_BLOCK = "known_block_size"
_LAUNCHES = [[0, 1, 1, 1, 1, 1, 1, *cluster, shared] for cluster in ([0] * 3, [1] * 3) for shared in (0, 1)]
"""Groups of operands before the kernel's: tokens, grid, block, cluster, shared memory."""
_STREAMS = [[], ["!llvm.ptr"]]


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
            if types.is_tensor_map(argument.type):
                map_info(argument.type)
            elif types.is_cute(argument.type):
                memory(argument.type)
        return


def kernels_of(found: Sequence[ir.Operation]) -> dict[tuple[str, str], ir.Operation]:
    """The kernels among all operations of a module, by the names that a launch gives: of their module, their own."""
    kernels = [op for op in found if op.name == "gpu.func"]
    return {(_symbol(op.parent), _symbol(op)): op for op in kernels}


def _symbol(op: ir.Operation) -> str:
    return str(mlir.ir.StringAttr(op.attributes["sym_name"]).value)


def check_launch(op: ir.Operation, kernels: Mapping[tuple[str, str], ir.Operation]) -> None:
    """The kernel must be there, and take what the launch gives."""
    named, sizes = (op.attributes.get(name) for name in ("kernel", "operandSegmentSizes"))
    path = tuple(named.value) if isinstance(named, mlir.ir.SymbolRefAttr) else ()
    kernel = kernels.get(path)
    if kernel is None:
        raise Invalid("the launch names no kernel", kernel=named)
    operands = list(op.operands)
    given = tuple([operand.type for operand in operands])
    signature = kernel.attributes["function_type"]
    known: set[Any] = current().cached("verified launches", set)
    if (sizes, signature, given) not in known:
        _check_groups(sizes, given)
        _check_arguments(sizes, signature, given)
        known.add((sizes, signature, given))
    _check_block(kernel, operands[3:6])


def _check_groups(sizes: ir.Attribute | None, given: Sequence[ir.Type]) -> None:
    found = list(sizes) if isinstance(sizes, mlir.ir.DenseI32ArrayAttr) else []
    streams = given[len(given) - found[-1] :] if found else ()
    if found[:-2] not in _LAUNCHES or sum(found) != len(given) or [str(type_) for type_ in streams] not in _STREAMS:
        raise Invalid(
            "a launch has three extents of the grid and of the block, and may have three of the cluster, the bytes of "
            "shared memory, and a stream",
            sizes=sizes,
            operands=len(given),
        )


def _check_arguments(sizes: ir.Attribute, signature: ir.Attribute, given: Sequence[ir.Type]) -> None:
    wanted = list(mlir.ir.FunctionType(mlir.ir.TypeAttr(signature).value).inputs)
    groups = list(mlir.ir.DenseI32ArrayAttr(sizes))
    start = sum(groups[:-2])
    arguments = list(given[start : start + groups[-2]])
    if arguments != wanted:
        shorter = min(len(arguments), len(wanted))
        place = next((place for place in range(shorter) if arguments[place] != wanted[place]), shorter)
        raise Invalid(
            "the launch gives other arguments than the kernel takes",
            argument=place,
            given=arguments[place] if place < len(arguments) else "none",
            taken=wanted[place] if place < len(wanted) else "none",
        )


def _check_block(kernel: ir.Operation, extents: list[ir.Value]) -> None:
    """A kernel that was compiled for a block is launched with no other."""
    if _BLOCK not in kernel.attributes:
        return
    known = list(mlir.ir.DenseI32ArrayAttr(kernel.attributes[_BLOCK]))
    block = [_constant(extent) for extent in extents]
    if any(extent is not None and extent != wanted for extent, wanted in zip(block, known, strict=True)):
        raise Invalid("the launch has another block than the kernel is compiled for", block=block, kernel=known)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    number = owner.operation.attributes["value"]
    return int(number.value) if isinstance(number, mlir.ir.IntegerAttr) else None
