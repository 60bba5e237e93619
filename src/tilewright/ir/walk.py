"""Walking operations.

An exception that a callback of MLIR's own walk raises comes out as a RuntimeError with a traceback for a message, and
Ctrl-C may come in any function of Python. So the lists here are gathered by callbacks written in C, and the walks of
users' passes are Python altogether.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlir import ir


@functools.cache
def _native_walk() -> Any:
    """MLIR's own `walk`; from now on operations have the one below, which lets exceptions through."""
    base = next(cls for cls in mlir.ir.Operation.__mro__ if "walk" in vars(cls))
    native = base.walk
    if getattr(native, "__module__", None) == __name__:  # an interrupt came between the two lines below
        return native.__wrapped__
    functools.update_wrapper(_walk, native, assigned=("__doc__",))
    base.walk = _walk
    return native


def install() -> None:
    """Make `operation.walk(callback)` let the exceptions of its callback through as they are."""
    _native_walk()


def _walk(self: Any, callback: Callable[[ir.Operation], ir.WalkResult], walk_order: Any = None) -> None:
    """`Operation.walk` in Python."""
    results = mlir.ir.WalkResult
    _visit(self.operation, callback, walk_order == mlir.ir.WalkOrder.PRE_ORDER, results.SKIP, results.INTERRUPT)


def _visit(op: Any, callback: Any, before: bool, skip: Any, interrupt: Any) -> bool:
    """Walk `op`; False where the callback ends the walk."""
    if before:
        result = callback(op)
        if result in (interrupt, skip):
            return bool(result == skip)
    for region in op.regions:
        for block in region:
            for inner in block:
                if not _visit(inner.operation, callback, before, skip, interrupt):
                    return False
    return before or callback(op) != interrupt


def operations(root: ir.Operation, *, inner_first: bool = False) -> list[ir.Operation]:
    """`root` and all operations inside it, each before those in its regions, or after them."""
    order = mlir.ir.WalkOrder.POST_ORDER if inner_first else mlir.ir.WalkOrder.PRE_ORDER
    found: list[ir.Operation] = []
    _native_walk()(root, functools.partial(_noting(), found), order)
    return found


@functools.cache
def _noting() -> Any:
    """A function written in C that appends an operation to a list, and tells MLIR to go on.

    (No dictionary notes them: `hash(op)` is of what an operation says, the same for all branches without operands.)
    """
    append = ctypes.pythonapi["PyList_Append"]  # a function of its own, unlike the attribute
    append.argtypes = (ctypes.py_object, ctypes.py_object)
    append.restype = (mlir.ir.WalkResult.ADVANCE,).__getitem__  # its result is 0, or an exception
    return append


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def address(op: ir.Operation) -> int:
    """What tells operations apart while they exist. (`hash(op)` is of what an operation says, and changes with it.)"""
    capsule = op._CAPIPtr
    return int(_capsule_pointer(capsule, _capsule_name(capsule)))


def unknown_operation(found: Sequence[ir.Operation]) -> ir.Operation | None:
    """The first of these operations that no dialect has."""
    context = found[0].context
    unknown = {name for name in {op.name for op in found} if not context.is_registered_operation(name)}
    return next((op for op in found if op.name in unknown), None) if unknown else None
