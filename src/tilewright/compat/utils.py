"""`cutlass.base_dsl.utils`: only its modules are used."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, {"logger": "tilewright.compat.logger"}, rest=_INTERNAL)
