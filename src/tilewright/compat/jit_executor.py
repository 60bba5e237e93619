"""`cutlass.base_dsl.jit_executor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compiler.executor import Executor
from tilewright.ir import mlir
from tilewright.ir.walk import operations
from tilewright.targets.nvidia.devices import driver

JITExecutor = JitCompiledFunction = Executor


def walk_module_and_get_cubin_data(module: Any) -> list[bytes]:
    """The cubins of a compiled function, one for each kernel; or those that an MLIR module holds as `gpu.binary`.

    Raises:
        CompileError: it holds none.
    """
    if hasattr(module, "stages"):
        found = module.stages["cubin"]
        return list(found.values()) if isinstance(found, dict) else [found]
    operation = getattr(module, "operation", None)
    cubins = _binaries(operation) if operation is not None else []
    if not cubins:
        raise CompileError(
            f"no gpu.binary in {type(module).__name__}",
            hint="give the compiled function; its cubin is in .stages['cubin']",
        )
    return cubins


def _binaries(module: Any) -> list[bytes]:
    """The first object of each `gpu.binary`."""
    found = [op for op in operations(module) if op.name == "gpu.binary"]
    return [bytes(mlir.gpu.ObjectAttr(op.attributes["objects"][0]).object) for op in found]


def load_kernels_from_ir_module(module: Any) -> list[Any]:
    """The kernels of a compiled function, loaded by the driver."""
    loaded = []
    for name, kernel in module.kernels.items():
        loaded.append(driver.driver().load_library(kernel.stages["cubin"]).kernel(name))
    return loaded


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
