"""MLIR's Python modules of dialects, each imported whole or not at all.

MLIR imports the module of a dialect where Python first meets one of its operations, whatever runs there. A module
registers its dialect, which a process can do once: an import that an interrupt ended half way could never be repeated.
So MLIR finds the modules below this one, and the module below this one imports MLIR's where no interrupt comes through.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tilewright.base.interrupts import uninterrupted

__path__: list[str] = []  # what makes `import tilewright.ir.dialect_modules.arith` possible
_MLIR = "mlir.dialects"


def import_dialect(name: str) -> ModuleType:
    """MLIR's module of the dialect `name`; raises ModuleNotFoundError where it has none."""
    return uninterrupted(lambda: importlib.import_module(f"{_MLIR}.{name}"))


def import_nothing_for(name: str) -> None:
    """Let MLIR find an empty module for the dialect `name`: it searches at each operation until it finds one."""
    full = f"{__name__}.{name}"
    sys.modules.setdefault(full, ModuleType(full))


def install(registry: Any) -> None:
    """Let `registry`, MLIR's table of what Python knows, find dialects here instead of in `mlir.dialects`."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
    found = registry.dialect_search_modules
    registry.dialect_search_modules = [__name__ if prefix == _MLIR else prefix for prefix in found]


class _Finder(MetaPathFinder, Loader):
    """Finds the modules below this one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that this object loads, where MLIR has one of that name."""
        prefix, _, name = fullname.rpartition(".")
        if prefix != __name__ or importlib.util.find_spec(f"{_MLIR}.{name}") is None:
            return None
        return ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Import MLIR's module of the same name: that registers what Python shows of the dialect."""
        import_dialect(module.__name__.rpartition(".")[2])
