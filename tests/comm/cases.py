"""What the tests of collectives share: number types, inputs, what NumPy expects, kernels that call a function of a
thread's number, on the emulator or on a device."""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import emulate

BF16 = ml_dtypes.bfloat16
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, BF16, np.float32, np.float64)
TYPES = (np.bool_, *INTEGERS, *FLOATS)
LOGIC = ("and", "or", "xor")
ARITHMETIC = ("add", "mul", "min", "max")
UFUNCS = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
EPSILON = {np.float16: 2.0**-11, BF16: 2.0**-8, np.float32: 2.0**-24, np.float64: 2.0**-53}


def name_of(dtype):
    return np.dtype(dtype).name


def ops_of(dtype):
    """The operations on a type."""
    if dtype is np.bool_:
        return LOGIC
    return ARITHMETIC if dtype in FLOATS else ARITHMETIC + LOGIC


def inputs(dtype, count, seed=0):
    """Numbers of all sizes; floats whose product stays in range."""
    random = np.random.default_rng([seed, count])
    if dtype is np.bool_:
        return random.random(count) < 0.9
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, count, dtype, endpoint=True)
    sizes = random.random(count) + 0.5
    sizes[1::2] = 1 / sizes[: count // 2 * 2 : 2]
    return (np.where(random.random(count) < 0.5, -1, 1) * sizes).astype(dtype)


def check(op, dtype, found, group):
    """Each of `found` is `group` folded by `op`: exactly, or within the rounding of so many steps."""
    _compare(op, dtype, found, _folded(op, dtype, group)[-1:], np.array([len(group)]), np.abs(_wide(group)).sum())


def check_scan(op, dtype, found, group, exclusive):
    """Each of `found` is `group` folded up to its place."""
    wanted, counts, sums = _folded(op, dtype, group), np.arange(1, len(group) + 1), np.cumsum(np.abs(_wide(group)))
    if exclusive:
        assert found[0] == neutral(op, dtype), (op, found[0])
        found, wanted, counts, sums = found[1:], wanted[:-1], counts[:-1], sums[:-1]
    _compare(op, dtype, found, wanted, counts, sums)


def _wide(group):
    return group.astype(np.longdouble)


def _folded(op, dtype, group):
    """The folds up to each place: exact, of floats in 64 bits of mantissa."""
    if dtype not in FLOATS or op in ("min", "max"):
        return UFUNCS[op].accumulate(group, dtype=dtype)
    return UFUNCS[op].accumulate(_wide(group))


def _compare(op, dtype, found, wanted, counts, sums):
    if dtype not in FLOATS or op in ("min", "max"):
        np.testing.assert_array_equal(found, np.broadcast_to(wanted, found.shape), op)
        return
    step = EPSILON[np.float64] if dtype is np.float64 else EPSILON[np.float32]
    scale = sums * (2 + np.log2(counts)) if op == "add" else np.abs(wanted) * counts
    bound = 2 * step * scale + EPSILON[dtype] * np.abs(wanted)
    assert (np.abs(_wide(found) - wanted) <= bound).all(), (op, found, wanted, bound)


def neutral(op, dtype):
    """What an exclusive scan begins with."""
    if op in ("min", "max"):
        if dtype in FLOATS:
            return math.inf if op == "min" else -math.inf
        return np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min
    if op == "and":
        return True if dtype is np.bool_ else np.array(-1).astype(dtype)
    return {"add": 0, "mul": 1, "or": 0, "xor": 0}[op]


def equal_bits(found):
    """True where all have the same bits."""
    return len({item.tobytes() for item in np.asarray(found)}) == 1


@cute.kernel
def rows_kernel(x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, body: cutlass.Constexpr):
    """out[row, i] are the numbers that `body` gives for thread i, in each row one."""
    width, height, depth = cute.arch.block_dim()
    tx, ty, tz = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    block = bx + by * cute.arch.grid_dim()[0]
    i = block * width * height * depth + tx + width * (ty + height * tz)
    for row, number in enumerate(body(x[i], work)):
        out[row, i] = number


@cute.jit
def launch_rows(
    x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, body: cutlass.Constexpr, grid: cutlass.Constexpr,
    block: cutlass.Constexpr, cluster: cutlass.Constexpr, cooperative: cutlass.Constexpr,
):  # fmt: skip
    rows_kernel(x, out, work, body).launch(grid=grid, block=block, cluster=cluster, cooperative=cooperative)


@cute.jit
def launch_rows_of(
    x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, body: cutlass.Constexpr, grid: cutlass.Constexpr,
    width: cutlass.Int32,
):  # fmt: skip
    rows_kernel(x, out, work, body).launch(grid=grid, block=(width, 1, 1))


class OnEmulator:
    """Runs compiled functions on NumPy arrays, under several schedules."""

    def __init__(self, seeds=(0, 1)):
        self.seeds = seeds

    def __call__(self, compiled, arrays, *others):
        found = []
        for seed in self.seeds:
            copies = [array.copy() for array in arrays]
            with emulate.observe(seed=seed, checks=True):
                compiled(*copies, *others)
            found.append(copies[1])
        for other in found[1:]:
            assert other.tobytes() == found[0].tobytes()  # no schedule changes a bit
        return found[0]

    def place(self, array):
        return array


def arrays(count, work=1):
    """Arguments of `launch_rows` for so many threads and one row."""
    return np.ones(count, np.float32), np.zeros((1, count), np.float32), np.zeros(work, np.int64)


def rows(
    body, x, count, out=None, *, grid=(1, 1, 1), block=(32, 1, 1), cluster=None, cooperative=False, work=1,
    run=None, dynamic=False, **options,
):  # fmt: skip
    """The rows that `body` gives, and the compiled function."""
    run = run or OnEmulator()
    given = [x, np.zeros((count, len(x)), out or x.dtype), np.zeros(work, np.int64)]
    shown = [run.place(array) for array in given]
    if dynamic:
        others = (block[0],)
        compiled = cute.compile(launch_rows_of, *shown, body, grid, *others, **options)
    else:
        others = ()
        compiled = cute.compile(launch_rows, *shown, body, grid, block, cluster, cooperative, **options)
    return run(compiled, given, *others), compiled


def threads_of(block):
    return functools.reduce(lambda a, b: a * b, block)
