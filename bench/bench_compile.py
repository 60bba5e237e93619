"""Compiling: cold compiles of small kernels in a warm process, stage by stage, down to the cubin."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tilewright.cute as cute
from bench.kernels import row_sum, vector_add
from bench.runner import Row
from tilewright.ir import libdevice
from tilewright.ir.llvm_api import Context

TARGET_MS = 40.0
STAGES = ("cute", "nvvm", "llvm", "ptx", "cubin")


def rows(quick: bool) -> Iterator[Row]:
    """Medians over compilations of the same function; nothing is cached between them."""
    samples = 3 if quick else 25
    a = np.zeros(1 << 16, np.float32)
    x, output = np.zeros((64, 1024), np.float32), np.zeros(64, np.float32)
    for name, function, arguments in (("vector add", vector_add, (a, a, a)), ("row sum", row_sum, (x, output))):
        yield from _of_function(name, function, arguments, samples)
    yield from _of_linking(8 * samples)


def _of_function(name: str, function: Any, arguments: tuple[Any, ...], samples: int) -> Iterator[Row]:
    runs = []
    for _ in range(samples + 2):
        executor = cute.compile(function, *arguments, target="emu", arch="sm_90a", no_cache=True)
        executor.stages["cubin"]
        runs.append(executor)
    runs = runs[2:]
    totals = [sum(run.timings.values()) * 1e3 for run in runs]
    yield Row(f"{name}, all stages", statistics.median(totals), "ms", samples, target=TARGET_MS)
    for stage in STAGES:
        yield Row(f"{name}, {stage}", statistics.median(run.timings[stage] * 1e3 for run in runs), "ms", samples)
    operations = runs[0].operations["cute"]
    per_thousand = statistics.median(run.timings["cute"] * 1e6 for run in runs) / operations
    yield Row(f"{name}, tracing per 1,000 operations", per_thousand, "ms", samples, note=f"{operations} operations")
    lowering = statistics.median(dict(run.pass_timings)[_lowering(run)] * 1e6 for run in runs) / operations
    yield Row(f"{name}, rules per 1,000 operations", lowering, "ms", samples)


def _lowering(run: Any) -> str:
    return next(name for name, _ in run.pass_timings if name.startswith("cute-to-nvvm"))


CALL = """declare float @__nv_expf(float)
define ptx_kernel void @k(ptr addrspace(1) %a, float %x) {
  %y = call float @__nv_expf(float %x)
  store float %y, ptr addrspace(1) %a
  ret void
}
"""


def _of_linking(samples: int) -> Iterator[Row]:
    """Linking one function of libdevice: for the first kernel that uses it, and for later ones."""
    for first, target in ((True, 3.0), (False, 1.0)):
        seconds = statistics.median(_linking(first) for _ in range(samples))
        name = f"linking a function of libdevice, {'first' if first else 'later'} use"
        yield Row(name, seconds * 1e3, "ms", samples, target=target)


def _linking(first: bool) -> float:
    if first:
        libdevice._extract.cache_clear()
    with Context() as context:
        module = context.parse(CALL)
        start = time.perf_counter()
        libdevice.link_libdevice(context, module)
        return time.perf_counter() - start
