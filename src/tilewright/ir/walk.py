"""Walking operations.

An exception that a callback of MLIR's own walk raises comes out as a RuntimeError with a traceback for a message, so
code that may raise goes through these lists.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir

if TYPE_CHECKING:
    from mlir import ir


def operations(root: ir.Operation) -> list[ir.Operation]:
    """`root` and all operations inside it, each before those in its regions."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> Any:
        found.append(op)
        return mlir.ir.WalkResult.ADVANCE

    root.walk(visit, mlir.ir.WalkOrder.PRE_ORDER)
    return found


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def address(op: ir.Operation) -> int:
    """What tells operations apart while they exist. (`hash(op)` is of what an operation says, and changes with it.)"""
    capsule = op._CAPIPtr
    return int(_capsule_pointer(capsule, _capsule_name(capsule)))


def unknown_operation(root: ir.Operation) -> ir.Operation | None:
    """The first operation inside `root` that no dialect has."""
    context, known = root.context, set()
    for op in operations(root):
        name = op.name
        if name not in known:
            if not context.is_registered_operation(name):
                return op
            known.add(name)
    return None
