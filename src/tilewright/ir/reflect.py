"""`__nvvm_reflect`: the questions that libdevice's functions ask about how they are compiled, answered here.

LLVM's own pass answers 0 to what it does not know, which for square roots means the approximate instruction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

from tilewright.ir.llvm_api import Prototypes, api_with

_PROTOTYPES: Prototypes = {
    "LLVMGetFirstUse": (c_void_p, (c_void_p,)),
    "LLVMGetNextUse": (c_void_p, (c_void_p,)),
    "LLVMGetUser": (c_void_p, (c_void_p,)),
    "LLVMIsAGlobalVariable": (c_void_p, (c_void_p,)),
    "LLVMGetInitializer": (c_void_p, (c_void_p,)),
    "LLVMIsConstantString": (c_int, (c_void_p,)),
    "LLVMGetAsString": (c_void_p, (c_void_p, ctypes.POINTER(c_size_t))),
    "LLVMGetOperand": (c_void_p, (c_void_p, c_uint)),
    "LLVMTypeOf": (c_void_p, (c_void_p,)),
    "LLVMConstInt": (c_void_p, (c_void_p, c_ulonglong, c_int)),
    "LLVMReplaceAllUsesWith": (None, (c_void_p, c_void_p)),
    "LLVMInstructionEraseFromParent": (None, (c_void_p,)),
    "LLVMGetNamedFunction": (c_void_p, (c_void_p, c_char_p)),
}


def answer_reflect(module: int, answers: Mapping[str, int]) -> None:
    """Replace the calls of `__nvvm_reflect(name)` in an LLVM module whose name is in `answers` by the number."""
    llvm = api_with(_PROTOTYPES)
    function = llvm.LLVMGetNamedFunction(module, b"__nvvm_reflect")
    for call in _users(llvm, function) if function else ():
        answer = answers.get(_text(llvm, llvm.LLVMGetOperand(call, 0)))
        if answer is not None:
            llvm.LLVMReplaceAllUsesWith(call, llvm.LLVMConstInt(llvm.LLVMTypeOf(call), answer, False))
            llvm.LLVMInstructionEraseFromParent(call)


def _users(llvm: ctypes.CDLL, value: int) -> list[int]:
    users, use = [], llvm.LLVMGetFirstUse(value)
    while use:
        users.append(llvm.LLVMGetUser(use))
        use = llvm.LLVMGetNextUse(use)
    return users


def _text(llvm: ctypes.CDLL, name: int) -> str:
    """The string that a global variable holds, without the zero at its end."""
    variable = llvm.LLVMIsAGlobalVariable(name)
    held = llvm.LLVMGetInitializer(variable) if variable else None
    if not held or not llvm.LLVMIsConstantString(held):
        return ""
    size = c_size_t()
    data = llvm.LLVMGetAsString(held, ctypes.byref(size))
    return ctypes.string_at(data, size.value).rstrip(b"\0").decode()
