"""`cutlass._mlir.dialects`: MLIR's dialects, with the operations of NVIDIA's own MLIR that public kernels use.

A dialect is MLIR's Python module of it, behind what is in its modules of `_OWN`; a name that neither has says so.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from tilewright.base.not_built import NotBuiltImportError, imports_from, stub_of
from tilewright.base.stubs import NotBuiltError
from tilewright.ir.dialect_modules import import_dialect
from tilewright.lang.leaves import is_dynamic
from tilewright.lang.numbers.numeric import Numeric, as_numeric
from tilewright.lang.tensors.tensor_ssa import TensorSSA

_OWN = {"llvm": ("llvm_operations",), "nvvm": ("nvvm_operations", "nvvm_reduction")}


class Dialect(ModuleType):
    """A dialect's module."""

    def __init__(self, name: str) -> None:
        super().__init__(f"cutlass._mlir.dialects.{name}", f"MLIR's dialect `{name}`.")
        self._modules = [import_dialect(name)]
        if name in _OWN:
            self._modules[:0] = [importlib.import_module(f"tilewright.compat.dialects.{own}") for own in _OWN[name]]

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if hasattr(module, name):
                found = getattr(module, name)
                return of_numbers(found) if isinstance(found, FunctionType) else found
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        error = NotBuiltImportError if imports_from(sys._getframe(1)) else NotBuiltError
        raise error(
            f"{self.__name__}.{name} is not among MLIR's own operations, and not built here: cute.arch has the "
            "operations of the chip, and llvm.inline_asm takes any PTX"
        )

    def __dir__(self) -> list[str]:
        return sorted({name for module in self._modules for name in dir(module)})


def of_numbers(function: FunctionType) -> Callable[..., Any]:
    """A function that builds an operation, for numbers of the language too: of these it gives one.

    Of a `TensorSSA` it takes the vector, and gives a vector.
    """

    @functools.wraps(function)
    def call(*operands: Any, **attributes: Any) -> Any:
        made = function(*map(_value, operands), **{name: _value(item) for name, item in attributes.items()})
        return as_numeric(made) if any(isinstance(item, Numeric) for item in operands) and is_dynamic(made) else made

    return call


def _value(item: Any) -> Any:
    return item.ir_value() if isinstance(item, (Numeric, TensorSSA)) else item


_known: dict[str, Dialect] = {}


def dialect(name: str) -> Dialect:
    """The module of a dialect.

    Raises:
        ModuleNotFoundError: MLIR has no such dialect.
    """
    if name not in _known:
        _known[name] = Dialect(name)
    return _known[name]


def __getattr__(name: str) -> Any:
    if importlib.util.find_spec(f"mlir.dialects.{name}") is None:
        return stub_of("mlir.dialects", name, sys._getframe(1))
    return dialect(name)
