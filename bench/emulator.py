"""Speed of the emulator, in thread-instructions a second, and against numba's CUDA simulator in the same run.

    python bench/emulator.py                        the emulator alone
    python bench/emulator.py --numba PYTHON         also numba's simulator, with a Python that has numba

The kernels are those of tests/emu/data/engine; the simulator runs the same kernels written for numba, on problems small
enough to end, and is compared by time for each thread (vector add, row sum, transpose) or multiply-add (matmul). Every
result is checked against NumPy. `--json FILE` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from tilewright.emulate import run_ptx

DATA = Path(__file__).parents[1] / "tests" / "emu" / "data" / "engine"
ENGINE, FAULTS = ((DATA / f"{name}.ptx").read_text() for name in ("engine", "faults"))
GOALS = {"add": "200 M/s on 65,536 threads", "rounds": "10 M/s on one block of 128 with a barrier in its loop"}

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
out = {"add": seconds(add, n // 256, 256, a, a, a.copy(), n) / n}
a = np.ones((2, 1024), np.float32)
out["row_sum"] = seconds(row_sum, 2, 256, a, np.zeros(2, np.float32), 1024) / a.size
a = np.ones((64, 64), np.float32)
out["transpose"] = seconds(transpose, (2, 2), (32, 8), a, a.copy(), 64) / a.size
a = np.ones((32, 32), np.float32)
out["matmul"] = seconds(matmul, (2, 2), (16, 16), a, a.copy(), a.copy(), 32) / 32**3
print(json.dumps(out))
"""


def cases():
    """(name, PTX, kernel, grid, block, arguments, index of the result, wanted, units of work)."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 65536)).astype(np.float32)
    yield "add", ENGINE, "add", 256, 256, [a, b, np.zeros_like(a), a.size], 2, a + b, a.size
    m = rng.integers(-9, 10, (1024, 1024)).astype(np.float32)
    yield "row_sum", FAULTS, "row_sum", 1024, 256, [m, np.zeros(1024, np.float32), 1024], 1, m.sum(axis=1), m.size
    yield "transpose", FAULTS, "transpose", (32, 32), (32, 8), [m, np.zeros_like(m), 1024], 1, m.T, m.size
    x, y = rng.integers(-5, 6, (2, 256, 256)).astype(np.float32)
    yield "matmul", ENGINE, "matmul", (16, 16), (16, 16), [x, y, np.zeros_like(x), 256], 2, x @ y, 256**3
    wanted = (np.arange(128) + 3000) % 128 + 3000
    yield "rounds", ENGINE, "rounds", 1, 128, [np.zeros(128, np.int32), 3000], 0, wanted, 128 * 3000


def measure(case, checks, times):
    """(seconds, thread-instructions) of the fastest run; the result is checked."""
    _, ptx, kernel, grid, block, args, result, wanted, _ = case
    best, count = float("inf"), 0
    for _ in range(times):
        args[result][...] = 0
        start = time.perf_counter()
        count = run_ptx(ptx, kernel, grid, block, args, checks=checks).instructions
        best = min(best, time.perf_counter() - start)
        np.testing.assert_array_equal(args[result], wanted)
    return best, count


def simulator(python):
    """Seconds for each unit of work on numba's simulator."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([python, "-c", SIMULATOR], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numba", metavar="PYTHON", help="a Python with numba, for its CUDA simulator")
    parser.add_argument("--times", type=int, default=5, help="runs of each; the fastest counts")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    options = parser.parse_args()
    peer = simulator(options.numba) if options.numba else {}
    rows = []
    print(f"{platform.processor() or platform.machine()}, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    print(f"{'kernel':<10} {'unchecked':>10} {'M instr/s':>10} {'checked':>10} {'ratio':>6} {'numba sim':>10}")
    for case in cases():
        name, work = case[0], case[-1]
        plain, count = measure(case, False, options.times)
        checked, _ = measure(case, True, options.times)
        times = peer[name] * work / plain if name in peer else None
        rows.append(
            {"kernel": name, "seconds": plain, "rate": count / plain, "checked": checked / plain, "times": times}
        )
        shown = f"{times:,.0f}x" if times else ""
        print(f"{name:<10} {plain * 1e3:>8.1f}ms {count / plain / 1e6:>10.0f} {checked * 1e3:>8.1f}ms "
              f"{checked / plain:>6.1f} {shown:>10}  {GOALS.get(name, '')}")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
