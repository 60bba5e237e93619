"""The stages, and the one loop that runs them.

    python ──► cute ──► nvvm ──► llvm ──► ptx ──► cubin ──► sass

`run` takes a job from its first stage to the last one asked for. Dumping, timing and exploring are observers of this
loop; nothing else compiles.
"""

from __future__ import annotations

import contextvars
import functools
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.base import settings
from tilewright.base.errors import CompileError, PassError
from tilewright.base.location import SourceLocation
from tilewright.compiler.assembling import assemble_kernel
from tilewright.compiler.inlined import inlined
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.overrides import (
    at_text_lines,
    check_kernels,
    replace_cubin,
    replace_cute,
    replace_nvvm,
    replace_text,
    take_text,
)
from tilewright.compiler.pass_lists import split
from tilewright.hw.features import ptx_version, supports
from tilewright.ir import mlir
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import current
from tilewright.ir.forking import Background
from tilewright.ir.llvm import LlvmError, emit_ptx, emit_ptx_in_child
from tilewright.ir.locations import source_location
from tilewright.ir.translate import to_llvm_ir
from tilewright.ir.user_ops import dialects
from tilewright.ir.walk import operations
from tilewright.passes.expand_views import ExpandViews
from tilewright.passes.pipeline import PassManager, UpstreamPass, check_known
from tilewright.passes.place_shared_memory import SMEM_BYTES, PlaceSharedMemory
from tilewright.passes.program import kernels
from tilewright.passes.verify import verify
from tilewright.targets.host.bundle import compile_program
from tilewright.targets.host.cute_to_host import CuteToHost, check_host, leave_at_failures
from tilewright.targets.nvidia.check_nvvm import check_nvvm
from tilewright.targets.nvidia.cute_to_nvvm import FEATURES
from tilewright.targets.nvidia.diagnose import compilation_error
from tilewright.targets.nvidia.libnvvm import compile_ir
from tilewright.targets.nvidia.libnvvm_child import compile_ir_in_child
from tilewright.targets.nvidia.mend_ptx import mend
from tilewright.targets.nvidia.needs import features_of_llvm
from tilewright.targets.nvidia.sass import disassemble

if TYPE_CHECKING:
    from mlir import ir

T = TypeVar("T")
Observer = Callable[[str, Job], None]
"""Called after each stage with its name and the job."""

_SHARED = frozenset(("arith", "scf", "math", "vector", "llvm", "nvvm", "gpu", "builtin", "cf"))
CUTE_DIALECTS = _SHARED | {"cute", "func"}
NVVM_DIALECTS = frozenset(("llvm", "nvvm", "gpu", "builtin"))

HOST_FINISH = (
    "convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts"
)


@dataclass(frozen=True)
class Stage:
    """A named step. `legal` are the dialects that may remain in the module after it; None where there is no module."""

    name: str
    run: Callable[[Job], None]
    legal: frozenset[str] | None = None


def run(job: Job, until: str, observers: Sequence[Observer] = ()) -> None:
    """Take the job through the stages up to `until`."""
    for stage in NVIDIA_STAGES:
        if stage.name in job.finished:
            continue
        start = time.perf_counter()
        with settings.scope(toolkit=job.toolkit), at_text_lines(job):
            stage.run(job)
            if stage.legal is not None and job.module is not None:
                job.operations[stage.name] = check_legal(job.module, stage)
        job.seconds[stage.name] = time.perf_counter() - start
        job.finished.append(stage.name)
        for observer in observers:
            observer(stage.name, job)
        if job.options.print_ir:
            sys.stderr.write(_printed(stage.name, job))
        if stage.name == until:
            return


def _printed(stage: str, job: Job) -> str:
    """The texts that a stage made, each under a line that names it; "" for a stage without text."""
    texts = [(job.name, job.python())] if stage == "python" else []
    texts += [(job.name, job.texts[stage])] if stage in job.texts else []
    texts += [(kernel.name, kernel.texts[stage]) for kernel in job.kernels.values() if stage in ("llvm", "ptx", "sass")]
    return "".join(f"// ---- {stage} of {name}, {job.arch} ----\n{text}\n" for name, text in texts)


def check_legal(module: ir.Operation, stage: Stage) -> int:
    """Refuse operations that may not be left after `stage`; gives the number of operations."""
    found = operations(module)
    legal = stage.legal or frozenset()
    if stage.name == "cute":
        legal |= dialects()
    for op in found:
        if op.name.partition(".")[0] not in legal:
            raise _illegal(op, stage)
    return len(found)


def _illegal(op: ir.Operation, stage: Stage) -> PassError:
    return PassError(
        f"operation {op.name!r} is left after stage {stage.name}",
        location=source_location(op.location),
        values={"dialects allowed": ", ".join(sorted(stage.legal or ()))},
        hint=f"a pass of stage {stage.name} must lower it",
    )


def _python(job: Job) -> None:
    """The text is made when it is asked for: `job.python()`."""


def _cute(job: Job) -> None:
    job.module = job.trace(job)
    current().appending = False
    before, _ = split(job.pipeline)
    _verify(job.module, "cute")
    if settings.get("verify"):
        verify(job.module, "tracing")
    job.locations = _locations(_gpu_modules(job.module))
    job.inlined = inlined([*job.locations, *_locations(_host_functions(job.module))])
    before.run(job.module, after_each=job.after_pass)
    job.pass_runs += before.runs
    if replace_cute(job):
        verify(job.module, "the text given for stage cute")
        PlaceSharedMemory().run(job.module)
    job.texts["cute"] = asm(job.module)
    for kernel in job.kernels.values():
        kernel.texts["cute"] = _part(job, "cute", kernel.name)
    for op in kernels(job.module):
        job.kernels[_symbol(op)].smem_bytes = number_of(op, SMEM_BYTES)


def _locations(parts: Iterable[ir.Operation]) -> list[SourceLocation]:
    """The different places in the user's source that these parts of a module come from."""
    found = {op.location for part in parts for op in operations(part)}
    places = {place for location in found if (place := source_location(location)) is not None}
    return sorted(places, key=lambda place: (place.file, place.line, place.column))


def _nvvm(job: Job) -> None:
    before, after = split(job.pipeline)
    job.host_module = _taken_out(job.module)
    after.run(job.module, done=[item.name for item in before], after_each=job.after_pass)
    job.pass_runs += after.runs
    _verify(job.module, "nvvm")  # LLVM ends the process over what is not valid
    job.texts["nvvm"] = asm(job.module, verified=True)
    user_text = replace_nvvm(job)
    if user_text:
        UpstreamPass("gpu.module(convert-nvvm-to-llvm)").run(job.module)  # operations that stand for inline PTX
        job.texts["nvvm"] = asm(job.module)
        check_kernels("nvvm", [_symbol(op) for op in _gpu_modules(job.module)], list(job.kernels))
    for op in _gpu_modules(job.module):
        kernel = job.kernels[_symbol(op)]
        findings = check_nvvm(op, job.arch)
        kernel.texts["nvvm"] = _part(job, "nvvm", kernel.name)
        kernel.user_text = user_text or "cute" in job.override
        kernel.in_child = kernel.user_text or findings.unknown
        kernel.features = tuple(sorted({*_features(op), *findings.features}))


def _taken_out(module: ir.Operation) -> ir.Operation:
    """The host functions, which leave the device's module for their own."""
    host = mlir.ir.Module.create(loc=current().unknown)
    for op in _host_functions(module):
        op.detach_from_parent()
        host.body.append(op)
    return host.operation


def _lower_host(job: Job) -> None:
    """The host function becomes LLVM IR, and machine code while the kernels are assembled."""
    host = job.host_module
    launched = {kernel.name: kernel.smem_bytes for kernel in job.kernels.values()}
    ExpandViews().run(host)  # no pass manager: without its kernels the module is not valid
    PassManager([CuteToHost(launched)]).run(host, done=[PlaceSharedMemory.name])
    UpstreamPass(HOST_FINISH).run(host)
    leave_at_failures(host)
    check_host(host)
    job.host_llvm = _translate(host, job)
    job.host_module = None
    text, signature, entry, kernels = job.host_llvm, job.signature, job.entry, len(job.kernels)
    job.host_program = Background(lambda: compile_program(text, signature, entry=entry, kernels=kernels))


def _llvm(job: Job) -> None:
    for op in _gpu_modules(job.module):
        kernel = job.kernels[_symbol(op)]
        module = mlir.ir.Module.create(loc=current().unknown)
        with mlir.ir.InsertionPoint(module.body):
            for inner in op.regions[0].blocks[0]:
                inner.operation.clone()
        kernel.texts["llvm"] = _translate(module.operation, job)
        changed = _passes_over_text(job, kernel, "llvm")
        if replace_text(job, kernel, "llvm") or changed:
            used = {*kernel.features, *features_of_llvm(kernel.texts["llvm"])}
            kernel.features = tuple(sorted(feature for feature in used if supports(feature, job.arch)))
    job.module = None


def _ptx(job: Job) -> None:
    # LLVM runs without the GIL: the host function is lowered meanwhile, and kernels compile side by side.
    emitted = {kernel.name: _in_background(_emit_ptx, job, kernel) for kernel in job.kernels.values()}
    _lower_host(job)
    for kernel in job.kernels.values():
        kernel.texts["ptx"] = mend(emitted[kernel.name].result())
        _passes_over_text(job, kernel, "ptx")
        replace_text(job, kernel, "ptx")


def _in_background(function: Callable[..., T], *arguments: Any) -> Background[T]:
    """Call a function in another thread, with the settings of this one."""
    return Background(functools.partial(contextvars.copy_context().run, function, *arguments))


def _passes_over_text(job: Job, kernel: KernelJob, stage: str) -> bool:
    """Run the user's passes over a text; True when they changed it."""
    passes = PassManager(job.pipeline.over_text(stage))
    kernel.texts[stage], changed_by = passes.run_text(stage, kernel.texts[stage], kernel.name, job.after_pass)
    job.pass_runs += passes.runs
    if changed_by:
        kernel.changed_by = changed_by
        take_text(kernel, stage, f"that pass {changed_by} left")
    return bool(changed_by)


def _emit_ptx(job: Job, kernel: KernelJob) -> str:
    if job.options.ptx_backend == "nvidia-nvvm":
        return _emit_ptx_by_libnvvm(job, kernel)
    emit = emit_ptx_in_child if kernel.in_child else emit_ptx
    version = ptx_version(job.arch, kernel.features)
    try:
        return emit(kernel.texts["llvm"], chip=job.arch, ptx_version=version, opt_level=job.options.opt_level)
    except LlvmError as error:
        raise compilation_error(
            "nvvm",
            {"Target Architecture": job.arch, "PTX Version": version, "Kernel": kernel.name},
            str(error),
            kernel.texts["llvm"],
            _ptx_solutions(kernel, job.arch),
            location=kernel.launched_at,
        ) from error


def _emit_ptx_by_libnvvm(job: Job, kernel: KernelJob) -> str:
    compile_text = compile_ir_in_child if kernel.in_child else compile_ir
    try:
        return compile_text(kernel.texts["llvm"], job.arch, opt_level=job.options.opt_level)
    except CompileError as error:
        error.location = error.location or kernel.launched_at
        raise


def _ptx_solutions(kernel: KernelJob, arch: str) -> list[str]:
    if kernel.changed_by:
        return [f"Check the text that pass {kernel.changed_by} left"]
    if kernel.user_text:
        return ["Check the text given in `override`, or drop it to compile what the passes made"]
    return [
        "Check inline assembly: its instructions, constraints and operand types",
        f"Check that every operation exists on {arch}, or compile for another chip with GPUArch",
        "If no inline assembly is used, please report this with the output of `tilewright doctor`",
    ]


def _cubin(job: Job) -> None:
    for kernel in job.kernels.values():
        if replace_cubin(job, kernel):
            continue
        made = assemble_kernel(kernel, job)
        kernel.texts["cubin"] = made.data
        kernel.texts["ptxas_log"] = made.log


def _sass(job: Job) -> None:
    for kernel in job.kernels.values():
        kernel.texts["sass"] = disassemble(kernel.texts["cubin"], extra=shlex.split(job.options.nvdisasm_options))


NVIDIA_STAGES = (
    Stage("python", _python),
    Stage("cute", _cute, CUTE_DIALECTS),
    Stage("nvvm", _nvvm, NVVM_DIALECTS),
    Stage("llvm", _llvm),
    Stage("ptx", _ptx),
    Stage("cubin", _cubin),
    Stage("sass", _sass),
)
STAGE_NAMES = tuple(stage.name for stage in NVIDIA_STAGES)


def _verify(module: ir.Operation, stage: str) -> None:
    check_known(module)
    try:
        module.verify()
    except mlir.ir.MLIRError as error:
        text = "; ".join(str(item.message) for item in error.error_diagnostics) or str(error)
        if any(words in text for words in _LEAKS):
            raise _leak(text, [item.location for item in error.error_diagnostics]) from error
        raise CompileError(f"stage {stage} is not valid: {text}", nvvm_error=text) from error


_LEAKS = ("does not dominate this use", "defined outside the region")  # how MLIR says that a value left its region


def _leak(text: str, places: list[ir.Location]) -> CompileError:
    """A value of run time was kept by an object of Python that no region hands on."""
    return CompileError(
        "a value of a runtime branch, loop or function is used outside it",
        location=source_location(places[0]) if places else None,
        hint="hand it on by a variable, or by an attribute of an object that the function made; globals, classes and"
        " modules keep no values of run time",
        nvvm_error=text,
    )


def asm(op: ir.Operation, verified: bool = False) -> str:
    """The text of an operation, without locations. MLIR verifies it first, but where it was `verified` already."""
    return str(op.get_asm(enable_debug_info=False, assume_verified=verified))


def _part(job: Job, stage: str, kernel: str) -> str:
    """The `gpu.module` of a kernel, from the text of the whole module (printing it twice costs more)."""
    lines = job.texts[stage].splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(f"  gpu.module @{kernel} ")), None)
    if start is None:  # a module that is not valid prints in another form
        return next((asm(op) for op in _gpu_modules(job.module) if _symbol(op) == kernel), "")
    end = next(number for number in range(start, len(lines)) if lines[number] == "  }")
    return "\n".join(line.removeprefix("  ") for line in lines[start : end + 1]) + "\n"


def _gpu_modules(module: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "gpu.module"]


def _host_functions(module: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name != "gpu.module"]


def _symbol(op: ir.Operation) -> str:
    return text_of(op, "sym_name")


def _features(module: ir.Operation) -> tuple[str, ...]:
    for op in module.regions[0].blocks[0]:
        if FEATURES in op.operation.attributes:
            return tuple(part for part in text_of(op.operation, FEATURES).split(",") if part)
    return ()


def _translate(module: ir.Operation, job: Job) -> str:
    try:
        return to_llvm_ir(module)
    except LlvmError as error:
        raise compilation_error(
            "nvvm",
            {"Target Architecture": job.arch},
            error.message,
            asm(module),
            ["Check the operations that a @dsl_user_op or a pass builds: their names, operands and result types"],
            location=error.location,
        ) from error
