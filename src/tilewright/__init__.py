"""Tilewright: the open compiler for the CuTe DSL.

`import tilewright as cutlass; import tilewright.cute as cute` is all that a CuTe DSL source needs.
"""

from tilewright import cuda, cute, pipeline, torch, utils
from tilewright.base.errors import (
    ArgumentError,
    CompileError,
    CudaDriverDependencyError,
    EmulationError,
    LaunchError,
    LayoutError,
    PassError,
    TilewrightError,
)
from tilewright.compiler.jit import dsl_user_op
from tilewright.cute import testing
from tilewright.lang.control import const_expr, dynamic_expr, range, range_constexpr, range_dynamic
from tilewright.lang.dtype_names import dtype
from tilewright.lang.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Integer,
    Numeric,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
)
from tilewright.lang.numeric import maximum as max
from tilewright.lang.numeric import minimum as min
from tilewright.lang.parameters import Constexpr
from tilewright.lang.pointer import AddressSpace, Pointer
from tilewright.passes.pipeline import Pass, PassManager, after, before
from tilewright.passes.pipeline import register as register_pass

DSLRuntimeError = CompilationError = CompileError
__version__ = "0.1.0.dev0"
