"""Register tensors read before they are written: what LLVM would make of them stays to be seen.

LLVM takes an element that no one has written for whatever suits it: it drops a store of it, and folds what is computed
from it. Here such a value becomes the result of an empty inline assembly: a register of the PTX that nothing writes. It
costs no instruction, the code is the same for every target, and the emulator, which knows of each register whether
anything was written to it, reports where the value goes.

A module that reads no element unwritten on any path, which most are, is left as it is. Tensors at indices of run time
stay in local memory, of which the emulator knows what was written. While LLVM optimises they begin with such values, so
that it does not take what it reads for whatever suits it; what is left of that is dropped in the end.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

from tilewright.ir.llvm_api import Context, Machine, Prototypes, api_with, take_text

# Of llvm-c/Core.h: LLVMTypeKind, LLVMOpcode.
_HALF, _FLOAT, _DOUBLE, _INTEGER, _ARRAY, _POINTER, _VECTOR, _BFLOAT = 1, 2, 3, 8, 11, 12, 13, 18
_OF_FUNCTION = 0xFFFFFFFF
_ALLOCA, _STORE, _CALL = 26, 28, 45
_ADDRESSING = (29, 41, 60)  # getelementptr, bitcast, addrspacecast
_BUILDING = (12, 20, 24, 30, 31, 40, 41, 50, 51, 52)  # mul, shl, or, trunc, zext, inttoptr, bitcast, of vectors
_UNWRITTEN = re.compile(rb"\bundef\b")
_INSTRUCTION = re.compile(rb"  [^ \]]")
"""How the line of an instruction begins; those behind the first of a `switch` begin otherwise."""
_PROMOTE = "sroa"
_UNROLL = "function(early-cse,simplifycfg,loop(loop-rotate,indvars,loop-unroll-full),instsimplify,sroa)"
_SPLIT = "function(scalarizer)"
"""Elements of vectors one by one. A tensor that one branch writes as a vector and the other by elements becomes a
vector that lacks elements between two writes; the emulator marks registers, in which several elements lie, and would
report those that are written too."""
_SETTLE = "function(instcombine<no-verify-fixpoint>,adce)"
"""What sees that all elements of a vector were written one after another. Without its option, `instcombine` ends the
process where one round of it leaves something to be done."""
_MARK = "// unwritten "
_MARKED = re.compile(_MARK.encode())
_HIDDEN = "// empty at first: $0"

_VALUE, _TYPE = c_void_p, c_void_p
_PROTOTYPES: Prototypes = {
    "LLVMCloneModule": (c_void_p, (c_void_p,)),
    "LLVMGetModuleContext": (c_void_p, (c_void_p,)),
    "LLVMGetFirstFunction": (_VALUE, (c_void_p,)),
    "LLVMGetNextFunction": (_VALUE, (_VALUE,)),
    "LLVMIsDeclaration": (c_int, (_VALUE,)),
    "LLVMGetFirstBasicBlock": (c_void_p, (_VALUE,)),
    "LLVMGetNextBasicBlock": (c_void_p, (c_void_p,)),
    "LLVMGetFirstInstruction": (_VALUE, (c_void_p,)),
    "LLVMGetNextInstruction": (_VALUE, (_VALUE,)),
    "LLVMGetInstructionOpcode": (c_int, (_VALUE,)),
    "LLVMGetNumOperands": (c_int, (_VALUE,)),
    "LLVMGetOperand": (_VALUE, (_VALUE, c_int)),
    "LLVMSetOperand": (None, (_VALUE, c_int, _VALUE)),
    "LLVMIsAInstruction": (_VALUE, (_VALUE,)),
    "LLVMIsAMemSetInst": (_VALUE, (_VALUE,)),
    "LLVMInstructionEraseFromParent": (None, (_VALUE,)),
    "LLVMGetInstructionParent": (c_void_p, (_VALUE,)),
    "LLVMGetBasicBlockParent": (_VALUE, (c_void_p,)),
    "LLVMGetAllocatedType": (_TYPE, (_VALUE,)),
    "LLVMGetArrayLength2": (c_ulonglong, (_TYPE,)),
    "LLVMGetAlignment": (c_uint, (_VALUE,)),
    "LLVMPrintValueToString": (c_void_p, (_VALUE,)),
    "LLVMBuildMemSet": (_VALUE, (c_void_p, _VALUE, _VALUE, _VALUE, c_uint)),
    "LLVMIsConstant": (c_int, (_VALUE,)),
    "LLVMIsUndef": (c_int, (_VALUE,)),
    "LLVMIsPoison": (c_int, (_VALUE,)),
    "LLVMTypeOf": (_TYPE, (_VALUE,)),
    "LLVMGetTypeKind": (c_int, (_TYPE,)),
    "LLVMGetIntTypeWidth": (c_uint, (_TYPE,)),
    "LLVMGetElementType": (_TYPE, (_TYPE,)),
    "LLVMGetVectorSize": (c_uint, (_TYPE,)),
    "LLVMGetAggregateElement": (_VALUE, (_VALUE, c_uint)),
    "LLVMVoidTypeInContext": (_TYPE, (c_void_p,)),
    "LLVMIntTypeInContext": (_TYPE, (c_void_p, c_uint)),
    "LLVMFunctionType": (_TYPE, (_TYPE, c_void_p, c_uint, c_int)),
    "LLVMConstInt": (_VALUE, (_TYPE, c_ulonglong, c_int)),
    "LLVMGetInlineAsm": (
        _VALUE, (_TYPE, c_char_p, c_size_t, c_char_p, c_size_t, c_int, c_int, c_int, c_int),
    ),
    "LLVMGetEnumAttributeKindForName": (c_uint, (c_char_p, c_size_t)),
    "LLVMCreateEnumAttribute": (c_void_p, (c_void_p, c_uint, c_ulonglong)),
    "LLVMAddCallSiteAttribute": (None, (_VALUE, c_uint, c_void_p)),
    "LLVMCreateBuilderInContext": (c_void_p, (c_void_p,)),
    "LLVMDisposeBuilder": (None, (c_void_p,)),
    "LLVMPositionBuilderBefore": (None, (c_void_p, _VALUE)),
    "LLVMBuildCall2": (_VALUE, (c_void_p, _TYPE, _VALUE, c_void_p, c_uint, c_char_p)),
    "LLVMBuildTrunc": (_VALUE, (c_void_p, _VALUE, _TYPE, c_char_p)),
    "LLVMBuildZExt": (_VALUE, (c_void_p, _VALUE, _TYPE, c_char_p)),
    "LLVMBuildShl": (_VALUE, (c_void_p, _VALUE, _VALUE, c_char_p)),
    "LLVMBuildOr": (_VALUE, (c_void_p, _VALUE, _VALUE, c_char_p)),
    "LLVMBuildBitCast": (_VALUE, (c_void_p, _VALUE, _TYPE, c_char_p)),
    "LLVMBuildIntToPtr": (_VALUE, (c_void_p, _VALUE, _TYPE, c_char_p)),
    "LLVMBuildInsertElement": (_VALUE, (c_void_p, _VALUE, _VALUE, _VALUE, c_char_p)),
}  # fmt: skip


def keep_unwritten(context: Context, machine: Machine, module: int, *, undefined: bool, optimise: bool) -> int:
    """The module to go on with: `module` itself, or one in which elements read unwritten are empty registers.

    `undefined` says that undefined values stand in it already: of register tensors that are no memory. Without
    `optimise` these alone are marked.
    """
    llvm = api_with(_PROTOTYPES)
    if not undefined and not _slots(llvm, module):
        return module
    if not optimise:
        _Marker(llvm, module).mark_all([])
        return module
    other = context.adopt(llvm.LLVMCloneModule(module))
    marker = _Marker(llvm, other)
    if undefined:
        marker.mark_all([])
    machine.run_passes(context, other, _PROMOTE)
    if _slots(llvm, other):
        machine.run_passes(context, other, _UNROLL)
    slots = _slots(llvm, other)
    left = _contains(llvm, other, _UNWRITTEN)
    if not undefined and not slots and not left:
        return module
    if left:
        machine.run_passes(context, other, _SPLIT)
    marker.mark_all(slots)
    machine.run_passes(context, other, _SETTLE)
    return other if _contains(llvm, other, _MARKED) else module


def drop_unwritten(module: int) -> None:
    """Take away, after optimisation, what `keep_unwritten` wrote to local memory.

    An assembly that might have written there stands in its place, since generation of code optimises too.
    """
    llvm = api_with(_PROTOTYPES)
    context = llvm.LLVMGetModuleContext(module)
    builder = llvm.LLVMCreateBuilderInContext(context)
    for function in _functions(llvm, module):
        for instruction in list(_instructions(llvm, function)):
            place = _emptied(llvm, instruction)
            if place is not None:
                llvm.LLVMPositionBuilderBefore(builder, instruction)
                type_ = (c_void_p * 1)(llvm.LLVMTypeOf(place))
                signature = llvm.LLVMFunctionType(llvm.LLVMVoidTypeInContext(context), type_, 1, 0)
                llvm.LLVMBuildCall2(builder, signature, _asm(llvm, signature, _HIDDEN, "l,~{memory}", True),
                                    (c_void_p * 1)(place), 1, b"")  # fmt: skip
                llvm.LLVMInstructionEraseFromParent(instruction)
    llvm.LLVMDisposeBuilder(builder)


def _emptied(llvm: ctypes.CDLL, instruction: int) -> int | None:
    """The address in local memory to which an instruction writes an empty register; None for all others."""
    opcode = llvm.LLVMGetInstructionOpcode(instruction)
    if opcode == _STORE:
        value, place = (llvm.LLVMGetOperand(instruction, k) for k in (0, 1))
    elif opcode == _CALL and llvm.LLVMIsAMemSetInst(instruction):
        place, value = (llvm.LLVMGetOperand(instruction, k) for k in (0, 1))
    else:
        return None
    return place if _is_empty(llvm, value) and _is_local(llvm, place) else None


def _asm(llvm: ctypes.CDLL, signature: int, text: str, constraints: str, effects: bool) -> int:
    code, wants = text.encode(), constraints.encode()
    return int(llvm.LLVMGetInlineAsm(signature, code, len(code), wants, len(wants), effects, 0, 0, 0))


def _is_empty(llvm: ctypes.CDLL, value: int) -> bool:
    """Whether a value is made of empty registers."""
    if not llvm.LLVMIsAInstruction(value):
        return False
    if llvm.LLVMGetInstructionOpcode(value) == _CALL:
        return _MARK in take_text(llvm.LLVMPrintValueToString(value), llvm.LLVMDisposeMessage)
    if llvm.LLVMGetInstructionOpcode(value) not in _BUILDING:
        return False
    parts = [llvm.LLVMGetOperand(value, k) for k in range(llvm.LLVMGetNumOperands(value))]
    parts = [part for part in parts if not llvm.LLVMIsConstant(part)]
    return bool(parts) and all(_is_empty(llvm, part) for part in parts)


def _is_local(llvm: ctypes.CDLL, place: int) -> bool:
    """Whether an address is that of a stack slot, or of a part of it."""
    while llvm.LLVMIsAInstruction(place):
        opcode = llvm.LLVMGetInstructionOpcode(place)
        if opcode == _ALLOCA:
            return True
        if opcode not in _ADDRESSING:
            return False
        place = llvm.LLVMGetOperand(place, 0)
    return False


def _text(llvm: ctypes.CDLL, function: int) -> bytes:
    """The text of a function: to search it takes less time than to ask LLVM about each operand."""
    pointer = llvm.LLVMPrintValueToString(function)
    text = ctypes.string_at(pointer)
    llvm.LLVMDisposeMessage(pointer)
    return text


def _contains(llvm: ctypes.CDLL, module: int, pattern: re.Pattern[bytes]) -> bool:
    return any(pattern.search(_text(llvm, function)) for function in _functions(llvm, module))


def _slots(llvm: ctypes.CDLL, module: int) -> list[int]:
    """The slots of register tensors, arrays of bytes: the lowering puts them at the beginning of functions."""
    slots = []
    for function in _functions(llvm, module):
        instruction = llvm.LLVMGetFirstInstruction(llvm.LLVMGetFirstBasicBlock(function))
        while llvm.LLVMGetInstructionOpcode(instruction) == _ALLOCA:
            if _is_bytes(llvm, llvm.LLVMGetAllocatedType(instruction)):
                slots.append(instruction)
            instruction = llvm.LLVMGetNextInstruction(instruction)
    return slots


def _is_bytes(llvm: ctypes.CDLL, type_: int) -> bool:
    if llvm.LLVMGetTypeKind(type_) != _ARRAY:
        return False
    element = llvm.LLVMGetElementType(type_)
    return bool(llvm.LLVMGetTypeKind(element) == _INTEGER and llvm.LLVMGetIntTypeWidth(element) == 8)


def _functions(llvm: ctypes.CDLL, module: int) -> Iterator[int]:
    function = llvm.LLVMGetFirstFunction(module)
    while function:
        if not llvm.LLVMIsDeclaration(function):
            yield function
        function = llvm.LLVMGetNextFunction(function)


def _instructions(llvm: ctypes.CDLL, function: int) -> Iterator[int]:
    block = llvm.LLVMGetFirstBasicBlock(function)
    while block:
        instruction = llvm.LLVMGetFirstInstruction(block)
        while instruction:
            yield instruction
            instruction = llvm.LLVMGetNextInstruction(instruction)
        block = llvm.LLVMGetNextBasicBlock(block)


class _Marker:
    """Puts an empty register in the place of each undefined operand of a module."""

    def __init__(self, llvm: ctypes.CDLL, module: int) -> None:
        self.llvm, self.module = llvm, module
        self.context = llvm.LLVMGetModuleContext(module)
        self.count = 0

    def mark_all(self, slots: list[int]) -> None:
        """Mark the undefined operands, and give stack slots empty contents."""
        self.builder = self.llvm.LLVMCreateBuilderInContext(self.context)
        for function in _functions(self.llvm, self.module):
            operands = list(self._operands(function))
            self.llvm.LLVMPositionBuilderBefore(self.builder, self._begin(function))
            for instruction, place, value in operands:
                self.llvm.LLVMSetOperand(instruction, place, self._defined(value))
        for slot in slots:
            self._empty_slot(slot)
        self.llvm.LLVMDisposeBuilder(self.builder)

    def _empty_slot(self, slot: int) -> None:
        llvm = self.llvm
        function = llvm.LLVMGetBasicBlockParent(llvm.LLVMGetInstructionParent(slot))
        llvm.LLVMPositionBuilderBefore(self.builder, self._begin(function))
        size = llvm.LLVMConstInt(self._int(64), llvm.LLVMGetArrayLength2(llvm.LLVMGetAllocatedType(slot)), 0)
        llvm.LLVMBuildMemSet(self.builder, slot, self._integer(8), size, llvm.LLVMGetAlignment(slot))

    def _begin(self, function: int) -> int:
        """The first instruction of a function that is no stack slot."""
        instruction: int = self.llvm.LLVMGetFirstInstruction(self.llvm.LLVMGetFirstBasicBlock(function))
        while self.llvm.LLVMGetInstructionOpcode(instruction) == _ALLOCA:
            instruction = self.llvm.LLVMGetNextInstruction(instruction)
        return instruction

    def _operands(self, function: int) -> Iterator[tuple[int, int, int]]:
        """(instruction, place, value) of the operands that are undefined, in full or in some elements."""
        llvm = self.llvm
        instructions = list(_instructions(llvm, function))
        lines = [line for line in _text(llvm, function).split(b"\n") if _INSTRUCTION.match(line)]
        if len(lines) == len(instructions):
            instructions = [i for i, line in zip(instructions, lines, strict=True) if b"undef" in line]
        for instruction in instructions:
            for place in range(llvm.LLVMGetNumOperands(instruction)):
                value = llvm.LLVMGetOperand(instruction, place)
                if llvm.LLVMIsConstant(value) and self._undefined(value):
                    yield instruction, place, value

    def _undefined(self, value: int) -> bool:
        if self.llvm.LLVMIsUndef(value):
            return not self.llvm.LLVMIsPoison(value)
        return any(self._undefined(element) for element in self._elements(value))

    def _elements(self, value: int) -> list[int]:
        type_ = self.llvm.LLVMTypeOf(value)
        if self.llvm.LLVMGetTypeKind(type_) != _VECTOR:
            return []
        found = [self.llvm.LLVMGetAggregateElement(value, k) for k in range(self.llvm.LLVMGetVectorSize(type_))]
        return [element for element in found if element]

    def _defined(self, value: int) -> int:
        """The same value with a register in the place of whatever is undefined."""
        llvm, type_ = self.llvm, self.llvm.LLVMTypeOf(value)
        if llvm.LLVMGetTypeKind(type_) != _VECTOR:
            return self._register(type_) or value
        index = llvm.LLVMIntTypeInContext(self.context, 32)
        for place, element in enumerate(self._elements(value)):
            if self._undefined(element):
                new = self._defined(element)
                at = llvm.LLVMConstInt(index, place, 0)
                value = llvm.LLVMBuildInsertElement(self.builder, value, new, at, b"")
        return value

    def _register(self, type_: int) -> int | None:
        """A value of a scalar type that nothing has written; None for types that no register holds."""
        llvm, kind = self.llvm, self.llvm.LLVMGetTypeKind(type_)
        if kind in (_FLOAT, _DOUBLE):
            return self._empty(type_, "f" if kind == _FLOAT else "d")
        if kind in (_HALF, _BFLOAT):
            return self._built("BitCast", self._integer(16), type_)
        if kind == _POINTER:
            return self._built("IntToPtr", self._integer(64), type_)
        return self._integer(llvm.LLVMGetIntTypeWidth(type_)) if kind == _INTEGER else None

    def _integer(self, width: int) -> int:
        """An integer of any width, from registers of 16, 32 and 64 bits."""
        size = min((size for size in (16, 32, 64) if size >= width), default=64)
        value = self._empty(self._int(size), {16: "h", 32: "r", 64: "l"}[size])
        if width < size:
            return self._built("Trunc", value, self._int(width))
        whole = value if width == size else self._built("ZExt", value, self._int(width))
        for shift in range(64, width, 64):
            high = self._built("ZExt", self._empty(self._int(64), "l"), self._int(width))
            high = self._joined("Shl", high, self.llvm.LLVMConstInt(self._int(width), shift, 0))
            whole = self._joined("Or", whole, high)
        return whole

    def _int(self, width: int) -> int:
        return int(self.llvm.LLVMIntTypeInContext(self.context, width))

    def _built(self, what: str, value: int, type_: int) -> int:
        return int(getattr(self.llvm, f"LLVMBuild{what}")(self.builder, value, type_, b""))

    def _joined(self, what: str, a: int, b: int) -> int:
        return int(getattr(self.llvm, f"LLVMBuild{what}")(self.builder, a, b, b""))

    def _empty(self, type_: int, constraint: str) -> int:
        """The result of an assembly that does nothing. Each has a text of its own: LLVM takes equal ones for one."""
        llvm = self.llvm
        signature = llvm.LLVMFunctionType(type_, None, 0, 0)
        asm = _asm(llvm, signature, f"{_MARK}{self.count} $0", f"={constraint}", False)
        self.count += 1
        call = int(llvm.LLVMBuildCall2(self.builder, signature, asm, None, 0, b""))
        for name in (b"memory", b"nounwind", b"willreturn"):  # memory(none): what no one uses goes
            kind = llvm.LLVMGetEnumAttributeKindForName(name, len(name))
            llvm.LLVMAddCallSiteAttribute(call, _OF_FUNCTION, llvm.LLVMCreateEnumAttribute(self.context, kind, 0))
        return call
