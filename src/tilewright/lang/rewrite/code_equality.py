"""Whether two code objects come from the same source.

The same text can give different instructions: the compiler calls attributes of what the module imports in another way
than methods, and a notebook compiles each statement of a cell apart, so that it sees no imports.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType

_WAYS_TO_CALL = {"LOAD_METHOD": "LOAD_ATTR"}
_NO_MEANING = {"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"}


def same(a: CodeType, b: CodeType) -> bool:
    """True when the two do the same with the same names, apart from where they stand in a file."""
    return _key(a) == _key(b) or (_names(a) == _names(b) and _meaning(a) == _meaning(b))


def inside(code: CodeType) -> Iterator[CodeType]:
    """The code objects in the constants of `code`, theirs too."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from inside(const)


def _names(code: CodeType) -> tuple[object, ...]:
    flags = code.co_flags & ~inspect.CO_NESTED
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, flags)
    return (*counts, code.co_varnames, code.co_freevars, code.co_cellvars)


def _key(code: CodeType) -> tuple[object, ...]:
    return (*_names(code), code.co_code, code.co_names, tuple(map(_constant, code.co_consts)))


def _constant(constant: object) -> object:
    if isinstance(constant, CodeType):
        return _key(constant)
    if isinstance(constant, frozenset):
        return constant
    if isinstance(constant, str):  # the body of a class holds its qualified name
        return constant.rpartition("<locals>.")[2]
    return type(constant), repr(constant)  # by text, for 0.0 is not -0.0, nor 1 True


def _meaning(code: CodeType) -> list[object]:
    """The instructions, calls of attributes and of methods alike; jumps by what they skip."""
    kept = [instruction for instruction in dis.get_instructions(code) if instruction.opname not in _NO_MEANING]
    index = {instruction.offset: number for number, instruction in enumerate(kept)}
    found: list[object] = []
    for instruction in kept:
        argument = instruction.argval
        if instruction.opname == "KW_NAMES":
            argument = code.co_consts[instruction.arg or 0]
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            offset = argument
            while offset not in index and offset < len(code.co_code):
                offset += 2
            argument = index.get(offset)
        elif isinstance(argument, CodeType):
            argument = _names(argument), _meaning(argument)
        else:
            argument = _constant(argument)
        found.append((_WAYS_TO_CALL.get(instruction.opname, instruction.opname), argument))
    return found
