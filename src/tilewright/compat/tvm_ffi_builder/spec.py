"""`cutlass.base_dsl.tvm_ffi_builder.spec`: descriptions of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing


@dataclass(frozen=True)
class ConstNone:
    """An argument that is fixed while compiling and given as None at the call."""

    name: str


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
