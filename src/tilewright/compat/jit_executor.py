"""`cutlass.base_dsl.jit_executor`."""

from __future__ import annotations

from typing import Any

from tilewright.compat.compiler import walk_module_and_get_cubin_data
from tilewright.compiler.executor import Executor
from tilewright.targets.nvidia import driver

JITExecutor = JitCompiledFunction = Executor


def load_kernels_from_ir_module(module: Any) -> list[Any]:
    """The kernels of a compiled function, loaded by the driver."""
    loaded = []
    for name, kernel in module.kernels.items():
        loaded.append(driver.driver().load_library(kernel.stages["cubin"]).kernel(name))
    return loaded
