"""The stages after `cute`: `tt`, functions of the `tt` dialect, and `cpp`, the three kernels as C++."""

from __future__ import annotations

import json
import time
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import PassError
from tilewright.hw.tensix import CORES
from tilewright.ir import mlir
from tilewright.passes.pipeline import Pass, PassRun
from tilewright.targets import cute_stage
from tilewright.targets.job import Job
from tilewright.targets.pass_lists import split
from tilewright.targets.stage import Stage
from tilewright.targets.tenstorrent import dialect
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.emit.host import host_text
from tilewright.targets.tenstorrent.passes.emit import Emit
from tilewright.targets.tenstorrent.passes.verify_protocol import VerifyProtocol, by_kernel
from tilewright.targets.tenstorrent.passing import TirPass
from tilewright.targets.tenstorrent.plan import make_plan
from tilewright.targets.tenstorrent.tir.nodes import IRModule
from tilewright.targets.tenstorrent.tir.read_mlir import read_module
from tilewright.targets.tenstorrent.tir.write_mlir import module_text

MODULE, PLAN, HOST = "tt_module", "plan", "host"
"""Keys of `job.parts`: the finished `IRModule`, the text of plan.json, that of host.py."""


def context_of(job: Job) -> PassContext:
    """What the passes of a compilation know."""
    return PassContext(CORES[job.arch], job.options)  # type: ignore[arg-type]


def _tt(job: Job) -> None:
    _, later = split(job.pipeline)
    context = context_of(job)
    module = read_module(job.module)
    last = ""
    for item in later:
        module = _run(item, module, context, job)
        last = item.name
    if last != VerifyProtocol.name:
        module = _run(VerifyProtocol, module, context, job)
    job.parts[MODULE] = module
    dialect.load()
    text = module_text(module)
    job.module = _parsed(text)
    job.texts["tt"] = cute_stage.asm(job.module)


def _run(item: Pass, module: IRModule, context: PassContext, job: Job) -> IRModule:
    """One pass; after one that is not the project's own, the rules of the dialect."""
    if not isinstance(item, TirPass):
        raise PassError(
            f"pass {item.name} runs on modules of MLIR, and stands among the passes of stage tt",
            hint="put it before infer-layout: before('infer-layout', ...)",
        )
    start = time.perf_counter()
    made = item.run_module(module, context)
    job.pass_runs.append(PassRun(str(item), time.perf_counter() - start))
    if settings.get("verify") or not type(item).__module__.startswith("tilewright."):
        dialect.verify(made, f"pass {item.name}")
    if job.after_pass is not None:
        job.after_pass(item, made)
    return made


def _parsed(text: str) -> Any:
    """The module of stage `tt`, verified by MLIR."""
    try:
        return mlir.ir.Module.parse(text).operation
    except mlir.ir.MLIRError as error:
        reason = "; ".join(str(item.message) for item in error.error_diagnostics) or str(error)
        raise PassError(
            "stage tt is not valid",
            values={"reason": reason},
            hint="a pass left an operation that MLIR does not take",
            nvvm_error=str(error),
        ) from error


def _cpp(job: Job) -> None:
    context = context_of(job)
    module = Emit.run_module(job.parts[MODULE], context)
    plan = make_plan(module, context)
    job.parts[PLAN] = json.dumps(plan, indent=2) + "\n"
    job.parts[HOST] = host_text(plan)
    for name, kernels in by_kernel(module).items():
        job.kernels[name].texts["cpp"] = {
            str(item.attrs["tt.kernel_role"]): str(item.attrs["tt.cpp"]) for item in kernels
        }


def files_of(job: Job) -> dict[str, str]:
    """The files of a program: three kernels for each launch, in a folder of its own where there are several."""
    several = len(job.kernels) > 1
    found = {
        f"{kernel.name}/{role}.cpp" if several else f"{role}.cpp": text
        for kernel in job.kernels.values()
        for role, text in kernel.texts["cpp"].items()
    }
    return {**found, "plan.json": job.parts[PLAN], "host.py": job.parts[HOST]}


LEGAL = frozenset(("builtin", "func", "tt", "scf", "arith"))
TT = Stage("tt", _tt, LEGAL, extension="tt.mlir", whole=True)
CPP = Stage("cpp", _cpp, extension="cpp", files=files_of)
