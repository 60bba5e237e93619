"""The emulator: thread-instructions a second, checks on and off, against numba's CUDA simulator in the same run.

The kernels are those of tests/emu/data/engine; the simulator runs the same kernels written for numba, on problems small
enough to end, and is compared by time for each thread (vector add), element (row sum, transpose) or multiply-add
(matmul). Every result is checked against NumPy. Without numba in this environment there is no ratio.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.runner import Row
from tilewright.base import settings
from tilewright.emulate import run_ptx
from tilewright.kernels import gemm

DATA = Path(__file__).parents[1] / "tests" / "emu" / "data" / "engine"
ENGINE, FAULTS = ((DATA / f"{name}.ptx").read_text() for name in ("engine", "faults"))
RATES = {"vector add": 200.0, "rounds": 10.0}
"""The least million thread-instructions a second, of 65,536 threads and of one block with a barrier in its loop."""
PRODUCT = 6.0
"""The most seconds of two cores for a product on Hopper of 512 x 512 x 256 with all checks."""
FASTER = 200.0
CHECKS = 5.0

SIMULATOR = """
import json, sys, time
import numpy as np
from numba import cuda, float32

@cuda.jit
def add(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]

@cuda.jit
def row_sum(a, out, n):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(t, n, 256):
        total += a[cuda.blockIdx.x, i]
    s[t] = total
    cuda.syncthreads()
    k = 128
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k >>= 1
    if t == 0:
        out[cuda.blockIdx.x] = s[0]

@cuda.jit
def transpose(a, out, n):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * 32 + tx, cuda.blockIdx.y * 32 + ty
    for j in range(0, 32, 8):
        tile[ty + j, tx] = a[y + j, x]
    cuda.syncthreads()
    x, y = cuda.blockIdx.y * 32 + tx, cuda.blockIdx.x * 32 + ty
    for j in range(0, 32, 8):
        out[y + j, x] = tile[tx, ty + j]

@cuda.jit
def matmul(a, b, c, n):
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(n):
        total += a[y, k] * b[k, x]
    c[y, x] = total

def seconds(kernel, grid, block, *args):
    start = time.perf_counter()
    kernel[grid, block](*args)
    return time.perf_counter() - start

n = 1024
a = np.ones(n, np.float32)
out = {"vector add": seconds(add, n // 256, 256, a, a, a.copy(), n) / n}
a = np.ones((2, 1024), np.float32)
out["row sum"] = seconds(row_sum, 2, 256, a, np.zeros(2, np.float32), 1024) / a.size
a = np.ones((64, 64), np.float32)
out["transpose"] = seconds(transpose, (2, 2), (32, 8), a, a.copy(), 64) / a.size
a = np.ones((32, 32), np.float32)
out["matmul"] = seconds(matmul, (2, 2), (16, 16), a, a.copy(), a.copy(), 32) / 32**3
print(json.dumps(out))
"""


@dataclass
class Case:
    """A kernel, its launch, the argument that it writes and what must be there; `work` is what the ratio counts by."""

    name: str
    ptx: str
    kernel: str
    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    args: list[Any]
    result: int
    wanted: np.ndarray
    work: int

    def seconds(self, checks: bool, times: int) -> tuple[float, int]:
        """(seconds, thread-instructions) of the fastest run."""
        best, count = float("inf"), 0
        for _ in range(times):
            self.args[self.result][...] = 0
            start = time.perf_counter()
            count = run_ptx(self.ptx, self.kernel, self.grid, self.block, self.args, checks=checks).instructions
            best = min(best, time.perf_counter() - start)
            np.testing.assert_array_equal(self.args[self.result], self.wanted)
        return best, count


def rows(quick: bool) -> Iterator[Row]:
    """For each kernel its rate, what checks cost, and the ratio to the simulator where numba is installed."""
    times = 2 if quick else 5
    peer = simulator()
    for case in cases():
        plain, count = case.seconds(False, times)
        checked, _ = case.seconds(True, times)
        rate = RATES.get(case.name)
        yield Row(case.name, count / plain / 1e6, "M instr/s", times, rate, "higher", f"{plain * 1e3:.1f} ms unchecked")
        yield Row(f"{case.name}, checks on", checked / plain, "times as long", times, CHECKS)
        if case.name in peer:
            ratio = peer[case.name] * case.work / plain
            yield Row(f"{case.name}, against numba's simulator", ratio, "times as fast", times, FASTER, "higher")
    yield Row("product on Hopper, 512 x 512 x 256, checks on", product(times), "s", times, PRODUCT)


def product(times: int) -> float:
    """Seconds of a persistent, warp-specialised product of sm_90 of 512 x 512 x 256, with all checks."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((512, 256), (256, 512)))
    out, best = np.empty((512, 512), np.float16), float("inf")
    with settings.scope(target="emu", arch="sm_90a"):
        for _ in range(times + 1):  # the first one compiles
            start = time.perf_counter()
            gemm.gemm(out, a, b)
            best = min(best, time.perf_counter() - start)
    np.testing.assert_array_equal(out, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))
    return best


def cases() -> Iterator[Case]:
    """The kernels and their arguments."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 65536)).astype(np.float32)
    yield Case("vector add", ENGINE, "add", 256, 256, [a, b, np.zeros_like(a), a.size], 2, a + b, a.size)
    m = rng.integers(-9, 10, (1024, 1024)).astype(np.float32)
    sums = [m, np.zeros(1024, np.float32), 1024]
    yield Case("row sum", FAULTS, "row_sum", 1024, 256, sums, 1, m.sum(axis=1), m.size)
    yield Case("transpose", FAULTS, "transpose", (32, 32), (32, 8), [m, np.zeros_like(m), 1024], 1, m.T, m.size)
    x, y = rng.integers(-5, 6, (2, 256, 256)).astype(np.float32)
    yield Case("matmul", ENGINE, "matmul", (16, 16), (16, 16), [x, y, np.zeros_like(x), 256], 2, x @ y, 256**3)
    wanted = (np.arange(128) + 3000) % 128 + 3000
    yield Case("rounds", ENGINE, "rounds", 1, 128, [np.zeros(128, np.int32), 3000], 0, wanted, 128 * 3000)


def simulator() -> dict[str, float]:
    """Seconds for each unit of work on numba's simulator, by kernel; empty without numba."""
    if importlib.util.find_spec("numba") is None:
        return {}
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", SIMULATOR]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
