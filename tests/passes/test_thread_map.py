"""thread-map: kernels of one thread done by many, without races, and a remark where that cannot be."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.loop_programs import as_arguments, remarks
from tests.passes.test_loop_tile import alone
from tilewright import PassError
from tilewright.passes import PassManager, ThreadMap


def ran(run):
    """The threads of a block of the kernel."""
    text = run.stages["cute"]
    return int(text.partition("known_block_size = array<i32: ")[2].partition(",")[0])


def phases(a, b, c, n):
    """Loops that need what loops before them wrote, numbers written between, a loop around, a branch."""
    c[0] = cutlass.Float32(2)
    for i in range(n):
        b[i] = a[i] * c[0]
    c[1] = b[n - 1]
    for step in range(3):
        for i in range(n - 1, -1, -1):
            a[i] = b[n - 1 - i] + step
        if a[0] > 0:
            for i in range(1, n):
                b[i] = a[i] - c[1]
        c[2] = c[2] + a[n - 1]


@pytest.mark.parametrize("threads", [1, 3, 32, 128])
@pytest.mark.parametrize("n", [1, 2, 31, 100])
def test_results_are_those_of_one_thread(threads, n):
    dice = np.random.default_rng(n)
    given = [dice.integers(-4, 5, size).astype(np.float32) for size in (128, 128, 3)]
    mine, wanted = ([array.copy() for array in given] for _ in range(2))
    run = alone(phases, *mine, 0, passes=f"thread-map{{threads={threads}}}")
    assert not remarks(run) and ran(run) == threads
    run(as_arguments((*mine, n)))
    alone(phases, *wanted, 0)(as_arguments((*wanted, n)))
    for got, right in zip(mine, wanted, strict=True):
        np.testing.assert_array_equal(got, right)


def test_matrices_by_rows_and_what_each_iteration_keeps_in_registers():
    def body(a, b, c):
        for i in range(c.shape[0]):
            part = cute.make_rmem_tensor(4, cutlass.Float32)
            for j in range(c.shape[1]):
                part.fill(0)
                for k in range(a.shape[1]):
                    part[k % 4] = part[k % 4] + a[i, k] * b[k, j]
                c[i, j] = part[0] + part[1] + part[2] + part[3]

    dice = np.random.default_rng(0)
    a, b = (dice.integers(-4, 5, shape).astype(np.float32) for shape in ((9, 6), (6, 5)))
    c = np.zeros((9, 5), np.float32)
    run = alone(body, a, b, c, passes=[ThreadMap(threads=8)])
    run(as_arguments((a, b, c)))
    np.testing.assert_array_equal(c, a @ b)
    assert not remarks(run) and ran(run) == 8


def test_each_iteration_is_done_by_one_thread():
    """A count that two threads would make too large, and a start and step that are not 0 and 1."""

    def body(x, start, stop):
        for i in cutlass.range(start, stop, 3):
            x[i] = x[i] + 1

    x = np.zeros(200, np.int32)
    run = alone(body, x, 0, 0, passes=ThreadMap(threads=32))
    for start, stop in ((0, 0), (5, 6), (2, 200), (9, 3)):
        x[:] = 0
        run(as_arguments((x, start, stop)))
        np.testing.assert_array_equal(np.flatnonzero(x), np.arange(start, max(stop, start), 3))
        assert x.max() == (start < stop)


def summing(x, out):
    total = cutlass.Float32(0)
    for i in range(8):
        total += x[i]
    out[0] = total


def one_place(x, out):
    for i in range(8):
        out[0] = x[i]


def neighbours(x, out):
    for i in range(7):
        x[i + 1] = x[i]


def asking(x, out):
    t, _, _ = cute.arch.thread_idx()
    for i in range(8):
        out[i] = x[i + t]


def waiting(x, out):
    for i in range(8):
        out[i] = x[i]
    cute.arch.sync_threads()


def shuffling(x, out):
    for i in range(8):
        out[i] = cute.arch.shuffle_sync_bfly(x[i], 1)


def printing(x, out):
    for i in range(8):
        if x[i] > 100:
            cute.printf("%d", i)


def no_loop(x, out):
    out[0] = x[0]


def fencing(x, out):
    for i in range(8):
        out[i] = x[i]
    cute.arch.mbarrier_init_fence()


def outer_registers(x, out):
    part = cute.make_rmem_tensor(8, cutlass.Float32)
    part.fill(0)
    for i in range(300):  # too long to be unrolled
        part[(i * cutlass.Int32(x[i % 8])) % 8] = x[i % 8]
    out[0] = part[3]


REASONS = {
    summing: "its loop carries a value from one iteration to the next",
    one_place: "iterations of its loop may depend on each other through `arguments.1`",
    neighbours: "iterations of its loop may depend on each other through `arguments.0`",
    asking: "it asks for thread_idx.x",
    waiting: "cute.sync_threads is for more threads than one",
    shuffling: "cute.shuffle is for more threads than one",
    printing: "its loop prints, in order",
    no_loop: "it has no loop",
    fencing: "may do something else in each thread",
    outer_registers: "its loop uses registers of before the loop",
}


@pytest.mark.parametrize("body", REASONS, ids=lambda item: item.__name__)
def test_a_remark_says_why_a_kernel_is_left(body):
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    (line,) = remarks(alone(body, x, out, passes=ThreadMap(threads=8)))
    assert line.startswith("thread-map leaves this kernel as it is: ") and line.endswith(REASONS[body])


def test_kernels_of_more_threads_are_left():
    @cute.kernel
    def fill(x: cute.Tensor):
        for i in range(8):
            x[i] = 1.0

    @cute.jit
    def launch(x: cute.Tensor):
        fill(x).launch(grid=(1, 1, 1), block=(1, 2, 1))

    run = cute.compile(launch, np.zeros(8, np.float32), target="emu", passes=ThreadMap)
    assert remarks(run) == [
        "thread-map leaves this kernel as it is: it is launched with other blocks than of one thread"
    ]


@pytest.mark.parametrize("threads", [0, 1025, -3])
def test_a_block_has_up_to_1024_threads(threads):
    with pytest.raises(PassError, match=r"thread-map: a block has 1 to 1024 threads") as caught:
        PassManager.parse(f"builtin.module(thread-map{{threads={threads}}})")
    assert caught.value.hint == "write thread-map{threads=128}"


def test_tiled_loops_spread_over_threads():
    def body(a, b):
        for i in range(a.shape[0]):
            b[i] = a[i] * 2

    a, b = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    run = alone(body, a, b, passes=["thread-map{threads=4}", "loop-tile{size=5}"])
    run(as_arguments((a, b)))
    np.testing.assert_array_equal(b, a * 2)
    assert not remarks(run) and ran(run) == 4 and run.stages["cute"].count("scf.for") == 2
