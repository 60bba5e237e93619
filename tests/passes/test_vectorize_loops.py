"""vectorize-loops: wide accesses and arithmetic on vectors, the same results, and a remark where it does not work."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.loop_programs import THREADS, as_arguments, compiled, remarks

COLUMNS = 32


def numbers(kind=np.float32, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, (THREADS, COLUMNS)).astype(kind)


def scaled(x, y, n, wide=True):
    t, _, _ = cute.arch.thread_idx()
    for i in cutlass.range(n, vectorize=wide):
        y[t, i] = x[t, i] * 3 + i


def test_elements_are_accessed_16_bytes_at_a_time():
    for kind, words, scalar in (
        (np.float32, "v4.b32", "b32"),
        (np.float16, "v4.b32", "b16"),
        (np.int8, "v4.b32", "b8"),
    ):
        x, y = numbers(kind), numbers(kind)
        texts = []
        for wide in (True, False):
            ptx = compiled(lambda x, y, wide=wide: scaled_whole(x, y, wide), x, y).stages["ptx"]
            texts.append(ptx)
        assert f"ld.global.{words}" in texts[0] and f"st.global.{words}" in texts[0]
        assert f"ld.global.{words}" not in texts[1] and f"ld.global.{scalar}" in texts[1]


@cute.jit
def scaled_whole(x, y, wide):
    t, _, _ = cute.arch.thread_idx()
    for i in cutlass.range(COLUMNS, vectorize=wide, unroll=1):
        y[t, i] = x[t, i]


def test_halves_are_computed_by_pairs():
    def body(x, y):
        t, _, _ = cute.arch.thread_idx()
        part = cute.make_rmem_tensor((2, 8), cutlass.Float16)
        cute.autovec_copy(cute.local_tile(x[t, None], (16,), (0,)), part)
        for i in cutlass.range(cute.size(part), vectorize=True):
            part[i] = part[i] * part[i] + cutlass.Float16(0.5)
        cute.autovec_copy(part, cute.local_tile(y[t, None], (16,), (0,)))

    x, y = numbers(np.float16), numbers(np.float16)
    run = compiled(body, x, y)
    run(as_arguments((x, y)))
    np.testing.assert_array_equal(y[:, :16], x[:, :16] * x[:, :16] + np.float16(0.5))
    assert run.stages["ptx"].count("fma.rn.f16x2") == 8 and "fma.rn.f16 " not in run.stages["ptx"]
    assert not remarks(run)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.int8])
def test_any_trip_count_gives_what_plain_python_gives(kind):
    x, y = numbers(kind), np.zeros((THREADS, COLUMNS), kind)
    run = compiled(scaled, x, y, 0)
    assert not remarks(run)
    for n in (0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31):
        y[:] = 0
        run(as_arguments((x, y, n)))
        np.testing.assert_array_equal(y[:, :n], (x[:, :n] * kind(3) + np.arange(n).astype(kind)).astype(kind))
        assert not y[:, n:].astype(np.float64).any()


def test_what_the_loop_carries_is_added_in_order():
    """Float32 sums whose value depends on the order."""

    def body(x, out, n):
        t, _, _ = cute.arch.thread_idx()
        total, last = cutlass.Float32(0), cutlass.Float32(-1)
        for i in cutlass.range(n, vectorize=True):
            value = x[t, i] * 0.1
            total = total + value
            last = value
        out[t, 0], out[t, 1] = total, last

    x, out = np.random.default_rng(0).standard_normal((THREADS, COLUMNS)).astype(np.float32), numbers()
    run = compiled(body, x, out, 0, options="--fp-contract off")
    for n in (0, 1, 5, 8, 31):
        run(as_arguments((x, out, n)))
        total, last = np.zeros(THREADS, np.float32), np.full(THREADS, -1, np.float32)
        for i in range(n):
            last = x[:, i] * np.float32(0.1)
            total = total + last
        np.testing.assert_array_equal(out[:, 0], total)
        np.testing.assert_array_equal(out[:, 1], last)


def test_other_starts_and_orders_are_done_element_by_element():
    def body(x, y, start, n):
        t, _, _ = cute.arch.thread_idx()
        for i in cutlass.range(start, n, vectorize=True):
            y[t, i] = x[t, i] * 2
        for i in cutlass.range(n - 1, -1, -1, vectorize=True):
            x[t, i] = x[t, i] + 1

    x, y = numbers(), np.zeros((THREADS, COLUMNS), np.float32)
    run = compiled(body, x, y, 0, 0)
    start = "element by element: the loop does not start at a multiple of 4"
    order = "element by element: the loop's index is not that of a contiguous mode"
    names = ("arguments.0", "arguments.1")
    assert remarks(run) == [
        *(f"vectorize=True accesses `{name}` {start}" for name in names),
        f"vectorize=True accesses `arguments.0` {order}",
    ]
    for first, n in ((0, 9), (3, 9), (5, 5), (6, 2), (1, 32)):
        y[:] = 0
        before = x.copy()
        run(as_arguments((x, y, first, n)))
        wanted = np.zeros_like(y)
        wanted[:, first:n] = before[:, first:n] * 2
        before[:, :n] += 1
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(x, before)


def test_branches_and_gathers_in_the_body():
    def body(x, index, y, n):
        t, _, _ = cute.arch.thread_idx()
        for i in cutlass.range(n, vectorize=True):
            value = x[t, index[t, i]] * 2
            if value > 0:
                y[t, i] = value
            else:
                y[t, i] = x[t, i] - 1

    x, y = numbers(), np.zeros((THREADS, COLUMNS), np.float32)
    index = np.random.default_rng(2).integers(0, COLUMNS, x.shape).astype(np.int32)
    run = compiled(body, x, index, y, 0)
    run(as_arguments((x, index, y, 31)))
    value = np.take_along_axis(x, index, 1) * 2
    np.testing.assert_array_equal(y[:, :31], np.where(value > 0, value, x - 1)[:, :31])


def test_shared_memory_and_loops_in_host_functions():
    def body(x, y):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((THREADS, 8), stride=(8, 1))
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)
        for i in cutlass.range(8, vectorize=True):
            shared[t, i] = x[t, i] * 2
        cute.arch.sync_threads()
        for i in cutlass.range(8, vectorize=True):
            y[t, i] = shared[THREADS - 1 - t, i]

    x, y = numbers(), numbers()
    run = compiled(body, x, y)
    run(as_arguments((x, y)))
    np.testing.assert_array_equal(y[:, :8], x[::-1, :8] * 2)
    assert "st.shared.v4.b32" in run.stages["ptx"] and "ld.shared.v4.b32" in run.stages["ptx"]

    @cute.jit
    def on_host(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        for i in cutlass.range(n, vectorize=True):
            y[3, i] = x[2, i] * 5

    cute.compile(on_host, x, y, 0)(x, y, 21)
    np.testing.assert_array_equal(y[3, :21], x[2, :21] * 5)


# Why not


def blocked(statement):
    def body(x, y, n):
        t, _, _ = cute.arch.thread_idx()
        for i in cutlass.range(n, vectorize=True):
            statement(x, y, t, i)

    return body


@cute.jit
def depend_on_the_one_before(x, y, t, i):
    x[t, i + 1] = x[t, i] + 1


@cute.jit
def wait(x, y, t, i):
    y[t, i] = x[t, i]
    cute.arch.sync_threads()


@cute.jit
def print_it(x, y, t, i):
    if x[t, i] > 100:
        cute.printf("%d", i)


@cute.jit
def fence(x, y, t, i):
    y[t, i] = x[t, i]
    cute.arch.mbarrier_init_fence()


REASONS = {
    depend_on_the_one_before: "iterations may depend on each other through `arguments.0`",
    wait: "cute.sync_threads in its body waits for other threads",
    print_it: "gpu.printf in its body is done in order",
    fence: "in its body may write memory or wait for other threads",
}


@pytest.mark.parametrize("statement", REASONS, ids=lambda item: item.__name__)
def test_a_remark_says_why_a_loop_is_not_vectorized(statement):
    x, y = numbers(), numbers()
    run = compiled(blocked(statement), x, y, 0)
    (line,) = remarks(run)
    assert line.startswith("vectorize=True has no effect: ") and line.endswith(REASONS[statement])


def test_a_recurrence_is_left_as_it_was():
    x, y = numbers(), numbers()
    first = x[:, 0].copy()
    compiled(blocked(depend_on_the_one_before), x, y, 0)(as_arguments((x, y, 9)))
    np.testing.assert_array_equal(x[:, :10], first[:, None] + np.arange(10))


def test_one_iteration_is_no_vector():
    def body(x, y):
        t, _, _ = cute.arch.thread_idx()
        for i in cutlass.range(1, vectorize=True):
            y[t, i] = x[t, i]

    assert remarks(compiled(body, numbers(), numbers())) == [
        "vectorize=True has no effect: it has fewer than two iterations"
    ]


def test_a_loop_without_tensors():
    def body(out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Int32(0)
        for i in cutlass.range(n, vectorize=True):
            total += i * i
        out[t] = total

    run = compiled(body, np.zeros(THREADS, np.int32), 0)
    assert remarks(run) == ["vectorize=True has no effect: it reads and writes no tensor"]
