"""`cute.native_struct`: a class of numbers that are assigned field by field and travel as values."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, ClassVar

from tilewright.base.errors import CompileError
from tilewright.lang.calls.parameters import is_constexpr
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, as_numeric
from tilewright.lang.structs.struct import annotations_of


class NativeStruct:
    """Base of the classes that `native_struct` makes. Fields not given are 0."""

    __tw_fields__: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(self.__tw_fields__)
        given = dict(zip(names, args, strict=False)) | kwargs
        unknown = given.keys() - self.__tw_fields__.keys()
        if unknown or len(args) > len(names):
            raise CompileError(
                f"{type(self).__name__} has the fields {', '.join(names)}",
                location=user_location(),
                values={"given": ", ".join(map(str, sorted(unknown))) or f"{len(args)} values"},
            )
        for name, kind in self.__tw_fields__.items():
            setattr(self, name, given.get(name, None if is_constexpr(kind) else 0))

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self.__tw_fields__.get(name)
        if kind is None:
            raise CompileError(f"{type(self).__name__} has no field {name!r}", location=user_location())
        object.__setattr__(self, name, value if is_constexpr(kind) else kind(as_numeric(value)))

    def _numbers(self) -> list[str]:
        return [name for name, kind in self.__tw_fields__.items() if not is_constexpr(kind)]

    def __c_pointers__(self) -> list[Any]:
        return [pointer for name in self._numbers() for pointer in getattr(self, name).__c_pointers__()]

    def __get_mlir_types__(self) -> list[Any]:
        return [kind for name in self._numbers() for kind in getattr(self, name).__get_mlir_types__()]

    def __extract_mlir_values__(self) -> list[Any]:
        return [getattr(self, name).ir_value() for name in self._numbers()]

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        made = object.__new__(type(self))
        for name, value in {**vars(self), **dict(zip(self._numbers(), values, strict=True))}.items():
            setattr(made, name, value)
        return made

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region: the compile-time fields."""
        return tuple(str(getattr(self, name)) for name, kind in self.__tw_fields__.items() if is_constexpr(kind))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self.__tw_fields__)})"


def native_struct(definition: Any = None, *, zero_init: bool = True, packed: bool = False) -> Any:
    """Decorator: a class of annotated numbers becomes a mutable struct.

    Fields annotated `Constexpr` are compile-time. `zero_init` and `packed` concern memory that the struct never has
    here: values travel in registers.
    """
    if definition is None:
        return lambda inner: _made(inner, sys._getframe(1))
    return _made(definition, sys._getframe(1))


def _made(definition: type, frame: FrameType) -> Any:
    fields = annotations_of(definition, frame)
    for name, kind in fields.items():
        if not is_constexpr(kind) and not (isinstance(kind, type) and issubclass(kind, Numeric)):
            raise CompileError(
                f"field {name!r} of native_struct {definition.__name__} has type {kind!r}",
                location=user_location(),
                hint="a field is a number type such as cutlass.Int32, or Constexpr",
            )
    body = {name: item for name, item in vars(definition).items() if name not in ("__dict__", "__weakref__")}
    return type(definition.__name__, (NativeStruct,), {**body, "__tw_fields__": fields})
