"""Selections between floats that LLVM would turn into `min` and `max`, which take -0.0 and 0.0 in another order.

LLVM 22 makes `x < 0.0 ? x : 0.0` one `min`, where NaN allows it. PTX orders -0.0 before 0.0, a comparison does not:
the sign of a zero would depend on the optimiser. A frozen condition is not recognised and costs no instruction.
Selections whose other operand is a constant other than zero keep their `min` and `max`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_double, c_int, c_void_p
from typing import Any

from tilewright.ir.llvm_api import api

_SELECT, _FCMP = 46, 43  # LLVMOpcode of llvm-c/Core.h

_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "LLVMGetFirstFunction": (c_void_p, (c_void_p,)),
    "LLVMGetNextFunction": (c_void_p, (c_void_p,)),
    "LLVMGetFirstBasicBlock": (c_void_p, (c_void_p,)),
    "LLVMGetNextBasicBlock": (c_void_p, (c_void_p,)),
    "LLVMGetFirstInstruction": (c_void_p, (c_void_p,)),
    "LLVMGetNextInstruction": (c_void_p, (c_void_p,)),
    "LLVMGetInstructionOpcode": (c_int, (c_void_p,)),
    "LLVMGetOperand": (c_void_p, (c_void_p, c_int)),
    "LLVMSetOperand": (None, (c_void_p, c_int, c_void_p)),
    "LLVMIsAInstruction": (c_void_p, (c_void_p,)),
    "LLVMIsAConstantFP": (c_void_p, (c_void_p,)),
    "LLVMConstRealGetDouble": (c_double, (c_void_p, ctypes.POINTER(c_int))),
    "LLVMGetModuleContext": (c_void_p, (c_void_p,)),
    "LLVMCreateBuilderInContext": (c_void_p, (c_void_p,)),
    "LLVMDisposeBuilder": (None, (c_void_p,)),
    "LLVMPositionBuilderBefore": (None, (c_void_p, c_void_p)),
    "LLVMBuildFreeze": (c_void_p, (c_void_p, c_void_p, ctypes.c_char_p)),
}


def keep_signed_zeros(module: int) -> None:
    """Freeze the conditions of such selections in an optimised LLVM module."""
    llvm = _library()
    builder = llvm.LLVMCreateBuilderInContext(llvm.LLVMGetModuleContext(module))
    for select in list(_selects(llvm, module)):
        if _may_choose_a_zero(llvm, select):
            llvm.LLVMPositionBuilderBefore(builder, select)
            frozen = llvm.LLVMBuildFreeze(builder, llvm.LLVMGetOperand(select, 0), b"")
            llvm.LLVMSetOperand(select, 0, frozen)
    llvm.LLVMDisposeBuilder(builder)


def _library() -> ctypes.CDLL:
    llvm = api()
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(llvm, name)
        function.restype, function.argtypes = result, arguments
    return llvm


def _selects(llvm: ctypes.CDLL, module: int) -> Iterator[int]:
    function = llvm.LLVMGetFirstFunction(module)
    while function:
        block = llvm.LLVMGetFirstBasicBlock(function)
        while block:
            instruction = llvm.LLVMGetFirstInstruction(block)
            while instruction:
                if llvm.LLVMGetInstructionOpcode(instruction) == _SELECT:
                    yield instruction
                instruction = llvm.LLVMGetNextInstruction(instruction)
            block = llvm.LLVMGetNextBasicBlock(block)
        function = llvm.LLVMGetNextFunction(function)


def _may_choose_a_zero(llvm: ctypes.CDLL, select: int) -> bool:
    """Whether it compares two floats that may both be zeros, and chooses one of them."""
    condition, *arms = (llvm.LLVMGetOperand(select, place) for place in range(3))
    if not llvm.LLVMIsAInstruction(condition) or llvm.LLVMGetInstructionOpcode(condition) != _FCMP:
        return False
    compared = [llvm.LLVMGetOperand(condition, place) for place in range(2)]
    return sorted(compared) == sorted(arms) and not any(_is_other_than_zero(llvm, arm) for arm in arms)


def _is_other_than_zero(llvm: ctypes.CDLL, value: int) -> bool:
    lost = c_int()
    return bool(llvm.LLVMIsAConstantFP(value)) and llvm.LLVMConstRealGetDouble(value, ctypes.byref(lost)) != 0
