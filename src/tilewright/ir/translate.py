"""A module of the llvm and nvvm dialects as LLVM IR text.

`mlir.dialects.llvm.translate_module_to_llvmir` ends the process where a translation fails; the function of MLIR's C API
behind it returns null instead.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.llvm_api import Context, LlvmError, take_text
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir


class _Operation(ctypes.Structure):
    """`MlirOperation` of mlir-c/IR.h."""

    _fields_ = (("pointer", ctypes.c_void_p),)


@functools.cache
def _translator() -> Any:
    """`mlirTranslateModuleToLLVMIR(MlirOperation, LLVMContextRef) -> LLVMModuleRef`, from the bindings."""
    folder = Path(mlir.ir.__file__).parent / "_mlir_libs"
    library = next(
        path for pattern in ("libMLIRPythonCAPI.so*", "libMLIRPythonCAPI*.dylib") for path in folder.glob(pattern)
    )
    function = ctypes.PyDLL(str(library)).mlirTranslateModuleToLLVMIR
    function.argtypes, function.restype = (_Operation, ctypes.c_void_p), ctypes.c_void_p
    return function


def to_llvm_ir(module: ir.Operation) -> str:
    """The text of `module` as LLVM IR.

    Raises:
        LlvmError: an operation has no translation; it names the user's line.
    """
    with Context() as context:
        # MLIR prints what a handler raises, and goes on: so none in Python before something is wrong. `bool` is true.
        translated = _translate(module, context, bool)
        if not translated:
            raise _refusal(module, context)
        text = take_text(context.llvm.LLVMPrintModuleToString(translated), context.llvm.LLVMDisposeMessage)
        context.llvm.LLVMDisposeModule(translated)
        return text


def _translate(module: ir.Operation, context: Context, note: Callable[[Any], bool]) -> Any:
    """The LLVM module, null where there is no translation; `note` is told why, and gives True."""
    handler = module.context.attach_diagnostic_handler(note)
    try:
        return _translator()(_Operation(_pointer(module)), context.handle)
    finally:
        handler.detach()


def _refusal(module: ir.Operation, context: Context) -> LlvmError:
    reasons: list[tuple[str, SourceLocation | None]] = []
    outside: list[BaseException] = []

    def note(diagnostic: Any) -> bool:
        try:
            reasons.append((str(diagnostic.message), source_location(diagnostic.location)))
        except BaseException as error:  # noqa: BLE001  (must not cross MLIR)
            outside.append(error)
        return True

    _translate(module, context, note)
    if outside:
        raise outside[0]
    reason, place = reasons[0] if reasons else ("MLIR gives no reason", None)
    return LlvmError(f"no translation to LLVM IR: {reason}", location=place)


def _pointer(module: ir.Operation) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(module._CAPIPtr, b"mlir.ir.Operation._CAPIPtr"))
