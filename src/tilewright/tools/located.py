"""The texts of a function's stages, with the line of Python that each of their lines comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.compiler import stages
from tilewright.ir.context import compile_context
from tilewright.passes.located_text import Place, located_text
from tilewright.passes.pass_changes import PassChanges
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.nvidia.backend.options import NvidiaOptions
from tilewright.targets.nvidia.backend.stage_lines import llvm_places, ptx_places, sass_places
from tilewright.targets.target import back_end


@dataclass
class StageText:
    """The text of a stage; `places` has the place of each line, `ptx_lines` the PTX line (from 1) of machine code."""

    name: str
    text: str
    places: list[Place | None] = field(default_factory=list)
    ptx_lines: list[int | None] = field(default_factory=list)


@dataclass
class Located:
    """A compilation: for each kernel the texts of its stages, what each pass changed, the seconds of the stages."""

    kernels: dict[str, list[StageText]]
    passes: PassChanges
    job: Job


def located(executor: Any) -> Located:
    """Compile the function of an executor once more, and keep where each line of each stage comes from.

    Raises:
        CompileError: the executor was loaded from a file, so there is nothing to compile.
    """
    begin: Callable[[], Job] | None = executor.job.anew
    if begin is None:
        raise CompileError(f"{executor.name} cannot be compiled once more", hint="compile it from its source")
    job = begin()
    if isinstance(job.options, NvidiaOptions):
        job.options = replace(job.options, generate_line_info=True)
    job.after_pass = changes = PassChanges()
    modules: dict[str, tuple[str, list[Place | None]]] = {}

    def keep(stage: str, job: Job) -> None:
        if job.module is not None and stage in job.texts:
            modules[stage] = located_text(job.module)

    with compile_context():
        stages.run(job, back_end(job.back_end).stage_names[-1], [keep])
    return Located({name: _texts(job, kernel, modules) for name, kernel in job.kernels.items()}, changes, job)


def _texts(job: Job, kernel: KernelJob, modules: dict[str, tuple[str, list[Place | None]]]) -> list[StageText]:
    """The texts of one kernel, in the order of the stages."""
    found = []
    for stage in back_end(job.back_end).stage_names:
        text = kernel.python() if stage == "python" else kernel.texts.get(stage, job.texts.get(stage, ""))
        if isinstance(text, str) and text:
            found.append(_located(stage, text, kernel, modules))
    return found


def _located(stage: str, text: str, kernel: KernelJob, modules: dict[str, tuple[str, list[Place | None]]]) -> StageText:
    if stage in modules:
        return StageText(stage, text, _part(text, *modules[stage]))
    if stage == "llvm":
        return StageText(stage, text, llvm_places(text))
    if stage == "ptx":
        return StageText(stage, text, ptx_places(text))
    if stage == "sass":
        return StageText(stage, text, *sass_places(text, kernel.texts["cubin"], kernel.name))
    return StageText(stage, text, [None] * len(text.splitlines()))


def _part(text: str, whole: str, places: list[Place | None]) -> list[Place | None]:
    """The places of a kernel's text, which is a part of the whole module's, less indented."""
    lines = text.splitlines()
    above = [line.strip() for line in whole.splitlines()]
    head = lines[0].strip()
    start = next((number for number, line in enumerate(above) if line == head), None)
    if start is None or above[start : start + len(lines)] != [line.strip() for line in lines]:
        return [None] * len(lines)
    return places[start : start + len(lines)]
