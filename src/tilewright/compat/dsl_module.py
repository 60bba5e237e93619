"""`cutlass.base_dsl.dsl`."""

from tilewright.compat.dsl import BaseDSL
from tilewright.compat.errors import DSLRuntimeError
from tilewright.compiler.jit import dsl_user_op
from tilewright.lang.values import extract_mlir_values, new_from_mlir_values
