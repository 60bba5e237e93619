"""`cutlass.cutlass_dsl.cuda_jit_executor`: the class of compiled functions under NVIDIA's name.

Libraries replace `_load_cuda_library` to load a cubin that another ptxas made. Here `CUDA_TOOLKIT_PATH` names the
toolkit whose ptxas is used, and what is put in the place of a method is not called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat.jit_executor import load_kernels_from_ir_module
from tilewright.compiler.executor import Executor


class CudaDialectJitCompiledFunction(Executor):
    """A compiled function that can be called."""

    def _load_cuda_library(self) -> list[Any]:
        """The kernels, loaded by the driver."""
        return load_kernels_from_ir_module(self)


class TVMFFIJitCompiledFunctionBase(CudaDialectJitCompiledFunction):
    """A compiled function that is called through tvm-ffi, as all are."""

    def _create_tvm_ffi_function(self) -> Any:
        """The function of tvm-ffi."""
        return self


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
