"""`cutlass.base_dsl`: the base of the language under CuTe DSL's names."""

from tilewright.compat import errors as common
from tilewright.compat.arch import Arch
from tilewright.compat.compiler import CompilationError, CompileCallable, CompileOptions, Compiler
from tilewright.compat.dsl import BaseDSL
from tilewright.compat.env import EnvironmentVarManager
from tilewright.compat.errors import DSLCudaRuntimeError, DSLRuntimeError
from tilewright.compiler.executor import Executor as JitCompiledFunction
from tilewright.compiler.jit import dsl_user_op
