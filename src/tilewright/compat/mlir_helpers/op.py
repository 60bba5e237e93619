"""`cutlass._mlir_helpers.op`: the decorator of user operations, and which frames of a traceback are the language's."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import tilewright
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compiler.jit import dsl_user_op

_DSL_PACKAGE_ROOT = ""
_DSL_PACKAGE_ROOTS: tuple[str, ...] | None = None


@functools.cache
def _is_framework_frame(filename: str) -> bool:
    """Whether a file belongs to the language."""
    global _DSL_PACKAGE_ROOT, _DSL_PACKAGE_ROOTS
    if _DSL_PACKAGE_ROOTS is None:
        _DSL_PACKAGE_ROOT = str(Path(tilewright.__file__).parent)
        _DSL_PACKAGE_ROOTS = (_DSL_PACKAGE_ROOT,)
    return filename.startswith(_DSL_PACKAGE_ROOTS)


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
