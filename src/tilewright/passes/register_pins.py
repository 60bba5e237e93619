"""Pins of register tensors, where registers have no addresses.

A pin of a register tensor takes its address, so that the tensor stays in memory, where a debugger reads it. Products of
a warpgroup write registers that have a name and no address: in a kernel with such products these pins go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.accessors import text_of
from tilewright.ir.walk import operations

if TYPE_CHECKING:
    from mlir import ir

_ADDRESSING = ("cute.iterator", "cute.ptr_to_int", "cute.ptr_cast", "cute.ptr_offset", "cute.view", "cute.make_tensor",
               "arith.extsi", "arith.extui")  # fmt: skip


def drop_register_pins(function: ir.Operation) -> None:
    """Take away the pins of register tensors from a function, with what computes their addresses alone."""
    for op in [op for op in operations(function) if op.name == "cute.pin"]:
        if text_of(op, "kind").split(" ")[::2][:2] == ["tensor", "rmem"] or _is_register_pointer(op):
            _erase(op)


def _is_register_pointer(op: ir.Operation) -> bool:
    kind = text_of(op, "kind").split(" ")
    return kind[0] == "pointer" and kind[-1] == "rmem"


def _erase(op: ir.Operation) -> None:
    """Erase an operation, and those that nothing else uses."""
    operands = list(op.operands)
    op.erase()
    for value in operands:
        source = value.owner
        operation = getattr(source, "operation", None)
        if operation is not None and operation.name in _ADDRESSING and not any(True for _ in value.uses):
            _erase(operation)
