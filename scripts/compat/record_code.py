"""Run one source, and note what it compiles: `record_code.py NAME OUT REPEATS ARGS...`, a part of `compare_code.py`.

ARGS are `demo`, `suite TESTS...`, or what `run_one.py` takes. What is compiled is not run.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import run_one
from compare_code import STAGES, Kernel, Program, Record

from tilewright.base.errors import TilewrightError
from tilewright.compiler import hooks, stages
from tilewright.ir.context import compile_context
from tilewright.targets.job import Job
from tilewright.targets.nvidia.sass.listing import parse
from tilewright.tools import demo


class Recorder:
    """Notes every compilation of this process; call it with an executor."""

    def __init__(self, source: str, repeats: int) -> None:
        self.source, self.repeats = source, repeats
        self.record = Record()
        self._seen: Counter[str] = Counter()

    def __call__(self, executor: Any) -> None:
        try:
            self._note(executor)
        except TilewrightError as error:  # what a test compiles may be wrong on purpose
            sys.stderr.write(f"{self.source}: {executor.name} has no machine code: {error}\n")

    def _note(self, executor: Any) -> None:
        if not executor.kernels:
            return
        executor.device.run = lambda values: None  # what it computes is for the tests to check
        for name, kernel in executor.kernels.items():
            found = measured(self.source, self._numbered(f"kernel {name}"), kernel)
            self.record.kernels[found.key] = found
        program = Program(
            self.source,
            self._numbered(f"program {executor.name}"),
            executor.operations["cute"],
            executor.stages["nvvm"].count("\n"),
            seconds(executor, self.repeats),
        )
        self.record.programs[program.key] = program

    def _numbered(self, name: str) -> str:
        self._seen[name] += 1
        return f"{name.split()[1]}#{self._seen[name]}"


def measured(source: str, name: str, kernel: Any) -> Kernel:
    """The figures of a compiled kernel."""
    code = [item for item in parse(kernel.stages["sass"]) if item.kernel == kernel.name and item.mnemonic != "NOP"]
    info = kernel.info
    spills = info.spill_store_bytes + info.spill_load_bytes
    return Kernel(
        source, name, len(code), info.registers, spills, info.stack_bytes, kernel.stages["ptx"].count("\n")
    )  # fmt: skip


def seconds(executor: Any, repeats: int) -> dict[str, float]:
    """Seconds of each stage: the least of the executor's own compilation and `repeats` more."""
    made, runs = executor.job, [executor.job.seconds]
    for _ in range(repeats):
        job = Job(
            made.name, made.back_end, made.arch, made.options, made.pipeline, made.trace, made.python, made.override,
            toolkit=made.toolkit, signature=made.signature,
        )  # fmt: skip
        with compile_context():
            stages.run(job, "cubin")
        runs.append(job.seconds)
    return {stage: min(run[stage] for run in runs if stage in run) for stage in STAGES}


def record_here(source: str, arguments: list[str], repeats: int) -> Record:
    """Run a source in this process and note what it compiles."""
    recorder = Recorder(source, repeats)
    with hooks.after_compile(recorder):
        try:
            _run(arguments)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (what was compiled counts, not how the program ends)
            sys.stderr.write(f"{source}: {type(error).__name__}: {str(error).splitlines()[:1]}\n")
    return recorder.record


def _run(arguments: list[str]) -> None:
    if arguments[0] == "demo":
        for case in demo.CASES:
            demo.timed(case, case.problem(np.random.default_rng(0)), no_cache=True)
    elif arguments[0] == "suite":
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments[1:]])
    else:
        run_one.main(arguments)


if __name__ == "__main__":
    name, out, repeats, *arguments = sys.argv[1:]
    record_here(name, arguments, int(repeats)).write(Path(out))
