"""Functions that the tests of the explorer show, with the values of a call."""

from pathlib import Path

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.tools import demo_kernels


def row_sum(rows=128, columns=1024):
    """The tutorial's row sum, and its arguments."""
    values = [np.ones((rows, columns), np.float32), np.zeros(rows, np.float32)]
    return cute.compile(demo_kernels.row_sum, *map(fake, values), target="emu"), values


def fake(array):
    """A description of an array in C order, for compiling."""
    names = {"float32": cutlass.Float32, "float16": cutlass.Float16}
    order = tuple(reversed(range(array.ndim)))
    return cute.runtime.make_fake_compact_tensor(names[str(array.dtype)], array.shape, stride_order=order)


@cute.kernel
def conflicts_kernel(x: cute.Tensor, y: cute.Tensor):
    """A warp writes a column of shared memory, and reads a column of global memory."""
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 32), stride=(32, 1)))
    i, _, _ = cute.arch.thread_idx()
    shared[i, 0] = x[i, 0]
    cute.arch.sync_threads()
    y[i] = shared[0, i % 1]


@cute.jit
def conflicts(x: cute.Tensor, y: cute.Tensor):
    conflicts_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def conflicting():
    """One warp whose stores meet in one bank, and whose loads lie 128 bytes apart."""
    values = [np.ones((32, 32), np.float32), np.zeros(32, np.float32)]
    return cute.compile(conflicts, *map(fake, values), target="emu"), values


@cute.kernel
def first_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] + 1.0


@cute.kernel
def second_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * 2.0


@cute.jit
def two(x: cute.Tensor):
    first_kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
    second_kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))


def two_kernels():
    """A function of two kernels."""
    values = [np.ones(64, np.float32)]
    return cute.compile(two, *map(fake, values), target="emu"), values


@cute.kernel
def racy_kernel(x: cute.Tensor):
    x[0] = x[1] + cutlass.Float32(cute.arch.thread_idx()[0])


@cute.jit
def racy(x: cute.Tensor):
    racy_kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1))


def racing():
    """All threads write one element."""
    values = [np.ones(64, np.float32)]
    return cute.compile(racy, *map(fake, values), target="emu"), values


def line_of(function, text):
    """The number of the line of a function's file that contains `text`, which is there once."""
    lines = Path(function.function.__code__.co_filename).read_text(encoding="utf-8").splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if text in line]
    return number
