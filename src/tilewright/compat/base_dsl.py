"""`cutlass.base_dsl`: the base of the language under CuTe DSL's names."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat import errors as common
from tilewright.compat.arch import Arch
from tilewright.compat.compiler import CompilationError, CompileCallable, CompileOptions, Compiler
from tilewright.compat.dsl import BaseDSL
from tilewright.compat.env import EnvironmentVarManager
from tilewright.compat.errors import DSLCudaRuntimeError, DSLRuntimeError
from tilewright.compiler.executor import Executor as JitCompiledFunction
from tilewright.compiler.jit import dsl_user_op

_SAME = ["arch", "ast_preprocessor", "compiler", "jit_executor", "runtime", "tvm_ffi_builder", "typing", "utils"]
_LATE = {
    **{name: f"tilewright.compat.{name}" for name in _SAME},
    "dsl": "tilewright.compat.dsl_module",
    "enums": "tilewright.compat.arch",
    "env_manager": "tilewright.compat.env",
    "_mlir_helpers": "tilewright.compat.mlir_helpers",
}

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, _LATE, rest=_INTERNAL)
