"""`cutlass.base_dsl.runtime`: only its modules are used."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, {"cuda": "tilewright.compat.runtime_cuda"}, rest=_INTERNAL)
