"""`cutlass._mlir`: MLIR's Python package, with the dialects of `tilewright.compat.dialects`."""

import importlib
from typing import Any

from tilewright.ir import mlir as gate


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    gate.libllvm()
    module = "tilewright.compat.dialects" if name == "dialects" else f"mlir.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise AttributeError(f"module 'cutlass._mlir' has no attribute {name!r}") from None
