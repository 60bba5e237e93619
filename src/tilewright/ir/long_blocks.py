"""Blocks of many thousands of instructions, which LLVM generates code for in time that grows with their square.

Two of its searches go through a whole block for each instruction that reads memory: the one for accesses to make a
vector of, and the chain of accesses that instruction selection builds. An assembly of a comment, of which LLVM does not
know whether it returns, ends both. It holds up no arithmetic, and the comment is taken out of the PTX again.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Final

from tilewright.ir.llvm_api import Prototypes, api_with

LONG: Final = 4096
"""Blocks of up to so many instructions stay whole: the code of nearly all kernels is as LLVM makes it."""
PIECE: Final = 2048
"""The instructions between two ends in longer ones."""

_PHI: Final = 44  # LLVMOpcode, of llvm-c/Core.h
_MIN_LINE: Final = 16  # characters of an instruction as text, at least
_OF_FUNCTION: Final = 0xFFFFFFFF
_END: Final = "// end of piece"
_WRITTEN: Final = re.compile(rf"[ \t]*// begin inline asm\n[ \t]*{_END} \d+\n[ \t]*// end inline asm\n")

_PROTOTYPES: Prototypes = {
    "LLVMGetFirstFunction": (c_void_p, (c_void_p,)),
    "LLVMGetNextFunction": (c_void_p, (c_void_p,)),
    "LLVMGetFirstBasicBlock": (c_void_p, (c_void_p,)),
    "LLVMGetNextBasicBlock": (c_void_p, (c_void_p,)),
    "LLVMGetFirstInstruction": (c_void_p, (c_void_p,)),
    "LLVMGetNextInstruction": (c_void_p, (c_void_p,)),
    "LLVMGetInstructionOpcode": (c_int, (c_void_p,)),
    "LLVMGetModuleContext": (c_void_p, (c_void_p,)),
    "LLVMVoidTypeInContext": (c_void_p, (c_void_p,)),
    "LLVMFunctionType": (c_void_p, (c_void_p, c_void_p, c_uint, c_int)),
    "LLVMGetInlineAsm": (
        c_void_p, (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_int, c_int, c_int, c_int),
    ),
    "LLVMCreateBuilderInContext": (c_void_p, (c_void_p,)),
    "LLVMDisposeBuilder": (None, (c_void_p,)),
    "LLVMPositionBuilderBefore": (None, (c_void_p, c_void_p)),
    "LLVMBuildCall2": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_uint, c_char_p)),
    "LLVMGetEnumAttributeKindForName": (c_uint, (c_char_p, c_size_t)),
    "LLVMCreateEnumAttribute": (c_void_p, (c_void_p, c_uint, c_ulonglong)),
    "LLVMAddCallSiteAttribute": (None, (c_void_p, c_uint, c_void_p)),
}  # fmt: skip


def may_have_long_blocks(source: str) -> bool:
    """Whether a module may have one, from its text before optimisation; "" where there is none."""
    return not source or len(source) > LONG * _MIN_LINE or "llvm.loop.unroll" in source


def divide_long_blocks(module: int) -> bool:
    """Put ends of pieces into the long blocks of an optimised LLVM module; whether there are any.

    The instructions of the module are gone through twice, of the long blocks alone the second time.
    """
    llvm = api_with(_PROTOTYPES)
    places = [place for block in _blocks(llvm, module) for place in _places(llvm, block)]
    if places:
        _Ends(llvm, module).put(places)
    return bool(places)


def without_ends(ptx: str) -> str:
    """PTX without the ends of pieces."""
    return _WRITTEN.sub("", ptx) if _END in ptx else ptx


def _blocks(llvm: ctypes.CDLL, module: int) -> Iterator[int]:
    function = llvm.LLVMGetFirstFunction(module)
    while function:
        block = llvm.LLVMGetFirstBasicBlock(function)
        while block:
            yield block
            block = llvm.LLVMGetNextBasicBlock(block)
        function = llvm.LLVMGetNextFunction(function)


def _places(llvm: ctypes.CDLL, block: int) -> list[int]:
    """The instructions before which a piece ends."""
    following, instruction = llvm.LLVMGetNextInstruction, llvm.LLVMGetFirstInstruction(block)
    instructions = []
    while instruction:
        instructions.append(instruction)
        instruction = following(instruction)
    if len(instructions) <= LONG:
        return []
    return [place for place in instructions[PIECE::PIECE] if llvm.LLVMGetInstructionOpcode(place) != _PHI]


class _Ends:
    """Builds ends of pieces in a module."""

    def __init__(self, llvm: ctypes.CDLL, module: int) -> None:
        self.llvm = llvm
        self.context = llvm.LLVMGetModuleContext(module)
        self.signature = llvm.LLVMFunctionType(llvm.LLVMVoidTypeInContext(self.context), None, 0, 0)

    def put(self, places: list[int]) -> None:
        """Put an end before each of these instructions; each has a number, since equal ones would become one."""
        attributes = [self._attribute(b"nounwind", 0), self._attribute(b"memory", 0)]
        builder = self.llvm.LLVMCreateBuilderInContext(self.context)
        for number, place in enumerate(places):
            self.llvm.LLVMPositionBuilderBefore(builder, place)
            text = f"{_END} {number}".encode()
            code = self.llvm.LLVMGetInlineAsm(self.signature, text, len(text), b"", 0, 1, 0, 0, 0)
            call = self.llvm.LLVMBuildCall2(builder, self.signature, code, None, 0, b"")
            for attribute in attributes:
                self.llvm.LLVMAddCallSiteAttribute(call, _OF_FUNCTION, attribute)
        self.llvm.LLVMDisposeBuilder(builder)

    def _attribute(self, name: bytes, value: int) -> int:
        kind = self.llvm.LLVMGetEnumAttributeKindForName(name, len(name))
        return int(self.llvm.LLVMCreateEnumAttribute(self.context, kind, value))
