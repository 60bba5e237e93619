"""`cutlass.base_dsl.dsl`."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat.dsl import BaseDSL
from tilewright.compat.errors import DSLRuntimeError
from tilewright.compiler.jit import dsl_user_op
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
