"""Collectives of a warp, a block, a cluster and a grid: time of each in a chain, beside CUB and cooperative groups.

Each kernel does `ROUNDS` collectives one after the other, the next on what the last gave; a row is the time of one.
With a block for each multiprocessor it is the latency, with a full device what a multiprocessor gets done. Calls of one
row are interleaved. It needs a GPU and PyTorch, and for the comparison `nvcc` (CUDA 13) on the path or in
/usr/local/cuda.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from bench.runner import Row
from tilewright.targets.nvidia.devices import driver as cuda

ROUNDS = 2048
SOURCE = Path(__file__).with_name("native_collectives.cu")
Calls = dict[str, Callable[[], object]]


@cute.kernel
def chain_kernel(
    x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, step: cutlass.Constexpr, rounds: cutlass.Constexpr
) -> None:
    """`rounds` collectives, each on what the last gave."""
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    v = x[i]
    for _ in cutlass.range(rounds, unroll=1):
        v = step(v, work)
    out[i] = v


@cute.jit
def chain(
    x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, step: cutlass.Constexpr, rounds: cutlass.Constexpr,
    grid: cutlass.Constexpr, block: cutlass.Constexpr, cluster: cutlass.Constexpr, cooperative: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Launch a chain."""
    chain_kernel(x, out, work, step, rounds).launch(
        grid=(grid, 1, 1), block=(block, 1, 1), cluster=cluster, cooperative=cooperative
    )


def nothing(v: Any, work: Any) -> Any:
    """What a chain takes without a collective."""
    return v * 0.5


def warp(v: Any, work: Any) -> Any:
    """A butterfly."""
    return cute.warp_allreduce(v) * 0.03


def warp_of_integers(v: Any, work: Any) -> Any:
    """One instruction."""
    return cute.warp_allreduce(v) + 1


def reduce(v: Any, work: Any) -> Any:
    """To the first thread of a block."""
    total = cute.block_reduce(v)
    return cutlass.select_(cute.arch.thread_idx()[0] == 0, total * 0.001, v * 0.999)


def allreduce(v: Any, work: Any) -> Any:
    """To all threads of a block."""
    return cute.block_allreduce(v) * 0.001


def scan(v: Any, work: Any) -> Any:
    """Over a block."""
    return cute.block_scan(v) * 0.001


def push(v: Any, work: Any) -> Any:
    """Over a cluster, by writes into the other blocks."""
    return cute.cluster_allreduce(v, mode="push") * 0.001


def pull(v: Any, work: Any) -> Any:
    """Over a cluster, by reads from the other blocks."""
    return cute.cluster_allreduce(v, mode="pull") * 0.001


def barrier(v: Any, work: Any) -> Any:
    """Of the grid."""
    cute.grid_barrier(work)
    return v * 0.5


def over_grid(v: Any, work: Any) -> Any:
    """Over the grid."""
    return cute.grid_allreduce(v, "add", work) * 1e-5


def rows(quick: bool) -> Iterator[Row]:
    """Nanoseconds of one collective."""
    if not cuda.available() or importlib.util.find_spec("torch") is None:
        return
    torch = importlib.import_module("torch")
    torch.zeros(1, device="cuda")  # so that there is a context
    samples, native = 5 if quick else 21, _native()
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    base = _measured(torch, {"nothing": _ours(torch, nothing, 1, 32)}, samples)["nothing"]
    yield Row("a chain without collectives", base, "ns", samples)
    integers = _ours(torch, warp_of_integers, 1, 32, dtype=torch.int32)
    doubles = _ours(torch, warp, 1, 32, dtype=torch.float64)
    calls = {"f32": _ours(torch, warp, 1, 32), "i32": integers, "f64": doubles}
    yield from _shown("warp, all-reduce of", _measured(torch, calls, samples), samples)
    for threads in (128, 256, 512, 1024):
        for grid in (sms, sms * 2048 // threads):
            calls = {name.__name__: _ours(torch, name, grid, threads) for name in (reduce, allreduce, scan)}
            theirs = {
                f"CUB {kind}": _theirs(torch, native[f"{kind}_{threads}"], grid, threads)
                for kind in ("reduce", "allreduce") if native
            }  # fmt: skip
            found = _measured(torch, calls | theirs, samples)
            yield from _shown(f"block of {threads}, {grid} blocks,", found, samples)
    for blocks, threads, grid in ((4, 256, sms), (4, 256, 8 * sms), (8, 128, sms), (8, 1024, sms)):
        grid = grid // blocks * blocks
        calls = {name.__name__: _ours(torch, name, grid, threads, (blocks, 1, 1)) for name in (push, pull)}
        if native and threads == 256:
            calls["cooperative groups"] = _theirs(torch, native["cluster_256"], grid, threads)
        yield from _shown(f"cluster of {blocks} x {threads}, {grid} blocks,", _measured(torch, calls, samples), samples)
    for threads in (256, 1024):
        calls = {name.__name__: _ours(torch, name, sms, threads, cooperative=True) for name in (barrier, over_grid)}
        yield from _shown(f"grid of {sms} x {threads},", _measured(torch, calls, samples), samples)


def _shown(title: str, found: Mapping[str, float], samples: int) -> Iterator[Row]:
    """A row for each; ours have that of CUB as target."""
    for name, value in found.items():
        target = found.get(f"CUB {name}") or (found.get("cooperative groups") if name == "push" else None)
        yield Row(f"{title} {name}", value, "ns", samples, target)


def _ours(
    torch: Any, step: Any, grid: int, block: int, cluster: Any = None, *, cooperative: bool = False, dtype: Any = None
) -> Callable[[], object]:
    x = torch.ones(grid * block, dtype=dtype or torch.float32, device="cuda")
    out = torch.zeros_like(x)
    work = torch.zeros(cute.grid_workspace(grid), dtype=torch.int64, device="cuda")
    compiled = cute.compile(chain, x, out, work, step, ROUNDS, grid, block, cluster, cooperative, target="cuda")
    return lambda: compiled(x, out, work)


def _native() -> dict[str, cuda.Kernel]:
    """The kernels of `SOURCE`; none without a compiler."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "native.cubin"
        arch = cuda.driver().device().arch
        command = [nvcc, "-O3", f"-arch={arch}", "-std=c++17", "-cubin", str(SOURCE), "-o", str(cubin)]
        subprocess.run(command, check=True, capture_output=True)
        library = cuda.driver().load_library(cubin.read_bytes())
    names = [f"{kind}_{threads}" for kind in ("reduce", "allreduce") for threads in (128, 256, 512, 1024)]
    return {name: library.kernel(name) for name in (*names, "cluster_256")}


def _theirs(torch: Any, kernel: cuda.Kernel, grid: int, block: int) -> Callable[[], object]:
    x = torch.ones(grid * block, device="cuda")
    out = torch.zeros_like(x)
    values = [ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_int(ROUNDS)]
    stream = torch.cuda.current_stream().cuda_stream
    keep = (x, out)
    return lambda: (cuda.driver().launch(kernel, (grid, 1, 1), (block, 1, 1), values, stream=stream), keep)


def _measured(torch: Any, calls: Calls, samples: int) -> dict[str, float]:
    """Medians of interleaved calls, in nanoseconds for each round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(samples + 2):
        for name, call in calls.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e6 / ROUNDS)
    return {name: statistics.median(found[2:]) for name, found in times.items()}
