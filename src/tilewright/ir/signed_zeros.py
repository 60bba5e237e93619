"""Selections between floats that LLVM would turn into `min` and `max`, which take -0.0 and 0.0 in another order.

LLVM 22 makes `x < 0.0 ? x : 0.0` one `min`, where NaN allows it. PTX orders -0.0 before 0.0, a comparison does not:
the sign of a zero would depend on the optimiser. A frozen condition is not recognised and costs no instruction.

Selections keep their `min` or `max` where it gives the same zeros: where one operand is a constant other than zero,
where the selection has `nsz`, and where the zero chosen of two equal ones is the one that `min` or `max` takes. That is
so for `x > 0.0 ? x : 0.0`, and not for `x < 0.0 ? x : 0.0`, which is 0.0 for -0.0. Doubles stay selections.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_double, c_int, c_uint, c_void_p

from tilewright.ir.llvm_api import Prototypes, api_with

# Of llvm-c/Core.h: LLVMOpcode, LLVMRealPredicate, LLVMTypeKind, LLVMFastMathFlags.
_SELECT, _FCMP, _FROM_INTEGER = 46, 43, (35, 36)
_GREATER, _LESS, _OR_EQUAL = (2, 3, 10, 11), (4, 5, 12, 13), (3, 5, 11, 13)
_DOUBLE, _VECTOR = 3, 13
_NO_SIGNED_ZEROS = 8

_PROTOTYPES: Prototypes = {
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
    "LLVMIsNull": (c_int, (c_void_p,)),
    "LLVMIsConstant": (c_int, (c_void_p,)),
    "LLVMGetAggregateElement": (c_void_p, (c_void_p, c_uint)),
    "LLVMGetVectorSize": (c_uint, (c_void_p,)),
    "LLVMGetElementType": (c_void_p, (c_void_p,)),
    "LLVMGetTypeKind": (c_int, (c_void_p,)),
    "LLVMTypeOf": (c_void_p, (c_void_p,)),
    "LLVMGetFCmpPredicate": (c_int, (c_void_p,)),
    "LLVMCanValueUseFastMathFlags": (c_int, (c_void_p,)),
    "LLVMGetFastMathFlags": (c_uint, (c_void_p,)),
    "LLVMGetModuleContext": (c_void_p, (c_void_p,)),
    "LLVMCreateBuilderInContext": (c_void_p, (c_void_p,)),
    "LLVMDisposeBuilder": (None, (c_void_p,)),
    "LLVMPositionBuilderBefore": (None, (c_void_p, c_void_p)),
    "LLVMBuildFreeze": (c_void_p, (c_void_p, c_void_p, ctypes.c_char_p)),
}


def keep_signed_zeros(module: int) -> None:
    """Freeze the conditions of such selections in an optimised LLVM module."""
    llvm = api_with(_PROTOTYPES)
    builder = llvm.LLVMCreateBuilderInContext(llvm.LLVMGetModuleContext(module))
    for select in list(_selects(llvm, module)):
        if _may_choose_a_zero(llvm, select):
            llvm.LLVMPositionBuilderBefore(builder, select)
            frozen = llvm.LLVMBuildFreeze(builder, llvm.LLVMGetOperand(select, 0), b"")
            llvm.LLVMSetOperand(select, 0, frozen)
    llvm.LLVMDisposeBuilder(builder)


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
    """Whether it chooses one of two floats that it compares, and `min` or `max` might choose another zero."""
    condition, *arms = (llvm.LLVMGetOperand(select, place) for place in range(3))
    if not llvm.LLVMIsAInstruction(condition) or llvm.LLVMGetInstructionOpcode(condition) != _FCMP:
        return False
    compared = [llvm.LLVMGetOperand(condition, place) for place in range(2)]
    if sorted(compared) != sorted(arms) or _has_no_signed_zeros(llvm, select):
        return False
    zeros = [_zeros(llvm, arm) for arm in arms]
    if "" in zeros:
        return False
    return _is_double(llvm, arms[0]) or not _takes_the_same(llvm, condition, arms[0] == compared[0], zeros)


def _takes_the_same(llvm: ctypes.CDLL, condition: int, in_order: bool, zeros: list[str]) -> bool:
    """Whether the zero chosen of two equal ones is that of `max`, 0.0 if one is, or of `min`, -0.0 if one is."""
    predicate = llvm.LLVMGetFCmpPredicate(condition)
    if predicate not in (*_GREATER, *_LESS):
        return False
    is_max = (predicate in _GREATER) == in_order
    chosen, other = zeros if predicate in _OR_EQUAL else zeros[::-1]
    return (chosen == "+" or other == "-") if is_max else (chosen == "-" or other == "+")


def _has_no_signed_zeros(llvm: ctypes.CDLL, select: int) -> bool:
    return bool(llvm.LLVMCanValueUseFastMathFlags(select) and llvm.LLVMGetFastMathFlags(select) & _NO_SIGNED_ZEROS)


def _zeros(llvm: ctypes.CDLL, value: int) -> str:
    """The signs of the zeros that a float, or an element of a vector, may be: `+`, `-`, both, or none."""
    if llvm.LLVMIsAInstruction(value) and llvm.LLVMGetInstructionOpcode(value) in _FROM_INTEGER:
        return "+"
    if not llvm.LLVMIsConstant(value):
        return "+-"
    type_ = llvm.LLVMTypeOf(value)
    if llvm.LLVMGetTypeKind(type_) != _VECTOR:
        return _zero(llvm, value)
    elements = (llvm.LLVMGetAggregateElement(value, place) for place in range(llvm.LLVMGetVectorSize(type_)))
    return "".join(sorted({sign for element in elements for sign in _zero(llvm, element)}))


def _zero(llvm: ctypes.CDLL, constant: int | None) -> str:
    lost = c_int()
    if constant is None or not llvm.LLVMIsAConstantFP(constant):
        return "+-"
    if llvm.LLVMConstRealGetDouble(constant, ctypes.byref(lost)) != 0:
        return ""
    return "+" if llvm.LLVMIsNull(constant) else "-"


def _is_double(llvm: ctypes.CDLL, value: int) -> bool:
    type_ = llvm.LLVMTypeOf(value)
    if llvm.LLVMGetTypeKind(type_) == _VECTOR:
        type_ = llvm.LLVMGetElementType(type_)
    return bool(llvm.LLVMGetTypeKind(type_) == _DOUBLE)
