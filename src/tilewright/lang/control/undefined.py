"""Variables that have no value after a region."""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location


def _refuse(self: object, *arguments: object, **keywords: object) -> NoReturn:
    read = object.__getattribute__
    raise CompileError(
        read(self, "_message"), location=user_location(2), values=read(self, "_values"), hint=read(self, "_hint")
    )


class Undefined:
    """Stands for a variable that has a value on some paths only; any use raises CompileError."""

    __slots__ = ("_hint", "_message", "_values")
    __tw_undefined__ = True
    __class__ = property(_refuse)  # `isinstance` asks for it when the type says no

    def __init__(self, message: str, values: dict[str, object], hint: str) -> None:
        object.__setattr__(self, "_message", message)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_hint", hint)

    def __repr__(self) -> str:
        return "<undefined>"


_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor",
    "matmul", "radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow", "rlshift", "rrshift",
    "rand", "ror", "rxor", "rmatmul", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift",
    "irshift", "iand", "ior", "ixor", "imatmul", "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert",
    "bool", "int", "float", "index", "len", "iter", "next", "contains", "getitem", "setitem", "delitem", "call",
    "enter", "exit", "str", "format", "getattr", "setattr", "hash",
)  # fmt: skip
for _name in _OPERATORS:
    setattr(Undefined, f"__{_name}__", _refuse)


def is_undefined(value: Any) -> bool:
    """True for a variable without a value."""
    return type(value) is Undefined
