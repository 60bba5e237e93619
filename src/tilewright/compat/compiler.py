"""`cutlass.base_dsl.compiler`: the compiler as an object, its options, and a hook after compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.compiler import hooks
from tilewright.compiler.jit import Compile as CompileCallable
from tilewright.compiler.jit import compile_function
from tilewright.compiler.options import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    CompileOption,
    CompileOptions,
    DumpDir,
    EnableAssertions,
    EnableTVMFFI,
    GenerateLineInfo,
    GPUArch,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    LinkLibraries,
    NvdisasmOptions,
    OptLevel,
    PtxasOptions,
    StringCompileOption,
)
from tilewright.passes.pipeline import PassManager

CompilationError = CompileError


class Compiler:
    """Runs pass lists on modules. It keeps nothing between calls."""

    def __init__(self, passmanager: Any = None, execution_engine: Any = None) -> None:
        self.passmanager = passmanager or PassManager
        self.execution_engine = execution_engine

    def compile(
        self, module: Any, pipeline: str, cuda_toolkit: str = "", arch: str = "", enable_verifier: bool = True
    ) -> Any:
        """Run the passes named in `pipeline` on an MLIR module, in place; gives the module."""
        manager = PassManager.parse(pipeline)
        manager.run(getattr(module, "operation", module))
        return module


@contextmanager
def PostCompileHookContext(compiler: Any, hook: Callable[[str], None]) -> Iterator[None]:
    """Call `hook` with the text of stage `nvvm` after each compilation inside the block.

    `compiler` may be anything: there is one compiler.
    """
    with hooks.after_compile(lambda executor: hook(executor.stages["nvvm"])):
        yield


def walk_module_and_get_cubin_data(module: Any) -> list[bytes]:
    """The cubins of a compiled function, one for each kernel."""
    found = module.stages["cubin"]
    return list(found.values()) if isinstance(found, dict) else [found]
