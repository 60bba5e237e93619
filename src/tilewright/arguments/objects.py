"""Objects of the user's classes as arguments of jit functions: the JitArgument protocol, and adapters to it.

    __c_pointers__()               addresses of the machine values, one for each type
    __get_mlir_types__()           their MLIR types
    __new_from_mlir_values__(vs)   the object that the traced function sees

The compiled function takes one opaque address for each value and loads it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tilewright.arguments.aggregates import has_protocol
from tilewright.arguments.runtime_tensor import is_tensor
from tilewright.base.errors import ArgumentError
from tilewright.base.signature import StreamParam, TupleParam
from tilewright.ir import build, mlir

_adapters: dict[type, Callable[[Any], Any]] = {}


def register_jit_arg_adapter(*types: type) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: arguments of these classes are passed as `adapter(argument)`, a JitArgument object."""

    def add(adapter: Callable[[Any], Any]) -> Callable[[Any], Any]:
        _adapters.update(dict.fromkeys(types, adapter))
        return adapter

    return add


def adapter_count() -> int:
    """How many classes have adapters: it grows when one is registered."""
    return len(_adapters)


def has_adapter(kind: type) -> bool:
    """Whether arguments of that type are passed as what an adapter makes of them."""
    return any(cls in _adapters for cls in kind.__mro__)


def adapted(value: Any) -> Any:
    """`value`, or what the adapter of its class makes of it."""
    if not _adapters:
        return value
    for cls in type(value).__mro__:
        if cls in _adapters:
            return _adapters[cls](value)
    return value


def is_jit_argument(value: Any) -> bool:
    """True for objects whose class implements the JitArgument protocol.

    Named tuples, and tuples with tensors, are passed member by member instead: their members have types of their own,
    and a tensor has no machine values that lie in memory.
    """
    by_member = isinstance(value, tuple) and (hasattr(type(value), "_fields") or any(map(is_tensor, value)))
    return has_protocol(type(value)) and not by_member


def object_param(name: str, value: Any) -> TupleParam | None:
    """One opaque address for each machine value; None for an object without any, which is compile-time."""
    items = tuple(StreamParam(f"{name}[{number}]") for number, _ in enumerate(value.__c_pointers__()))
    return TupleParam(name, items) if items else None


class Addresses(tuple[int, ...]):
    """Addresses of machine values; `owner` keeps the memory alive."""

    owner: Any = None


def addresses(value: Any) -> Addresses:
    """Where the machine values of an object are."""
    made = Addresses(_address(pointer) for pointer in value.__c_pointers__())
    made.owner = value
    return made


def _address(pointer: Any) -> int:
    if isinstance(pointer, int):
        return pointer
    found = ctypes.cast(pointer, ctypes.c_void_p).value
    if not found:
        raise ArgumentError("__c_pointers__ gave a null pointer")
    return found


def load_object(value: Any, pointers: list[Any]) -> Any:
    """The object in traced code: each machine value loaded from its address (`!llvm.ptr` values)."""
    types = list(value.__get_mlir_types__())
    if len(types) != len(pointers):
        raise ArgumentError(
            f"{type(value).__name__} disagrees with itself",
            values={"__get_mlir_types__": len(types), "__c_pointers__": len(pointers)},
            hint="both give one item for each machine value",
        )
    loaded = [build.value("llvm.load", type_, (at,)) for type_, at in zip(types, pointers, strict=True)]
    return value.__new_from_mlir_values__(loaded)


def get_c_pointers(value: Any) -> list[Any]:
    """The addresses of an object's machine values; none for compile-time objects."""
    return list(value.__c_pointers__()) if hasattr(value, "__c_pointers__") else []


def get_mlir_types(value: Any) -> list[Any]:
    """The MLIR types of an object's machine values."""
    if hasattr(value, "__get_mlir_types__"):
        return list(value.__get_mlir_types__())
    if hasattr(value, "__extract_mlir_values__"):
        return [item.type for item in value.__extract_mlir_values__()]
    return [value.type] if isinstance(value, mlir.ir.Value) else []
