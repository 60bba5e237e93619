"""Texts that the user gives in place of what a stage made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError, TilewrightError
from tilewright.ir import mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.context import current
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.ir.walk import unknown_operation as find_unknown
from tilewright.lang.locations import user_location
from tilewright.passes.pipeline import unknown_name, unknown_operation
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.stage import Stage

if TYPE_CHECKING:
    from mlir import ir

Names = Callable[[Any], Sequence[str]]
"""Gives the names of the kernels in a text, or in bytes."""


def check_override(override: Iterable[str], stages: Iterable[Stage]) -> None:
    """Refuse stages whose text cannot be replaced."""
    replaceable = [stage.name for stage in stages if stage.replaceable]
    for name in override:
        if name not in replaceable:
            raise CompileError(
                f"stage {name!r} cannot be replaced",
                location=user_location(),
                hint=f"override takes {', '.join(replaceable)}",
            )


def replace_cute(job: Job) -> bool:
    """Put the user's text of stage cute in place of the traced module; True when there is one."""
    traced = _host_signatures(job.module)
    if not replace_module(job, "cute"):
        return False
    kernels = [text_of(op, "sym_name") for op in _top(job.module, "gpu.module")]
    check_kernels("cute", kernels, list(job.kernels))
    if set(kernels) - set(job.kernels):
        raise CompileError(
            f"the text given for stage cute has another kernel {sorted(set(kernels) - set(job.kernels))[0]!r}",
            values={"kernels": ", ".join(job.kernels)},
            hint="kernels are added in the Python source",
        )
    given = _host_signatures(job.module)
    if given != traced:
        raise CompileError(
            "the text given for stage cute has another host function",
            values={"expected": traced, "got": given},
            hint="its name and the types of its arguments are those of the compiled Python function",
        )
    return True


def _host_signatures(module: ir.Operation) -> str:
    """The host functions of a module with their types."""
    functions = _top(module, "func.func")
    return ", ".join(f"{text_of(op, 'sym_name')}{op.attributes['function_type']}" for op in functions)


def _top(module: ir.Operation, name: str) -> list[ir.Operation]:
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name == name]


def replace_module(job: Job, stage: str) -> bool:
    """Put the user's text of a stage in place of the module; True when there is one."""
    if stage not in job.override:
        return False
    job.module = parse_module(_text(job.override[stage]), stage)
    current().named = False
    job.text_read = stage
    return True


@contextmanager
def at_text_lines(job: Job) -> Iterator[None]:
    """Errors about operations of a text that the user gave show the line of that text."""
    try:
        yield
    except TilewrightError as error:
        place = error.location
        if place is None or place.file != "-":
            raise
        if stage := job.text_read:
            error.location = None
            error.values |= {"in the text of stage": stage, **_text_line(_text(job.override[stage]), place.line)}
        raise


def replace_text(job: Job, kernel: KernelJob, stage: str, names: Names) -> bool:
    """Put the user's text of a kernel's stage in place of ours; True when there is one."""
    given = _given(job, kernel, stage)
    if given is None:
        return False
    kernel.texts[stage] = _text(given)
    kernel.changed_by = ""
    take_text(kernel, stage, "given", names)
    return True


def take_text(kernel: KernelJob, stage: str, whose: str, names: Names) -> None:
    """Note that a kernel's text is the user's: it is compiled in a child process. `whose` says how it came about."""
    kernel.user_text = kernel.in_child = True
    check_kernels(stage, names(kernel.texts[stage]), [kernel.name], whose)


def replace_bytes(job: Job, kernel: KernelJob, stage: str, names: Names) -> bool:
    """Take the user's bytes, or file, for a kernel's stage; True when there are some."""
    given = _given(job, kernel, stage)
    if given is None:
        return False
    kernel.texts[stage] = given if isinstance(given, bytes) else _file(given).read_bytes()
    check_kernels(stage, names(kernel.texts[stage]), [kernel.name])
    return True


def _given(job: Job, kernel: KernelJob, stage: str) -> Any:
    """What the user gives for a stage of a kernel; None where nothing."""
    given = job.override.get(stage)
    if isinstance(given, Mapping):
        return given.get(kernel.name)
    if given is not None and len(job.kernels) > 1:
        raise CompileError(
            f"override of stage {stage} for a function with {len(job.kernels)} kernels",
            hint=f'give a mapping by kernel name: {{"{kernel.name}": path, ...}}',
        )
    return given


def _text(given: Any) -> str:
    """The text that the user gives for a stage: itself, or the content of a file."""
    if isinstance(given, Path):
        return _file(given).read_text()
    text = str(given)
    return text if "\n" in text else _file(text).read_text()


def _file(path: object) -> Path:
    found = Path(str(path))
    if not found.is_file():
        raise CompileError(f"override: no file {str(path)!r}", hint="give a path, or the content itself")
    return found


def parse_module(text: str, stage: str) -> ir.Operation:
    """The module of a text, in the context that is entered; `stage` stands in messages.

    Raises:
        CompileError: the text does not parse; the message has the line.
        PassError: it has an operation of no dialect.
    """
    try:
        module = mlir.ir.Module.parse(text).operation
    except mlir.ir.MLIRError as error:
        raise _parse_error(text, stage, error) from error
    unknown = find_unknown(operations(module))
    if unknown is not None:
        place = source_location(unknown.location)
        raise unknown_operation(unknown.name, _text_line(text, place.line if place else 0))
    return module


def _parse_error(text: str, stage: str, error: Any) -> CompileError:
    """What MLIR says of a text, with the line at fault."""
    first = next(iter(error.error_diagnostics), None)
    place = source_location(first.location) if first is not None else None
    reason = str(first.message) if first is not None else str(error)
    line = _text_line(text, place.line if place else 0)
    if unknown := unknown_name(reason):
        return unknown_operation(unknown, line)
    return CompileError(
        f"the text given for stage {stage} does not parse",
        values={"reason": reason, **line},
        hint=f"compare it with .stages['{stage}'] of a compilation without override",
        nvvm_error=str(error),
    )


def _text_line(text: str, number: int) -> dict[str, object]:
    lines = text.splitlines()
    return {f"line {number}": lines[number - 1].strip()} if 0 < number <= len(lines) else {}


def check_kernels(stage: str, found: Sequence[str], wanted: Sequence[str], whose: str = "given") -> None:
    """Refuse a text that lacks a kernel which is launched by name."""
    for name in wanted:
        if name not in found:
            raise CompileError(
                f"the text {whose} for stage {stage} has no kernel {name!r}",
                values={"its kernels": ", ".join(found) or "none"},
                hint="keep the names of the kernels: the host code launches them by name",
            )
