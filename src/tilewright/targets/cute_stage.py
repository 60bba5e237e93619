"""The first two stages, which all back ends share: `python`, and `cute`, where tensors keep their layouts."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import compile_context, current
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.passes.communication import left_out
from tilewright.passes.pipeline import PassManager, check_known
from tilewright.passes.place_shared_memory import SMEM_BYTES, PlaceSharedMemory
from tilewright.passes.program import kernels
from tilewright.passes.verify import verify
from tilewright.targets.inlined import inlined
from tilewright.targets.job import Job
from tilewright.targets.overrides import replace_cute
from tilewright.targets.pass_lists import split
from tilewright.targets.stage import Stage

if TYPE_CHECKING:
    from mlir import ir

_SHARED = frozenset(("arith", "scf", "math", "vector", "llvm", "nvvm", "gpu", "builtin", "cf"))
CUTE_DIALECTS = _SHARED | {"cute", "func"}


def _python(job: Job) -> None:
    """The text is made when it is asked for: `job.python()`."""


def _cute(job: Job) -> None:
    session = current()
    job.module = job.trace(job)
    session.appending = False
    before, _ = split(job.pipeline)
    in_kernels = [op for part in gpu_modules(job.module) for op in operations(part)]
    beside = [op for part in host_functions(job.module) for op in operations(part)]
    found = [job.module, *beside, *in_kernels]
    verify_module(job.module, "cute", found)
    session.names |= {op.name for op in found}
    session.named = not session.user_ops  # rules of users build as they like
    if settings.get("verify"):
        verify(job.module, "tracing")
    job.locations = _locations(in_kernels)
    job.inlined = inlined([*job.locations, *_locations(beside)])
    begin = getattr(job.after_pass, "begin", None)
    if begin is not None:
        begin(job.module)
    before.run(job.module, after_each=job.after_pass)
    job.pass_runs += before.runs
    _communicate(job)
    if replace_cute(job):
        verify(job.module, "the text given for stage cute")
        PlaceSharedMemory().run(job.module)
    keep_text(job, "cute")
    for op in kernels(job.module):
        if SMEM_BYTES in op.attributes:  # the pass list places shared memory
            job.kernels[symbol(op)].smem_bytes = number_of(op, SMEM_BYTES)


def _communicate(job: Job) -> None:
    """Put code in the place of collectives, where there are any: by the passes that the list leaves out."""
    if not current().communicates:
        return
    before, after = split(job.pipeline)
    rest = left_out(before, job.arch)
    late = PassManager(rest, verify=before.verify)
    late.run(job.module, done=[item.name for item in before], after_each=job.after_pass)
    job.pass_runs += late.runs
    job.pipeline = replace(job.pipeline, passes=[*before, *rest, *after], runs=[])


def _locations(found: Iterable[ir.Operation]) -> list[SourceLocation]:
    """The different places in the user's source that operations come from."""
    places = {place for location in {op.location for op in found} if (place := source_location(location)) is not None}
    return sorted(places, key=lambda place: (place.file, place.line, place.column))


PYTHON = Stage("python", _python, extension="py", whole=True)
CUTE = Stage("cute", _cute, CUTE_DIALECTS, extension="cute.mlir", whole=True, replaceable=True)


def verify_module(module: ir.Operation, stage: str, found: Sequence[ir.Operation]) -> None:
    """MLIR's own verifier; `found` are the operations of the module.

    Raises:
        CompileError: the module is not valid.
    """
    check_known(found)
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


def keep_text(job: Job, stage: str) -> None:
    """Keep the module for the text of a stage and of its kernels, which are printed when they are asked for."""
    if current().user_ops or not job.pipeline.verify:  # may be registered anew by then; may not be valid
        job.texts[stage] = asm(job.module)
        parts = {symbol(op): op for op in gpu_modules(job.module)}
        for kernel in job.kernels.values():
            text = kernel_text(job.texts, stage, kernel.name)
            kernel.texts[stage] = text or (asm(parts[kernel.name]) if kernel.name in parts else "")
        return
    print_later(job, stage, bytecode(job.module))


def print_later(job: Job, stage: str, code: bytes) -> None:
    """Take the text of a stage, and of its kernels, from the module's bytecode once somebody asks."""
    job.bytecode[stage] = code
    job.texts.later(stage, functools.partial(printed, code))
    for kernel in job.kernels.values():
        kernel.texts.later(stage, functools.partial(kernel_text, job.texts, stage, kernel.name))


def bytecode(op: ir.Operation) -> bytes:
    """An operation with its locations, in MLIR's own format: a tenth of what its text costs."""
    written = io.BytesIO()
    op.write_bytecode(written)
    return written.getvalue()


def printed(code: bytes) -> str:
    """The text of what `bytecode` gave."""
    with compile_context():
        return asm(mlir.ir.Module.parse(code).operation, verified=True)


def kernel_text(texts: Mapping[str, str], stage: str, kernel: str) -> str:
    """The `gpu.module` of a kernel, from the text of the whole module; "" where the module is not valid, which prints
    in another form."""
    lines = texts[stage].splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(f"  gpu.module @{kernel} ")), None)
    if start is None:
        return ""
    end = next(number for number in range(start, len(lines)) if lines[number] == "  }")
    return "\n".join(line.removeprefix("  ") for line in lines[start : end + 1]) + "\n"


def gpu_modules(module: ir.Operation) -> list[ir.Operation]:
    """The modules of the kernels."""
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "gpu.module"]


def host_functions(module: ir.Operation) -> list[ir.Operation]:
    """What stands beside the modules of the kernels."""
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name != "gpu.module"]


def symbol(op: ir.Operation) -> str:
    """The name of a kernel or function."""
    return text_of(op, "sym_name")
