"""`cutlass.base_dsl.compiler`: the compiler as an object, its options, and a hook after compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilewright.base import settings
from tilewright.base.errors import CompileError, PassError
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compiler import hooks
from tilewright.compiler.compile_options import CompileOptions
from tilewright.compiler.jit import Compile as CompileCallable
from tilewright.compiler.jit import compile_function
from tilewright.compiler.plan import one_chip
from tilewright.compiler.target_choice import choose_arch, choose_target
from tilewright.ir import mlir
from tilewright.ir.context import active, compile_context, current, reraise_lost
from tilewright.passes.pipeline import PassManager, UpstreamPass
from tilewright.targets.cute_stage import asm
from tilewright.targets.nvidia.backend.back_end import BACK_END
from tilewright.targets.nvidia.backend.options import (
    GenerateLineInfo,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    LinkLibraries,
    NvdisasmOptions,
    PtxasOptions,
)
from tilewright.targets.nvidia.lowering.cute_to_nvvm import CuteToNvvm
from tilewright.targets.options import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    CompileOption,
    DumpDir,
    EnableAssertions,
    EnableTVMFFI,
    GPUArch,
    KeepIR,
    OptLevel,
    StringCompileOption,
)
from tilewright.targets.overrides import parse_module
from tilewright.targets.pass_lists import split

CompilationError = CompileError


class Compiler:
    """Runs pass lists on modules. It keeps nothing between calls."""

    def __init__(self, passmanager: Any = None, execution_engine: Any = None) -> None:
        self.passmanager = passmanager or PassManager
        self.execution_engine = execution_engine

    def compile(
        self, module: Any, pipeline: str, cuda_toolkit: str = "", arch: str = "", enable_verifier: bool = True
    ) -> Any:
        """Run the passes named in `pipeline` on a module, in place, or on its text; gives the module or the new text.

        Args:
            module: the text, such as `compiled.stages["cute"]`, or an MLIR module. Passes that are not MLIR's own take
                modules of the compilation under way only, or texts.
            pipeline: a pass list. One with `cute-to-nvvm` is completed as `cute.compile(pipeline=)` does it, and leaves
                the kernels alone: host functions are lowered by other passes.
            cuda_toolkit: a toolkit to use for this call in place of the one that is set.
            arch: the chip, where the list names none.
            enable_verifier: verify the module after each pass.

        Raises:
            PassError: a pass failed, or is not known.
            CompileError: the text cannot be parsed, or `arch` and the pass list name two chips.
        """
        listed = _completed(PassManager.parse(pipeline), arch)
        listed.verify = bool(enable_verifier)
        with settings.scope(**({"toolkit": cuda_toolkit} if cuda_toolkit else {})):
            if isinstance(module, str):
                return reraise_lost(lambda: _run_on_text(listed, module))
            _run_on_module(listed, module)
        return module


def _run_on_text(listed: PassManager, text: str) -> str:
    with compile_context() as session:
        session.appending = False  # passes build in the middle of blocks
        parsed = parse_module(text, "cute")
        _run(listed, parsed)
        return asm(parsed)


def _completed(listed: PassManager, arch: str) -> PassManager:
    if not any(isinstance(item, CuteToNvvm) for item in listed):
        return listed
    asked = BACK_END.asked_of(listed)
    chip = one_chip(BACK_END, {"arch": arch, "cubin-chip": asked.chip}) or settings.get("arch")
    options = BACK_END.options().changed(asked.fields)
    return BACK_END.completed(listed, choose_arch(chip, choose_target(None)), options)


def _run_on_module(listed: PassManager, module: Any) -> None:
    operation = getattr(module, "operation", module)
    if active() and operation.context == current().context:
        _run(listed, operation)
    elif all(isinstance(item, UpstreamPass) for item in listed):
        _run_upstream(str(listed), operation)
    else:
        raise PassError(
            "the module belongs to no compilation under way",
            values={"passes": listed},
            hint="give its text: str(module)",
        )


def _run_upstream(pipeline: str, operation: Any) -> None:
    """MLIR's own passes on a module of any context."""
    try:
        with operation.context:
            mlir.passmanager.PassManager.parse(pipeline).run(operation)
    except (ValueError, mlir.ir.MLIRError) as error:
        raise PassError("a pass failed", values={"passes": pipeline, "reason": error}, nvvm_error=str(error)) from error


def _run(listed: PassManager, module: Any) -> None:
    if not any(isinstance(item, CuteToNvvm) for item in listed):
        listed.run(module)
        return
    before, after = split(listed)
    before.run(module)
    for op in [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "func.func"]:
        op.erase()
    after.run(module, done=[item.name for item in before])


@contextmanager
def PostCompileHookContext(compiler: Any, hook: Callable[[str], None]) -> Iterator[None]:
    """Call `hook` with the text of stage `nvvm` after each compilation inside the block.

    `compiler` may be anything: there is one compiler.
    """
    with hooks.after_compile(lambda executor: hook(executor.stages["nvvm"])):
        yield


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
