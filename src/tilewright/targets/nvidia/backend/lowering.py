"""What each stage of this back end does, see `stages.py`.

Kernels go through all of them. The host function leaves at `nvvm`, and becomes native code that launches them beside
stage `ptx`.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.base.errors import CompileError
from tilewright.hw.features import ptx_version, supports
from tilewright.ir import mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.context import current
from tilewright.ir.forking import Background
from tilewright.ir.llvm import LlvmError, emit_ptx, emit_ptx_in_child
from tilewright.ir.translate import to_llvm_ir
from tilewright.ir.walk import operations
from tilewright.passes import remarks
from tilewright.passes.expand_views import ExpandViews
from tilewright.passes.pipeline import PassManager, UpstreamPass
from tilewright.passes.place_shared_memory import PlaceSharedMemory
from tilewright.passes.scf_to_cf import flatten
from tilewright.targets.cute_stage import (
    asm,
    gpu_modules,
    host_functions,
    keep_text,
    symbol,
    verify_module,
)
from tilewright.targets.host.bundle import compile_program
from tilewright.targets.host.cute_to_host import CuteToHost, check_host, leave_at_failures
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.nvidia.backend.assembling import assemble_kernel
from tilewright.targets.nvidia.backend.options import options_of
from tilewright.targets.nvidia.backend.parts import HOST_LLVM, HOST_OBJECT, PROFILE, PTXAS_LOG, REMARKS
from tilewright.targets.nvidia.binary.cubin import read_cubin
from tilewright.targets.nvidia.lowering.check_nvvm import check_nvvm
from tilewright.targets.nvidia.lowering.collective_asm import mark_collective
from tilewright.targets.nvidia.lowering.cute_to_nvvm import FEATURES, CuteToNvvm
from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.needs import features_of_llvm
from tilewright.targets.nvidia.profiling.profile_rules import REGIONS
from tilewright.targets.nvidia.sass.listing import disassemble
from tilewright.targets.nvidia.toolkit.diagnose import compilation_error
from tilewright.targets.nvidia.toolkit.jitlink import read_library
from tilewright.targets.nvidia.toolkit.libnvvm import compile_ir
from tilewright.targets.nvidia.toolkit.libnvvm_child import compile_ir_in_child
from tilewright.targets.overrides import check_kernels, replace_bytes, replace_module, replace_text, take_text
from tilewright.targets.pass_lists import split

if TYPE_CHECKING:
    from mlir import ir

T = TypeVar("T")
HOST_FINISH = (
    "convert-vector-to-llvm,convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts"
)

_KERNELS_IN = {
    "llvm": re.compile(r"^define [^@\n]*@([\w$.]+)\(", re.MULTILINE).findall,
    "ptx": re.compile(r"\.entry\s+([\w$]+)").findall,
}


def to_nvvm(job: Job) -> Sequence[ir.Operation]:
    """To dialects of LLVM; gives all operations of the module."""
    before, after = split(job.pipeline)
    _lower_host(job)
    after.run(job.module, done=[item.name for item in before], after_each=job.after_pass)
    job.pass_runs += after.runs
    _keep_remarks(job, after)
    whole, parts = _walked(job.module)
    verify_module(job.module, "nvvm", whole)  # LLVM ends the process over what is not valid
    user_text = replace_module(job, "nvvm")
    if user_text:
        UpstreamPass("gpu.module(convert-nvvm-to-llvm)").run(job.module)  # operations that stand for inline PTX
        check_kernels("nvvm", [symbol(op) for op in gpu_modules(job.module)], list(job.kernels))
        whole, parts = _walked(job.module)
    keep_text(job, "nvvm")
    for name, part in parts.items():
        kernel = job.kernels[name]
        findings = check_nvvm(part, job.arch)
        kernel.user_text = user_text or "cute" in job.override
        kernel.in_child = kernel.user_text or findings.unknown
        kernel.features = tuple(sorted({*_features(part[0]), *findings.features}))
        kernel.texts.update(_regions(part[0]))
    return whole


def _walked(module: ir.Operation) -> tuple[list[ir.Operation], dict[str, list[ir.Operation]]]:
    """All operations of a module, and those of each kernel's `gpu.module`, which comes first among them."""
    parts = [operations(op.operation) for op in module.regions[0].blocks[0]]
    return [module, *itertools.chain(*parts)], {symbol(part[0]): part for part in parts if part[0].name == "gpu.module"}


def _keep_remarks(job: Job, passes: PassManager) -> None:
    for item in passes:
        if isinstance(item, CuteToNvvm):
            for name, found in item.remarks.items():
                job.kernels[name].texts[REMARKS] = remarks.written(found)


def _lower_host(job: Job) -> None:
    """The host function leaves the device's module for its own, and becomes LLVM IR; machine code while the kernels
    are lowered and assembled."""
    module = mlir.ir.Module.create(loc=current().unknown)
    for op in host_functions(job.module):
        op.detach_from_parent()
        module.body.append(op)
    host = module.operation
    launched = {kernel.name: kernel.smem_bytes for kernel in job.kernels.values()}
    ExpandViews().run(host)  # no pass manager: without its kernels the module is not valid
    PassManager([CuteToHost(launched)]).run(host, done=[PlaceSharedMemory.name])
    UpstreamPass(f"convert-scf-to-cf,{HOST_FINISH}" if flatten(host) else HOST_FINISH).run(host)
    leave_at_failures(host)
    check_host(host)
    job.parts[HOST_LLVM] = text = _translate(host, job)
    signature, entry, kernels = job.signature, job.entry, len(job.kernels)
    job.parts[HOST_OBJECT] = Background(lambda: compile_program(text, signature, entry=entry, kernels=kernels))


def to_llvm(job: Job) -> None:
    """To LLVM IR, for each kernel."""
    for op in gpu_modules(job.module):
        kernel = job.kernels[symbol(op)]
        module = mlir.ir.Module.create(loc=current().unknown)
        with mlir.ir.InsertionPoint(module.body):
            for inner in op.regions[0].blocks[0]:
                inner.operation.clone()
        kernel.texts["llvm"] = mark_collective(_translate(module.operation, job))
        changed = _passes_over_text(job, kernel, "llvm")
        if replace_text(job, kernel, "llvm", _KERNELS_IN["llvm"]) or changed:
            used = {*kernel.features, *features_of_llvm(kernel.texts["llvm"])}
            kernel.features = tuple(sorted(feature for feature in used if supports(feature, job.arch)))
    job.module = None


def to_ptx(job: Job) -> None:
    """To PTX, for each kernel; the machine code of the host function is made beside it."""
    # LLVM runs without the GIL: kernels compile side by side, the first of them here.
    kernels = list(job.kernels.values())
    others = {kernel.name: _in_background(_emit_ptx, job, kernel) for kernel in kernels[1:]}
    for kernel in kernels:
        kernel.texts["ptx"] = mend(others[kernel.name].result() if kernel.name in others else _emit_ptx(job, kernel))
        _passes_over_text(job, kernel, "ptx")
        replace_text(job, kernel, "ptx", _KERNELS_IN["ptx"])


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
        take_text(kernel, stage, f"that pass {changed_by} left", _KERNELS_IN[stage])
    return bool(changed_by)


def _emit_ptx(job: Job, kernel: KernelJob) -> str:
    links = [read_library(name) for name in options_of(job).linked(bitcode=True)]
    if options_of(job).ptx_backend == "nvidia-nvvm":
        return _emit_ptx_by_libnvvm(job, kernel, links)
    emit = emit_ptx_in_child if kernel.in_child or links else emit_ptx
    version = ptx_version(job.arch, kernel.features)
    try:
        return emit(
            kernel.texts["llvm"], chip=job.arch, ptx_version=version, opt_level=job.options.opt_level, links=links
        )
    except LlvmError as error:
        raise compilation_error(
            "nvvm",
            {"Target Architecture": job.arch, "PTX Version": version, "Kernel": kernel.name},
            str(error),
            kernel.texts["llvm"],
            _ptx_solutions(kernel, job.arch, bool(links)),
            location=kernel.launched_at,
        ) from error


def _emit_ptx_by_libnvvm(job: Job, kernel: KernelJob, links: Sequence[bytes]) -> str:
    compile_text = compile_ir_in_child if kernel.in_child or links else compile_ir
    try:
        return compile_text(kernel.texts["llvm"], job.arch, opt_level=job.options.opt_level, libraries=links)
    except CompileError as error:
        error.location = error.location or kernel.launched_at
        raise


def _ptx_solutions(kernel: KernelJob, arch: str, linked: bool) -> list[str]:
    if linked:
        return ["Check the bitcode of LinkLibraries: made for nvptx64-nvidia-cuda, and every symbol defined once"]
    if kernel.changed_by:
        return [f"Check the text that pass {kernel.changed_by} left"]
    if kernel.user_text:
        return ["Check the text given in `override`, or drop it to compile what the passes made"]
    return [
        "Check inline assembly: its instructions, constraints and operand types",
        f"Check that every operation exists on {arch}, or compile for another chip with GPUArch",
        "If no inline assembly is used, please report this with the output of `tilewright doctor`",
    ]


def to_cubin(job: Job) -> None:
    """To machine code, for each kernel."""
    for kernel in job.kernels.values():
        if replace_bytes(job, kernel, "cubin", _kernels_in_cubin):
            continue
        made = assemble_kernel(kernel, job)
        kernel.texts["cubin"] = made.data
        kernel.texts[PTXAS_LOG] = made.log


def to_sass(job: Job) -> None:
    """Its listing, for each kernel."""
    for kernel in job.kernels.values():
        kernel.texts["sass"] = disassemble(kernel.texts["cubin"], extra=shlex.split(options_of(job).nvdisasm_options))


def _kernels_in_cubin(cubin: bytes) -> Sequence[str]:
    return list(read_cubin(cubin).kernels)


def _regions(module: ir.Operation) -> dict[str, str]:
    """The names of a kernel's timed regions, where it has any."""
    found = [op.operation for op in module.regions[0].blocks[0] if REGIONS in op.operation.attributes]
    return {PROFILE: text_of(found[0], REGIONS)} if found else {}


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
