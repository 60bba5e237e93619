"""What a code object reads: globals and free variables with the attributes read off them, imports, names.

Read off the bytecode once for each code object. Only the first attributes of a chain `a.b.c` can be told apart from
attributes of computed values; for these there is `names`, every name that the code has.
"""

from __future__ import annotations

import dis
import hashlib
import re
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from tilewright.base.location import stable_file

Chain = tuple[str, ...]
"""A variable, and the attributes read off it in a row."""


@dataclass(frozen=True)
class Import:
    """`import module`, or `from module import names`, inside a function; `level` counts the dots before it."""

    module: str
    names: tuple[str, ...]
    level: int


@dataclass(frozen=True)
class CodeReads:
    """What a code object and those inside it read.

    Attributes:
        digest: of the code itself: instructions, constants, names, file and lines.
        globals: chains that begin with a global or builtin.
        free: chains that begin with a free variable of the code object.
        imports: import statements.
        names: every name and every string constant that could be one.
    """

    digest: bytes
    globals: tuple[Chain, ...]
    free: tuple[Chain, ...]
    imports: tuple[Import, ...]
    names: tuple[str, ...]


_known: dict[int, tuple[weakref.ref[CodeType], CodeReads]] = {}


def code_reads(code: CodeType) -> CodeReads:
    """What `code` reads; worked out once."""
    known = _known.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    found = _read(code)
    number = id(code)
    _known[number] = weakref.ref(code, lambda _: _known.pop(number, None)), found
    return found


def _read(code: CodeType) -> CodeReads:
    globals_: dict[Chain, None] = {}
    free: dict[Chain, None] = {}
    imports: dict[Import, None] = {}
    names: dict[str, None] = {}
    for part in _parts(code):
        own = frozenset(code.co_freevars)
        for kind, chain in _chains(part):
            if kind == "global":
                globals_[chain] = None
            elif chain[0] in own:
                free[chain] = None
        imports.update(dict.fromkeys(_imports(part)))
        names.update(dict.fromkeys(part.co_names))
        names.update(dict.fromkeys(_texts(part.co_consts)))
    free.update(dict.fromkeys((name,) for name in code.co_freevars if not any(chain[0] == name for chain in free)))
    return CodeReads(_digest(code), tuple(globals_), tuple(free), tuple(imports), tuple(names))


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, str) and "{" in constant:
            yield from fields(constant)
        elif isinstance(constant, tuple):
            yield from _texts(constant)


def fields(text: str) -> tuple[str, ...]:
    """The attributes that a text asks for where it is a format: `step` of "{0.step}"."""
    return tuple(name for field in _FIELD.findall(text) for name in _ATTRIBUTE_OF_FIELD.findall(field))


_FIELD: Final = re.compile(r"\{([^{}!:]*)")
_ATTRIBUTE_OF_FIELD: Final = re.compile(r"\.(\w+)")
_GLOBAL: Final = {dis.opmap[name] for name in ("LOAD_GLOBAL",) if name in dis.opmap}
_NAME: Final = {
    dis.opmap[name] for name in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") if name in dis.opmap
}  # fmt: skip
_FREE: Final = {
    dis.opmap[name]
    for name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
    if name in dis.opmap
}  # fmt: skip
_ATTRIBUTE: Final = {dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap}
_SHIFTED: Final = _GLOBAL | ({dis.opmap["LOAD_ATTR"]} if sys.version_info >= (3, 12) else set())
"""Instructions whose argument has a flag below the index of the name."""
_EXTENDED: Final = dis.opmap["EXTENDED_ARG"]
_FILLER: Final = 0  # CACHE: what the interpreter writes its notes into


def _chains(code: CodeType) -> Iterator[tuple[str, Chain]]:
    """The chains of a code object, in order: ("global" or "free", chain)."""
    raw = code.co_code  # without the interpreter's notes
    operations, arguments = raw[::2], raw[1::2]
    cells = _cell_names(code)
    wanted = _GLOBAL | _NAME | _FREE
    for place in sorted(place for kind in wanted for place in _places(operations, kind)):
        kind, index = operations[place], _argument(operations, arguments, place)
        is_free = kind in _FREE
        name = cells[index] if is_free else code.co_names[index]
        yield "free" if is_free else "global", (name, *_attributes(code, operations, arguments, place + 1))


def _attributes(code: CodeType, operations: bytes, arguments: bytes, place: int) -> Iterator[str]:
    """The attributes that the instructions from `place` on read, one off the other."""
    while place < len(operations):
        kind = operations[place]
        if kind in _ATTRIBUTE:
            yield code.co_names[_argument(operations, arguments, place)]
        elif kind not in (_FILLER, _EXTENDED):
            return
        place += 1


def _argument(operations: bytes, arguments: bytes, place: int) -> int:
    value, shift = arguments[place], 8
    before = place - 1
    while before >= 0 and operations[before] == _EXTENDED:
        value |= arguments[before] << shift
        before, shift = before - 1, shift + 8
    return value >> 1 if operations[place] in _SHIFTED else value


def _places(operations: bytes, kind: int) -> Iterator[int]:
    place = operations.find(kind)
    while place >= 0:
        yield place
        place = operations.find(kind, place + 1)


def _cell_names(code: CodeType) -> tuple[str, ...]:
    """The names that the arguments of instructions over cells are indices of."""
    known = code.co_varnames
    return (*known, *(name for name in code.co_cellvars if name not in known), *code.co_freevars)


def _imports(code: CodeType) -> Iterator[Import]:
    if dis.opmap["IMPORT_NAME"] not in code.co_code[::2]:
        return
    instructions = list(dis.get_instructions(code))
    for number, item in enumerate(instructions):
        if item.opname == "IMPORT_NAME":
            constants = [before.argval for before in instructions[max(number - 4, 0) : number]
                         if before.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT"))]  # fmt: skip
            level, names = constants[-2:] if len(constants) >= 2 else (0, None)
            yield Import(str(item.argval), tuple(names or ()), int(level))


def _digest(code: CodeType) -> bytes:
    made = hashlib.blake2b(digest_size=16)
    _add_code(made, code)
    return made.digest()


def _add_code(made: Any, code: CodeType) -> None:
    facts = (
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars, stable_file(code.co_filename), code.co_firstlineno,
        code.co_qualname,
    )  # fmt: skip
    made.update(repr(facts).encode("utf-8", "surrogatepass"))
    for part in (code.co_code, code.co_linetable, code.co_exceptiontable):
        made.update(b"%d:" % len(part))
        made.update(part)
    for constant in code.co_consts:
        _add_constant(made, constant)


def _add_constant(made: Any, constant: Any) -> None:
    if isinstance(constant, CodeType):
        made.update(b"code")
        _add_code(made, constant)
    elif isinstance(constant, tuple):
        made.update(b"tuple%d" % len(constant))
        for item in constant:
            _add_constant(made, item)
    elif isinstance(constant, frozenset):  # their order changes from process to process
        made.update(repr(sorted(map(repr, constant))).encode("utf-8", "surrogatepass"))
    else:  # repr tells 1 from True, 1.0 and "1", and -0.0 from 0.0
        made.update(f"{type(constant).__name__} {constant!r};".encode("utf-8", "surrogatepass"))
