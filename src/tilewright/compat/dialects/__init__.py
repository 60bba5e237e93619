"""`cutlass._mlir.dialects`: MLIR's dialects, with the operations of NVIDIA's own MLIR that public kernels use.

A dialect is MLIR's Python module of it, behind what is in its module of `_OWN`; a name that neither has says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from tilewright.base.not_built import NotBuiltImportError, imports_from, stub_of
from tilewright.base.stubs import NotBuiltError

_OWN = {"nvvm": "tilewright.compat.dialects.nvvm_operations"}


class Dialect(ModuleType):
    """A dialect's module."""

    def __init__(self, name: str) -> None:
        super().__init__(f"cutlass._mlir.dialects.{name}", f"MLIR's dialect `{name}`.")
        self._modules = [importlib.import_module(f"mlir.dialects.{name}")]
        if name in _OWN:
            self._modules.insert(0, importlib.import_module(_OWN[name]))

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if hasattr(module, name):
                return getattr(module, name)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        error = NotBuiltImportError if imports_from(sys._getframe(1)) else NotBuiltError
        raise error(
            f"{self.__name__}.{name} is not among MLIR's own operations, and not built here: cute.arch has the "
            "operations of the chip, and llvm.inline_asm takes any PTX"
        )

    def __dir__(self) -> list[str]:
        return sorted({name for module in self._modules for name in dir(module)})


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
