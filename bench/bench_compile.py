"""Compiling: cold compiles in a warm process, stage by stage, down to the cubin.

Flash attention and the GEMM of Ampere's tensor cores are NVIDIA's examples, unchanged, where a checkout of
NVIDIA/cutlass lies beside this one (`../cutlass`) and PyTorch is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tilewright.cute as cute
from bench.kernels import long_sum, row_sum, vector_add
from bench.runner import Row
from tilewright.ir import libdevice
from tilewright.ir.llvm_api import Context
from tilewright.kernels.softmax_online import launch_softmax_online, softmax_online

STAGES = ("cute", "nvvm", "llvm", "ptx", "cubin")
HISTORY = "compile_history.json"
"""The totals of this topic of every run that was kept."""

ROOT = Path(__file__).resolve().parents[1]
CHECKOUT = ROOT.parent / "cutlass"
EXAMPLES = "examples/python/CuTeDSL/cute/ampere/kernel"
PUBLIC = {
    "ampere GEMM": ("dense_gemm/tensorop_gemm.py", "--mnkl", "256,128,64,1"),
    "flash attention": (
        "attention/flash_attention_v2.py", "--batch_size", "1", "--seqlen_q", "128", "--seqlen_k", "128",
    ),
}  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """Medians over compilations of the same function; nothing is cached between them."""
    samples = 3 if quick else 25
    a = np.zeros(1 << 16, np.float32)
    x, sums, y = (np.zeros(shape, np.float32) for shape in ((64, 1024), 64, (64, 4096)))
    yield from _measured("vector add", lambda: _compiled(vector_add, a, a, a), samples, target=7.0)
    yield from _measured("row sum", lambda: _compiled(row_sum, x, sums), samples, target=14.0)
    plan = softmax_online.plan_for(y, y)
    yield from _measured("softmax of 4096", lambda: _compiled(launch_softmax_online, y, y, plan), samples)
    operations = 200 if quick else 20_000
    generated = _measured(
        f"{operations:,} operations", lambda: _compiled(long_sum, a, operations), samples if quick else 3
    )
    yield from generated
    yield Row("memory, most", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")
    yield from _of_public(samples)
    yield from _of_linking(8 * samples)


def _compiled(function: Any, *arguments: Any) -> Any:
    executor = cute.compile(function, *arguments, target="emu", arch="sm_90a", no_cache=True)
    executor.stages["cubin"]
    return executor


def _measured(name: str, compiled: Callable[[], Any], samples: int, target: float | None = None) -> Iterator[Row]:
    """The times of a function's stages; and those of tracing and of lowering, per operation.

    `target` is in ms, without the assembler.
    """
    runs = [compiled() for _ in range(samples + 1)][1:]
    yield from of_stages(name, [run.timings for run in runs], target)
    operations = runs[0].operations["cute"]
    per_thousand = statistics.median(run.timings["cute"] * 1e6 for run in runs) / operations
    yield Row(f"{name}, tracing per 1,000 operations", per_thousand, "ms", samples, note=f"{operations} operations")
    lowering = statistics.median(dict(run.pass_timings)[_lowering(run)] * 1e6 for run in runs) / operations
    yield Row(f"{name}, rules per 1,000 operations", lowering, "ms", samples)


def of_stages(name: str, timings: list[dict[str, float]], target: float | None = None) -> Iterator[Row]:
    """The medians of the seconds of each stage, of all, and of all but the assembler."""
    totals = [sum(run.values()) * 1e3 for run in timings]
    own = [sum(seconds for stage, seconds in run.items() if stage != "cubin") * 1e3 for run in timings]
    yield Row(f"{name}, all stages", statistics.median(totals), "ms", len(timings))
    yield Row(f"{name}, without the assembler", statistics.median(own), "ms", len(timings), target=target)
    for stage in STAGES:
        yield Row(f"{name}, {stage}", statistics.median(run[stage] * 1e3 for run in timings), "ms", len(timings))


def _lowering(run: Any) -> str:
    return next(name for name, _ in run.pass_timings if name.startswith("cute-to-nvvm"))


def _of_public(samples: int) -> Iterator[Row]:
    """Public sources, each in a process of its own; none where there is no checkout."""
    for name, (file, *arguments) in PUBLIC.items():
        path = CHECKOUT / EXAMPLES / file
        if not path.exists() or importlib.util.find_spec("torch") is None:
            continue
        command = [sys.executable, "-m", "bench.compile_public", str(samples), str(path), *arguments]
        paths = [ROOT, ROOT / "src", ROOT / "scripts" / "compat", CHECKOUT / "examples/python/CuTeDSL"]
        environment = {
            **os.environ, "TILEWRIGHT_ARCH": "sm_90a", "TILEWRIGHT_TARGET": "emu",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }  # fmt: skip
        done = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{path} does not compile:\n{done.stderr}")
        yield from of_stages(name, json.loads(done.stdout.splitlines()[-1]))


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
