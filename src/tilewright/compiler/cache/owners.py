"""Whose a function, class or module is.

*Ours*: Tilewright and MLIR's bindings; their files are part of every key, so a name says all. *Trusted*: the standard
library and packages of numbers; they change with their version only, and `pure.py` says what of them may be used.
*The user's*: everything else, installed packages too; it is walked.

Names lie: `functools.wraps` hands on `__module__` and `__qualname__`, and a function of ours may make a class from
fields of the user. So a function belongs to the file of its code, and a class to a module that has it under its name.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Literal

from tilewright.base import patched

Owner = Literal["ours", "trusted", "user"]

UNRELATED: Final = ("tools", "ops", "dist")
"""Our folders whose code makes no code: it is the user's where a function reaches it."""

_ROOT: Final = str(patched.ROOT) + os.sep
_WALKED: Final = tuple(os.path.join(_ROOT, folder, "") for folder in UNRELATED)
_WALKED_MODULES: Final = tuple(f"tilewright.{folder}." for folder in UNRELATED)
_STANDARD: Final = str(Path(os.__file__).resolve().parent) + os.sep
_OURS: Final = frozenset(("tilewright", "mlir"))
_PACKAGES: Final = frozenset((
    "cuda", "cupy", "jax", "jaxlib", "ml_dtypes", "numpy", "scipy", "torch", "triton", "tvm_ffi", "typing_extensions",
))  # fmt: skip


def owner_of_function(function: FunctionType) -> Owner:
    """By the file of its code; where Python made the code from text, by the module whose globals it reads."""
    file = function.__code__.co_filename
    if file.startswith(_ROOT):
        return "user" if file.startswith(_WALKED) else "ours"
    return _owner_of_name(function.__globals__.get("__name__"))


def owner_of_class(cls: type) -> Owner:
    """By the module that has it under its name."""
    owner = _owner_of_name(cls.__module__)
    return owner if owner == "user" or resolved(cls.__module__, cls.__qualname__) is cls else "user"


def owner_of_module(module: ModuleType) -> Owner:
    """By its file; compatible modules go by names of other packages."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and file.startswith(_ROOT):
        return "user" if file.startswith(_WALKED) else "ours"
    return _owner_of_name(module.__name__)


def resolved(module: str, qualified: str) -> Any:
    """What a loaded module has under a dotted name; None for nothing."""
    found: Any = sys.modules.get(module)
    for name in qualified.split("."):
        found = vars(found).get(name) if isinstance(found, type | ModuleType) else None
    return found


def _owner_of_name(name: Any) -> Owner:
    package = name.partition(".")[0] if isinstance(name, str) else ""
    if package in _OURS:
        return "user" if name.startswith(_WALKED_MODULES) else "ours"
    return "trusted" if package in _PACKAGES or _is_standard(package) else "user"


@functools.cache
def _is_standard(package: str) -> bool:
    """True for modules of the standard library; a script beside which `string.py` lies has another `string`."""
    if package == "builtins":
        return True
    if package not in sys.stdlib_module_names or package == "__main__":
        return False
    file = getattr(sys.modules.get(package), "__file__", None)
    return not isinstance(file, str) or str(Path(file).resolve()).startswith(_STANDARD)
