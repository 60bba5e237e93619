"""`cutlass.cutlass_dsl.tvm_ffi_provider`: the class of functions called through tvm-ffi, under NVIDIA's name."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat.cuda_jit_executor import TVMFFIJitCompiledFunctionBase

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
