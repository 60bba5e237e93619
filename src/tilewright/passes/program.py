"""The parts of a module of stage `cute`: kernels, host functions, their arguments by name, launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import constant_of
from tilewright.ir.walk import operations

if TYPE_CHECKING:
    from mlir import ir

NAME = "tilewright.name"  # of an allocation; of an argument in `arg_attrs`
Extent = "int | ir.Value"


@dataclass(frozen=True)
class Launch:
    """A launch by the host function. Extents are numbers where they are known, else values.

    `smem` is None where the kernel's own allocations say how much it gets; `arguments` are by the kernel's names.
    """

    op: ir.Operation
    kernel: str
    grid: tuple[int | ir.Value, ...]
    block: tuple[int | ir.Value, ...]
    cluster: tuple[int | ir.Value, ...]
    smem: int | ir.Value | None
    arguments: dict[str, ir.Value]


def kernels(module: ir.Operation) -> list[ir.Operation]:
    """The `gpu.func`s of a module, in order."""
    found: list[ir.Operation] = []
    for block in [block for region in module.regions for block in region]:
        for op in [op.operation for op in block]:
            if op.name == "gpu.func":
                found.append(op)
            elif op.name in ("gpu.module", "builtin.module"):
                found += kernels(op)
    return found


def host_functions(module: ir.Operation) -> list[ir.Operation]:
    """The `func.func`s of a module, in order."""
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "func.func"]


def functions(module: ir.Operation) -> list[ir.Operation]:
    """The host functions and the kernels of a module, device functions beside the kernels included."""
    tops = [op.operation for op in module.regions[0].blocks[0]]
    inner = [op.operation for top in tops if top.name == "gpu.module" for op in top.regions[0].blocks[0]]
    return [op for op in (*tops, *inner) if op.name in ("func.func", "gpu.func")]


def function_of(op: ir.Operation) -> ir.Operation | None:
    """The kernel or host function that an operation is in; None for operations around them."""
    found = op
    while found is not None and found.name not in ("gpu.func", "func.func"):
        found = found.parent.operation if found.parent is not None else None
    return found


def on_device(op: ir.Operation) -> bool:
    """True inside a kernel, False in host code."""
    function = function_of(op)
    return function is not None and function.name == "gpu.func"


def arguments(function: ir.Operation) -> dict[str, ir.Value]:
    """The arguments of a kernel or host function by the names of the Python parameters. On the host an array is a
    pointer, and its extents and strides are arguments of their own: `x`, `x.shape0`, ..."""
    values = list(function.regions[0].blocks[0].arguments)
    names = [argument_name(value) for value in values]
    return {name or f"arg{number}": value for number, (name, value) in enumerate(zip(names, values, strict=True))}


def argument_name(value: ir.Value) -> str | None:
    """The name of the argument of a function that `value` is, "" where it has none; None for other values."""
    if not isinstance(value.owner, mlir.ir.Block):
        return None
    function = value.owner.owner.operation
    if function.name not in ("gpu.func", "func.func"):
        return None
    if "arg_attrs" not in function.attributes:
        return ""
    named = mlir.ir.ArrayAttr(function.attributes["arg_attrs"])[mlir.ir.BlockArgument(value).arg_number]
    attributes = mlir.ir.DictAttr(named)
    return str(mlir.ir.StringAttr(attributes[NAME]).value) if NAME in attributes else ""


def launches(module: ir.Operation) -> list[Launch]:
    """The launches of a module, in order."""
    by_name = {str(mlir.ir.StringAttr(op.attributes["sym_name"]).value): op for op in kernels(module)}
    return [_launch(op, by_name) for op in operations(module) if op.name == "gpu.launch_func"]


def _launch(op: ir.Operation, by_name: dict[str, ir.Operation]) -> Launch:
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands, parts = iter(op.operands), []
    for count in (sizes[0], 3, 3, sum(sizes[7:10]), sizes[10], sizes[11]):
        parts.append([next(operands) for _ in range(count)])
    _, grid, block, cluster, smem, passed = parts
    kernel = str(mlir.ir.SymbolRefAttr(op.attributes["kernel"]).value[-1])
    names = list(arguments(by_name[kernel])) if kernel in by_name else [f"arg{n}" for n in range(len(passed))]
    extents = [tuple(map(_extent, part)) for part in (grid, block, cluster or [])]
    return Launch(
        op,
        kernel,
        extents[0],
        extents[1],
        extents[2] or (1, 1, 1),
        _extent(smem[0]) if smem else None,
        dict(zip(names, passed, strict=False)),
    )


def _extent(value: ir.Value) -> int | ir.Value:
    found = constant_of(value)
    return value if found is None else int(found)
