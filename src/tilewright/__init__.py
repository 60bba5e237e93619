"""Tilewright: the open compiler for the CuTe DSL.

`import tilewright as cutlass; import tilewright.cute as cute` is all that a CuTe DSL source needs.

Nothing is loaded before it is used, so that parts such as `tilewright.layout` can be had alone.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilewright.base import patched as _patched
from tilewright.base.interrupts import uninterrupted as _uninterrupted

if TYPE_CHECKING:  # for editors and type checkers; at run time the names come from `face` when asked for
    from tilewright.face import *  # noqa: F403

__version__ = "0.1.0.dev0"

_patched.watch_package(__name__)

_LAZY = {  # modules, and `module:name` for names in one
    **{name: f"tilewright.compat.dsl:{name}" for name in ("CutlassDSL", "CutlassBaseDSL", "BaseDSL")},
    **{name: f"tilewright.compat.version:{name}" for name in ("CUDA_VERSION", "target_version")},
    "cutlass_dsl": "tilewright.cutlass_dsl",
    "base_dsl": "tilewright.compat.base_dsl",
    "runtime": "tilewright.cute.runtime",
    "epilogue": "tilewright.epilogue",
    "experimental": "tilewright.experimental",
    "_mlir": "tilewright.compat.mlir",
    "_mlir_helpers": "tilewright.compat.mlir_helpers",
}


def __getattr__(name: str) -> Any:
    """The names of `face`, and some that few programs use."""
    if name in _LAZY:
        path, _, attribute = _LAZY[name].partition(":")
        module = _import(path)
        return getattr(module, attribute) if attribute else module
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    face = _import("tilewright.face")
    try:
        value = getattr(face, name)
    except AttributeError:
        not_built = _import("tilewright.base.not_built")
        try:
            value = not_built.stub_of("tilewright", name, sys._getframe(1))
        except (AttributeError, ImportError) as absent:
            raise absent from None
    globals()[name] = value
    return value


def _import(path: str) -> ModuleType:
    return _uninterrupted(lambda: importlib.import_module(path))


def __dir__() -> list[str]:
    return sorted({*globals(), *_import("tilewright.face").__all__, *_LAZY})
