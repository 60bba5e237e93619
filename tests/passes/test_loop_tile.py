"""loop-tile: the same results in another order of iterations, and a remark where the order matters."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.loop_programs import THREADS, as_arguments, compiled, remarks
from tilewright import PassError
from tilewright.passes import LoopTile, PassManager


def loops_of(run):
    """How many loops there are."""
    return run.stages["cute"].count("scf.for")


@pytest.mark.parametrize(("size", "loops"), [("1", 3), ("3", 3), ("2,3", 4), ("16,16", 4), ("5,1", 4)])
def test_every_iteration_is_done_once(size, loops):
    def body(x, m, n):
        t, _, _ = cute.arch.thread_idx()
        for i in range(m):
            for j in range(n):
                x[t, 16 * i + j] = x[t, 16 * i + j] + i * 100 + j

    x = np.zeros((THREADS, 128), np.int32)
    run = compiled(body, x, 0, 0, passes=f"loop-tile{{size={size}}}")
    for m, n in ((0, 5), (5, 0), (1, 1), (4, 6), (7, 13), (8, 16)):
        x[:] = 0
        run(as_arguments((x, m, n)))
        wanted = np.zeros((8, 16), int)
        wanted[:m, :n] = 100 * np.arange(m)[:, None] + np.arange(n)
        np.testing.assert_array_equal(x, np.broadcast_to(wanted.reshape(-1), x.shape))
    if "," in size:  # 16 * i + j: that two numbers give different places is not seen
        assert remarks(run) and loops_of(run) == 2
    else:
        assert not remarks(run) and loops_of(run) == loops


@pytest.mark.parametrize("size", ["2,3", "4,4,2", "1,1,1", "8"])
def test_products_of_matrices(size):
    def body(a, b, c):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                for k in range(a.shape[1]):
                    c[i, j] = c[i, j] + a[i, k] * b[k, j]

    dice = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (5, 7, 3), (8, 6, 4)):
        a, b = (dice.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float32)
        run = alone(body, a, b, c, passes=LoopTile(size=size))
        run(as_arguments((a, b, c)))
        np.testing.assert_array_equal(c, a @ b)
        assert not remarks(run) and loops_of(run) == 3 + len(size.split(","))


@cute.kernel
def run_alone(body: cutlass.Constexpr, arguments: tuple) -> None:
    body(*arguments)


@cute.jit
def launch_alone(body: cutlass.Constexpr, arguments: tuple) -> None:
    run_alone(body, arguments).launch(grid=(1, 1, 1), block=(1, 1, 1))


def alone(body, *arguments, **given):
    """The executor of a kernel of one thread."""
    return cute.compile(launch_alone, cute.jit(body), as_arguments(arguments), target="emu", **given)


def test_one_loop_keeps_its_order_and_what_it_carries():
    def body(x, out, start, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in range(start, n):
            total = total * 0.5 + x[t, i]
        for i in range(n, 0, -2):
            total = total * 0.5 - x[t, i]
        out[t] = total

    x, out = np.random.default_rng(0).random((THREADS, 32)).astype(np.float32), np.zeros(THREADS, np.float32)
    run, plain = (compiled(body, x, out, 0, 0, options="--fp-contract off", **given) for given in (TILED, {}))
    assert loops_of(run) == 2 * loops_of(plain) and not remarks(run)
    for start, n in ((0, 0), (0, 1), (3, 17), (0, 31), (9, 4), (-3, -1)):
        results = []
        for made in (run, plain):
            made(as_arguments((x, out, max(start, 0), n)))
            results.append(out.copy())
        np.testing.assert_array_equal(*results)


TILED = {"passes": "loop-tile{size=4}"}


def test_bounds_at_the_end_of_the_type():
    def body(x, start, stop):
        for i in range(start, stop):
            x[i & 7] = x[i & 7] + 1

    x = np.zeros(8, np.int32)
    run = alone(body, x, 0, 0, **TILED)
    for start, stop in ((2**31 - 6, 2**31 - 1), (-(2**31), -(2**31) + 7), (7, -(2**31))):
        x[:] = 0
        run(as_arguments((x, start, stop)))
        np.testing.assert_array_equal(x, np.bincount([i & 7 for i in range(start, stop)], minlength=8))


# Why not


def carrying(x, n):
    total = cutlass.Int32(0)
    for i in range(n):
        for j in range(n):
            total += x[i, j]
    x[0, 0] = total


def triangle(x, n):
    for i in range(n):
        for j in range(i, n):
            x[i, j] = x[i, j] + 1


def recurrence(x, n):
    for i in range(n):
        for j in range(n):
            x[i + 1, j] = x[i, j + 1]


def waiting(x, n):
    for i in range(n):
        for j in range(n):
            x[i, j] = 1
            cute.arch.sync_threads()


def printing(x, n):
    for i in range(n):
        for j in range(n):
            if x[i, j] > 100:
                cute.printf("%d", i)


def fencing(x, n):
    for i in range(n):
        for j in range(n):
            x[i, j] = 1
            cute.arch.mbarrier_init_fence()


REASONS = {
    carrying: "it carries a value from one iteration to the next",
    triangle: "the bounds of an inner loop depend on the index of an outer one",
    recurrence: "iterations may depend on each other through `arguments.0`",
    waiting: "cute.sync_threads in its body waits for other threads",
    printing: "its body prints or makes asynchronous copies, in order",
    fencing: "in its body may write memory or wait for other threads",
}


@pytest.mark.parametrize("body", REASONS, ids=lambda item: item.__name__)
def test_a_remark_says_why_a_nest_is_not_tiled(body):
    x = np.random.default_rng(0).integers(0, 9, (9, 9)).astype(np.int32)
    wanted = x.copy()
    run = alone(body, x, 0, passes="loop-tile{size=2,2}")
    (line,) = remarks(run)
    assert line.startswith("loop-tile does not tile this loop: ") and line.endswith(REASONS[body])
    run(as_arguments((x, 5)))
    alone(body, wanted, 0)(as_arguments((wanted, 5)))
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("size", ["0", "a", "2,,3", "4,-1"])
def test_sizes_are_numbers_of_iterations(size):
    with pytest.raises(PassError, match=r"loop-tile: a size is a number of iterations, at least 1") as caught:
        PassManager.parse(f"builtin.module(loop-tile{{size={size}}})")
    assert caught.value.hint == "write loop-tile{size=32}, or loop-tile{size=8,4} for nests of two loops"


def test_the_pass_prints_as_it_is_written():
    assert str(PassManager.parse("builtin.module(loop-tile{size=8,4})")) == "builtin.module(loop-tile{size=8,4})"
