"""`cutlass.cutlass_dsl`: the language's machinery under CuTe DSL's names."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat.arch import Arch
from tilewright.compat.dsl import BaseDSL, CuTeDSL, CutlassBaseDSL, CutlassDSL
from tilewright.compat.errors import DSLCudaRuntimeError, DSLRuntimeError
from tilewright.compat.version import CUDA_VERSION, target_version
from tilewright.compiler.executor import Executor as JitCompiledFunction
from tilewright.compiler.jit import dsl_user_op
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
from tilewright.lang.mlir_types import T
from tilewright.lang.numbers.extremes import maximum as max
from tilewright.lang.numbers.extremes import minimum as min
from tilewright.lang.numbers.numeric import BY_NAME as _BY_NAME
from tilewright.lang.numbers.numeric import Float, Integer, Numeric, NumericMeta
from tilewright.lang.tensors.pointer import AddressSpace, Pointer

globals().update({_cls.__name__: _cls for _cls in _BY_NAME.values()})  # Int32, Float32, ...

if not TYPE_CHECKING:  # a type checker would take any name for granted
    _LATER = {name: f"tilewright.compat.{name}" for name in ("cuda_jit_executor", "tvm_ffi_provider")}
    __getattr__ = _missing(__name__, _LATER, rest=_INTERNAL)
