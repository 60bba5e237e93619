"""The names of `tilewright` itself, which `__init__` loads when one of them is asked for."""

from tilewright import cuda, cute, memory, pipeline, torch, utils
from tilewright.arguments.objects import register_jit_arg_adapter
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
from tilewright.lang.calls.annotations import Coord, GridConstant, IntTuple, Shape, Stride, Tile, Tiler
from tilewright.lang.calls.parameters import Constexpr
from tilewright.lang.control import const_expr, dynamic_expr, range, range_constexpr, range_dynamic
from tilewright.lang.control.generate import (
    and_,
    for_generate,
    if_generate,
    not_,
    or_,
    select_,
    while_generate,
    yield_out,
)
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.numbers.extremes import maximum as max
from tilewright.lang.numbers.extremes import minimum as min
from tilewright.lang.numbers.numeric import (
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
    NumericMeta,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    dtype,
)
from tilewright.lang.tensors import vector_functions as vector
from tilewright.lang.tensors.array import Array, make_array_view
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor_ssa import TensorSSA as Vector
from tilewright.lang.tensors.tensor_ssa import full
from tilewright.layout import Layout, Swizzle
from tilewright.passes.pipeline import Pass, PassManager, after, before
from tilewright.passes.pipeline import register as register_pass
from tilewright.passes.user_ops import register_op

DSLRuntimeError = CompilationError = CompileError
FloatMeta = IntegerMeta = NumericMeta

__all__ = [
    "AddressSpace", "ArgumentError", "Array", "BFloat16", "Boolean", "CompilationError", "CompileError", "Constexpr",
    "Coord", "CudaDriverDependencyError", "DSLRuntimeError", "EmulationError", "Float", "Float16", "Float32",
    "Float4E2M1FN", "Float64", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3", "Float8E4M3B11FNUZ", "Float8E4M3FN",
    "Float8E5M2", "Float8E8M0FNU", "FloatMeta", "GridConstant", "Int128", "Int16", "Int32", "Int4", "Int64", "Int8",
    "IntTuple", "Integer", "IntegerMeta", "LaunchError", "Layout", "LayoutError", "Numeric", "NumericMeta", "Pass",
    "PassError", "PassManager", "Pointer", "Shape", "Stride", "Swizzle", "TFloat32", "Tile", "Tiler", "TilewrightError",
    "Uint128", "Uint16", "Uint32", "Uint4", "Uint64", "Uint8", "Vector", "after", "and_", "before", "const_expr",
    "cuda", "cute", "dsl_user_op", "dtype", "dynamic_expr", "extract_mlir_values", "for_generate", "full",
    "if_generate", "make_array_view", "max", "memory", "min", "new_from_mlir_values", "not_", "or_", "pipeline",
    "range", "range_constexpr", "range_dynamic", "register_jit_arg_adapter", "register_op", "register_pass", "select_",
    "testing", "torch", "utils", "vector", "while_generate", "yield_out",
]  # fmt: skip
