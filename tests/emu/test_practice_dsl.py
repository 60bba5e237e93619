"""Mistakes in kernels of the CuTe DSL: found with the line of Python, for any order of threads."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.base.errors import EmulationError
from tilewright.emulate import observe

LINES = Path(__file__).read_text().splitlines()


def shared(shape):
    return cutlass.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(shape))


@cute.kernel
def reverse_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    smem = shared((128,))
    t = cute.arch.thread_idx()[0]
    smem[t] = x[t]  # reverse: barrier
    if cutlass.const_expr(slip != "barrier"):
        cute.arch.sync_threads()
    y[t] = smem[(128 if slip == "index" else 127) - t]  # reverse: barrier, index


@cute.kernel
def histogram_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    bins = shared((64,))
    t = cute.arch.thread_idx()[0]
    if cutlass.const_expr(slip != "clear"):
        if t < 64:
            bins[t] = 0  # histogram: barrier
    if cutlass.const_expr(slip != "barrier"):
        cute.arch.sync_threads()
    cute.arch.atomic_add(bins.iterator + x[t] % 64, cutlass.Int32(1))  # histogram: barrier
    cute.arch.sync_threads()
    if t < 64:
        y[t] = bins[t]  # histogram: clear, barrier


@cute.kernel
def scan_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    smem = shared((2, 128))
    t = cute.arch.thread_idx()[0]
    smem[0, t] = x[t]
    cute.arch.sync_threads()
    source, step = 0, 1
    while step < 128:
        value = smem[source, t]
        if t >= step:
            value += smem[source, t - step]  # scan: buffer
        if cutlass.const_expr(slip != "buffer"):
            source = 1 - source
        smem[source, t] = value  # scan: buffer
        cute.arch.sync_threads()
        step *= 2
    y[t] = smem[source, t]


@cute.kernel
def bound_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    t = cute.arch.thread_idx()[0]
    if t < 100 + (slip == "bound"):
        y[t + 28] = x[t]  # bound: bound


@cute.kernel
def shuffle_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    t = cute.arch.thread_idx()[0]
    y[t] = cute.arch.shuffle_sync_bfly(x[t], 1, 0xFFFF if slip == "mask" else -1)  # shuffle: mask


@cute.kernel
def array_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    t = cute.arch.thread_idx()[0]
    values = cute.make_rmem_tensor((8,), cute.Int32)
    for i in range(7 if slip == "part" else 8):
        values[i] = i
    y[t] = values[x[t] % 8]  # array: part


@cute.kernel
def ring_kernel(x: cute.Tensor, y: cute.Tensor, slip: cutlass.Constexpr):
    smem = shared((64,))
    full = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 2)
    t = cute.arch.thread_idx()[0]
    if t == 0:
        cute.arch.mbarrier_init(full, 64)
        cute.arch.mbarrier_init(full + 1, 64)
    cute.arch.sync_threads()
    if t < 64:
        for i in range(2):
            if cutlass.const_expr(slip != "empty"):
                cute.arch.mbarrier_wait(full + 1, (i & 1) ^ 1)  # ring: release
            smem[t] = x[64 * i + t]  # ring: empty, full
            cute.arch.mbarrier_arrive(full)
    else:
        total = cutlass.Int32(0)
        for i in range(2):
            if cutlass.const_expr(slip != "full"):
                cute.arch.mbarrier_wait(full, i & 1)  # ring: empty, release
            total += smem[127 - t]  # ring: empty, full
            if cutlass.const_expr(slip != "release"):
                cute.arch.mbarrier_arrive(full + 1)
        y[t - 64] = total  # ring: full


KERNELS = {
    kernel: name
    for name, kernel in (
        ("reverse", reverse_kernel), ("histogram", histogram_kernel), ("scan", scan_kernel), ("bound", bound_kernel),
        ("shuffle", shuffle_kernel), ("array", array_kernel), ("ring", ring_kernel),
    )
}  # fmt: skip


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, kernel: cutlass.Constexpr, slip: cutlass.Constexpr):
    kernel(x, y, slip).launch(grid=1, block=128)


def run(kernel, slip):
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    compiled = cute.compile(launch, x, y, kernel, slip, target="emu")
    for seed in range(4):
        with observe(seed=seed):
            compiled(x, y)
    return x, y


WANTED = {
    "reverse": lambda x: x[::-1], "histogram": lambda x: np.repeat([2, 0], 64), "scan": np.cumsum,
    "bound": lambda x: np.concatenate((np.zeros(28), x[:100])), "shuffle": lambda x: x ^ 1, "array": lambda x: x % 8,
    "ring": lambda x: np.concatenate((126 - 2 * x[:64] + 64, np.zeros(64))),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNELS.values())
def test_the_correct_kernel(kernel):
    x, y = run(kernel, "")
    assert np.array_equal(y, WANTED[KERNELS[kernel]](x))


SLIPS = [
    (reverse_kernel, "barrier", "race"), (reverse_kernel, "index", "bounds"),
    (histogram_kernel, "clear", "uninitialised"), (histogram_kernel, "barrier", "race"),
    (scan_kernel, "buffer", "race"),
    (bound_kernel, "bound", "bounds"), (shuffle_kernel, "mask", "diverged"), (array_kernel, "part", "uninitialised"),
    (ring_kernel, "empty", "race deadlock"), (ring_kernel, "full", "race"), (ring_kernel, "release", "deadlock"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "slip", "kinds"), SLIPS, ids=[f"{KERNELS[k]}, {slip}" for k, slip, _ in SLIPS])
def test_a_mistake_is_found_at_its_line(kernel, slip, kinds):
    name = KERNELS[kernel]
    marked = {n for n, line in enumerate(LINES, 1) if f"# {name}: " in line and slip in line.split(f"# {name}: ")[1]}
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    compiled = cute.compile(launch, x, y, kernel, slip, target="emu")
    for seed in range(4):
        with observe(seed=seed), pytest.raises(EmulationError) as caught:
            compiled(x, y)
        error = caught.value
        assert error.kind in kinds.split() or (error.kind == "uninitialised" and "race" in kinds)
        assert Path(error.location.file).name == Path(__file__).name and error.location.line in marked, error
