"""The one loop that runs the stages of a back end.

`run` takes a job from its first stage to the last one asked for. Dumping, timing and exploring are observers of this
loop; nothing else compiles.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilewright.base import ranges, settings
from tilewright.base.errors import PassError
from tilewright.ir.locations import source_location
from tilewright.ir.user_ops import dialects
from tilewright.ir.walk import operations
from tilewright.targets.job import Job
from tilewright.targets.overrides import at_text_lines
from tilewright.targets.stage import Stage
from tilewright.targets.target import back_end

if TYPE_CHECKING:
    from mlir import ir

Observer = Callable[[str, Job], None]
"""Called after each stage with its name and the job."""


def run(job: Job, until: str, observers: Sequence[Observer] = ()) -> None:
    """Take the job through the stages up to `until`.

    Meanwhile the collector of cycles waits: it would walk all objects of the process again and again, as a program
    grows, and find next to nothing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        _run(job, until, observers)
    finally:
        if collects:
            gc.enable()


def _run(job: Job, until: str, observers: Sequence[Observer]) -> None:
    for stage in back_end(job.back_end).stages:
        if stage.name in job.finished:
            if stage.name == until:
                return
            continue
        start = time.perf_counter()
        with settings.scope(toolkit=job.toolkit), at_text_lines(job), ranges.span(f"{stage.name} of {job.name}"):
            found = stage.run(job)
            if stage.legal is not None and job.module is not None:
                job.operations[stage.name] = check_legal(operations(job.module) if found is None else found, stage)
        job.seconds[stage.name] = time.perf_counter() - start
        job.finished.append(stage.name)
        for observer in observers:
            observer(stage.name, job)
        if job.options.print_ir:
            sys.stderr.write(_printed(stage, job))
        if stage.name == until:
            return


def _printed(stage: Stage, job: Job) -> str:
    """The texts that a stage made, each under a line that names it; "" for a stage without text."""
    if stage.name == "python":
        texts = [(job.name, job.python())]
    elif stage.whole:
        texts = [(job.name, job.texts[stage.name])]
    else:
        texts = [(kernel.name, kernel.texts[stage.name]) for kernel in job.kernels.values()]
    return "".join(
        f"// ---- {stage.name} of {name}, {job.arch} ----\n{text}\n" for name, text in texts if isinstance(text, str)
    )


def check_legal(found: Sequence[ir.Operation], stage: Stage) -> int:
    """Refuse operations that may not be left after `stage`; gives the number of operations."""
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
