"""pipeline-loops: loads ahead of time change no result, stand where they should, and say why where they do not."""

import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.passes.loop_programs import THREADS, as_arguments, compiled, loads_before_loops, remarks
from tilewright import CompileError, EmulationError, before
from tilewright.cute.nvgpu import cpasync
from tilewright.passes import Pass, number_of, operations

COLUMNS = 48


def numbers(seed=0, kind=np.float32):
    return np.random.default_rng(seed).integers(-8, 9, (THREADS, COLUMNS)).astype(kind)


# Loads to registers

LOOPS = {
    "up": (lambda n, **k: cutlass.range(n, **k), lambda n: range(n)),
    "from 2": (lambda n, **k: cutlass.range(2, n, **k), lambda n: range(2, n)),
    "down": (lambda n, **k: cutlass.range(n, 0, -1, **k), lambda n: range(n, 0, -1)),
    "by 3": (lambda n, **k: cutlass.range(1, n, 3, **k), lambda n: range(1, n, 3)),
    "down by 2": (lambda n, **k: cutlass.range(n, -1, -2, **k), lambda n: range(n, -1, -2)),
    "unsigned": (lambda n, **k: cutlass.range(cutlass.Uint32(n), **k), lambda n: range(n)),
    "64 bits": (lambda n, **k: cutlass.range(cutlass.Int64(n), **k), lambda n: range(n)),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("stages", [1, 2, 5])
def test_sums_are_those_of_plain_python(loop, stages):
    build, plain = LOOPS[loop]

    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in build(n, prefetch_stages=stages):
            total = total * 2 + a[t, i]
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0)
    assert not remarks(run)
    for n in range(2 * stages + 4):
        run(as_arguments((a, out, n)))
        wanted = np.zeros(THREADS)
        for i in plain(n):
            wanted = wanted * 2 + a[:, i]
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 4, 7])
def test_constant_bounds(trips):
    def body(a, out):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(trips, pipelining=3):  # the other name
            total = total * 2 + a[t, i]
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out)
    run(as_arguments((a, out)))
    np.testing.assert_array_equal(out, sum((a[:, i] * 2.0 ** (trips - 1 - i) for i in range(trips)), 0 * a[:, 0]))
    assert not remarks(run)


def test_no_index_overflows_at_the_ends_of_the_type():
    def body(a, out, start, stop):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(start, stop, prefetch_stages=4):
            total = total * 2 + a[t, i & 15]
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0, 0)
    for start, stop in ((2**31 - 3, 2**31 - 1), (2**31 - 8, 2**31 - 1), (-(2**31), -(2**31) + 6), (5, -(2**31))):
        run(as_arguments((a, out, start, stop)))
        wanted = np.zeros(THREADS)
        for i in range(start, stop):
            wanted = wanted * 2 + a[:, i & 15]
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("stages", [0, 1, 2, 3])
def test_as_many_loads_as_stages_stand_before_the_loop(stages):
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=stages, unroll=1):
            total += a[t, i]
        out[t] = total

    ptx = compiled(body, numbers(), np.zeros(THREADS, np.float32), 0).stages["ptx"]
    assert loads_before_loops(ptx) == stages
    # One loop of stages + 1 iterations in one, and one over what is left.
    assert ptx.count("ld.global") == (stages + (stages + 1) + 1 if stages else 1)
    assert not re.search(r"mov\.b32\s+%r\d+, %r\d+;[^$]*ld\.global", ptx.partition("$L__BB")[2])


def test_nothing_is_loaded_that_the_loop_would_not_have_loaded():
    """The tensor ends where the loop ends: the emulator would report an access outside."""

    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        if t == 31:
            for i in cutlass.range(n, prefetch_stages=7):
                total += a[31, i]
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0)
    for n in (0, 3, COLUMNS):
        run(as_arguments((a, out, n)))
        assert out[31] == a[31, :n].sum()


def test_addresses_that_the_loop_carries_and_loads():
    """A list of places, each of which says where the next one is, and loads at loaded indices."""

    def body(a, following, out, n):
        t, _, _ = cute.arch.thread_idx()
        place, total = cutlass.Int32(0), cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=3):
            total = total * 2 + a[t, place] + a[t, following[t, i]]
            place = following[t, place]
        out[t] = total + place

    a, out = numbers(), np.zeros(THREADS, np.float32)
    following = np.random.default_rng(1).integers(0, COLUMNS, a.shape).astype(np.int32)
    run = compiled(body, a, following, out, 0)
    assert not remarks(run)
    rows = np.arange(THREADS)
    for n in range(8):
        run(as_arguments((a, following, out, n)))
        place, wanted = np.zeros(THREADS, int), np.zeros(THREADS)
        for i in range(n):
            wanted = wanted * 2 + a[rows, place] + a[rows, following[:, i]]
            place = following[rows, place]
        np.testing.assert_array_equal(out, wanted + place)


def test_loads_under_a_condition_and_in_nested_loops():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=1):
            for j in cutlass.range(i, n, prefetch_stages=2):
                value = a[t, j] if (i + j) % 3 == t % 3 else cutlass.Float32(1)
                total = total + value * (i + 1)
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0)
    for n in range(6):
        run(as_arguments((a, out, n)))
        for t in range(THREADS):
            pairs = [(i, j) for i in range(n) for j in range(i, n)]
            assert out[t] == sum((a[t, j] if (i + j) % 3 == t % 3 else 1) * (i + 1) for i, j in pairs)


def test_copies_of_vectors_and_copies_through_registers_to_shared_memory():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        tile = cutlass.utils.SmemAllocator().allocate_tensor(
            cutlass.Float32, cute.make_layout((THREADS, 4), stride=(4, 1)), 16
        )
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
        part = cute.make_rmem_tensor(4, cutlass.Float32)
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=2):
            source = cute.local_tile(a[t, None], (4,), (i,))
            cute.copy(atom, source, part)
            cute.copy(atom, source, tile[t, None])
            cute.arch.sync_threads()
            for j in cutlass.range_constexpr(4):
                total = total * 2 + part[j] + tile[THREADS - 1 - t, j]
            cute.arch.sync_threads()
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0, options="--fp-contract off")
    assert not remarks(run) and loads_before_loops(run.stages["ptx"]) >= 2
    for n in range(6):
        run(as_arguments((a, out, n)))
        wanted = np.zeros(THREADS)
        for j in range(4 * n):
            wanted = wanted * 2 + a[:, j] + a[::-1, j]
        np.testing.assert_array_equal(out, wanted)


def test_predicated_copies():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
        part, inside = cute.make_rmem_tensor(4, cutlass.Float32), cute.make_rmem_tensor(4, cutlass.Boolean)
        total = cutlass.Float32(0)
        for i in cutlass.range(cute.ceil_div(n, 4), prefetch_stages=2):
            for j in cutlass.range_constexpr(4):
                inside[j] = 4 * i + j < n
            part.fill(0)
            cute.copy(atom, cute.local_tile(a[t, None], (4,), (i,)), part, pred=inside)
            for j in cutlass.range_constexpr(4):
                total = total + part[j]
        out[t] = total

    a, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, a, out, 0)
    for n in (0, 1, 3, 4, 9, 18):
        run(as_arguments((a, out, n)))
        np.testing.assert_array_equal(out, a[:, :n].sum(1))
    assert not remarks(run) and loads_before_loops(run.stages["ptx"]) >= 8


# Asynchronous copies to a circular buffer


def buffered(stages, ahead, *, trailing=True, counted=False, repeats=1, wait=True):
    """Rows go through a buffer of `stages`; each thread reads the row of another one."""

    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((THREADS, 4, stages), stride=(4, 1, 4 * THREADS))
        buffer = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout((THREADS, 1)), cute.make_layout((1, 4)))
        mine = copy.get_slice(t)
        source = mine.partition_S(cute.local_tile(a, (THREADS, 4), (0, None)))
        target = mine.partition_D(buffer)
        total = cutlass.Float32(0)
        for _ in range(repeats):
            stage = cutlass.Int32(0)
            for i in cutlass.range(n, prefetch_stages=ahead):
                if cutlass.const_expr(not counted):
                    stage = i % stages
                cute.copy(copy, source[None, None, None, i], target[None, None, None, stage])
                cute.arch.cp_async_commit_group()
                if cutlass.const_expr(wait):
                    cute.arch.cp_async_wait_group(0)
                cute.arch.sync_threads()
                for j in cutlass.range_constexpr(4):
                    total = total * 0.5 + buffer[THREADS - 1 - t, j, stage]
                if cutlass.const_expr(trailing):
                    cute.arch.sync_threads()
                if cutlass.const_expr(counted):
                    stage = stage + 1
                    if stage == stages:
                        stage = cutlass.Int32(0)
        out[t] = total

    return body


def agrees(run, repeats=1, trips=range(9)):
    a, out = numbers(), np.zeros(THREADS, np.float32)
    for n in trips:
        run(as_arguments((a, out, n)))
        wanted = np.zeros(THREADS, np.float32)
        for j in [j for _ in range(repeats) for j in range(4 * n)]:
            wanted = wanted * np.float32(0.5) + a[::-1, j]
        np.testing.assert_array_equal(out, wanted)


def run_of(body, **given):
    return compiled(body, numbers(), np.zeros(THREADS, np.float32), 0, **given)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("stages", "ahead", "trailing"), [(2, 1, True), (4, 3, True), (3, 1, False), (4, 2, False)])
def test_a_circular_buffer_is_filled_ahead(stages, ahead, trailing, counted):
    run = run_of(buffered(stages, ahead, trailing=trailing, counted=counted), options="--fp-contract off")
    assert not remarks(run)
    assert re.findall(r"cp\.async\.wait_group\s+(\d+)", run.stages["ptx"]) == [str(ahead)]
    assert loads_before_loops(run.stages["ptx"], "cp.async.ca") == ahead
    agrees(run)


@pytest.mark.parametrize("trailing", [False, True])
def test_a_loop_that_is_run_again_waits_for_readers_of_the_run_before(trailing):
    run = run_of(buffered(3, 1, trailing=trailing, repeats=3), options="--fp-contract off")
    assert not remarks(run)
    agrees(run, 3, range(6))


class Change(Pass):
    """Makes every wait let one more group be unfinished, or erases the first barrier."""

    name = "change"

    def __init__(self, what):
        super().__init__()
        self.what = what

    def run(self, module):
        found = [op for op in operations(module) if op.name == self.what]
        if self.what == "cute.sync_threads":
            found[0].erase()
            return
        for op in found:
            op.attributes["groups"] = type(op.attributes["groups"]).get(
                op.attributes["groups"].type, number_of(op, "groups") + 1
            )


def test_the_emulator_reports_a_wait_that_lets_one_more_group_be_unfinished():
    """So the counts are right, and the checks would see wrong ones."""
    run = run_of(buffered(4, 2), passes=[before("annotate-loops", Change("cute.async_wait"))])
    with pytest.raises(EmulationError, match=r"[Rr]ace"):
        agrees(run, trips=[5])


def test_the_emulator_reports_a_lost_wait():
    for ahead in (0, 2):
        with pytest.raises(EmulationError, match=r"[Rr]ace"):
            agrees(run_of(buffered(4, ahead, wait=False)), trips=[5])


def test_the_emulator_reports_a_loop_without_its_first_barrier():
    run = run_of(
        buffered(3, 1, trailing=False, repeats=3), passes=[before("annotate-loops", Change("cute.sync_threads"))]
    )
    with pytest.raises(EmulationError, match=r"[Rr]ace"):
        agrees(run, 3, [2, 3, 4])


# Why not


def blocked(statement):
    """A kernel whose loop has `statement(a, x, shared, t, i, total)` in its body."""

    def body(a, x, out, n):
        t, _, _ = cute.arch.thread_idx()
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(THREADS), 16)
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=2):
            total = statement(a, x, shared, t, i, total)
        out[t] = total

    return body


@cute.jit
def load_nothing(a, x, shared, t, i, total):
    return total + i


@cute.jit
def write_what_it_loads(a, x, shared, t, i, total):
    x[t, i + 1] = x[t, i] + 1
    return total


@cute.jit
def add_atomically(a, x, shared, t, i, total):
    return total + cute.arch.atomic_add(x.iterator, a[t, i])


@cute.jit
def index_by_a_sum(a, x, shared, t, i, total):
    return total + a[t, cute.arch.warp_reduction_sum(i * t) % 8]


@cute.jit
def print_it(a, x, shared, t, i, total):
    value = cutlass.Float32(0)
    if t == i:
        value = a[t, i]
        cute.printf("%f", value)
    return total + value


REASONS = {
    load_nothing: "prefetch_stages=2 has no effect: it loads nothing from global memory",
    write_what_it_loads: (
        "prefetch_stages=2 has no effect: `arguments.1` is written in its body, and what it loads may depend on that"
    ),
    add_atomically: (
        "prefetch_stages=2 has an effect on a part of the loads: `arguments.1` is read by an atomic operation that does"
        " more than load"
    ),
    index_by_a_sum: (
        "prefetch_stages=2 has no effect: what it loads from `arguments.0` depends on a reduction over the warp"
    ),
    print_it: "prefetch_stages=2 has no effect: `arguments.0` is read by a branch that does more than load",
}


@pytest.mark.parametrize("statement", REASONS, ids=lambda item: item.__name__)
def test_a_remark_says_why_loads_stay(statement):
    run = compiled(blocked(statement), numbers(), numbers(1), np.zeros(THREADS, np.float32), 0)
    assert remarks(run) == [REASONS[statement]]


def test_a_loop_that_waits_for_other_threads_loads_nothing_ahead_that_the_kernel_writes():
    def body(x, out, n):
        t, _, _ = cute.arch.thread_idx()
        x[THREADS - 1 - t, 0] = cutlass.Float32(t)
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=2):
            cute.arch.sync_threads()
            total += x[t, i]
        out[t] = total

    x, out = numbers(), np.zeros(THREADS, np.float32)
    run = compiled(body, x, out, 0)
    assert remarks(run) == [
        "prefetch_stages=2 has no effect: `arguments.0` is written in the kernel, and the body waits for other threads"
    ]
    wanted = x.copy()
    run(as_arguments((x, out, 3)))
    wanted[:, 0] = THREADS - 1 - np.arange(THREADS)
    np.testing.assert_array_equal(out, wanted[:, :3].sum(1))


def test_instructions_of_which_nothing_is_known():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=2):
            total += a[t, i]
            cute.arch.mbarrier_init_fence()
        out[t] = total

    (line,) = remarks(compiled(body, numbers(), np.zeros(THREADS, np.float32), 0))
    assert line.startswith("prefetch_stages=2 has no effect: ") and line.endswith(
        "in its body may write memory or wait for other threads"
    )


BUFFERS = {
    "one stage": ({"stages": 1, "ahead": 1}, "each iteration fills the same part of"),
    "too far": ({"stages": 3, "ahead": 3}, "has 3 stages: at most prefetch_stages=2 is possible"),
    "no barrier": (
        {"stages": 3, "ahead": 2, "trailing": False},
        "has 3 stages, and no barrier follows their last use in the body: at most prefetch_stages=1 is possible",
    ),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_remark_says_why_a_buffer_is_not_filled_ahead(name):
    given, words = BUFFERS[name]
    run = run_of(buffered(**given), options="--fp-contract off")
    (line,) = remarks(run)
    assert words in line and line.startswith(f"prefetch_stages={given['ahead']} has no effect: ")
    agrees(run)


def changed(edit):
    """A loop over a buffer of 4 stages in which `edit` says what differs."""

    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((THREADS, 4), stride=(1, THREADS))
        buffer = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
        total = cutlass.Float32(0)
        buffer[t, 3] = cutlass.Float32(0)
        cute.arch.sync_threads()
        for i in cutlass.range(n, prefetch_stages=1):
            if cutlass.const_expr(edit == "before"):
                total += buffer[t, i % 4]
            cute.copy(atom, cute.local_tile(a, (1, 1), (t, i)), cute.local_tile(buffer, (1, 1), (t, i % 4)))
            if cutlass.const_expr(edit == "inner commit"):
                if i >= 0:
                    cute.arch.cp_async_commit_group()
            elif cutlass.const_expr(edit != "no commit"):
                cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            if cutlass.const_expr(edit == "inner barrier"):
                if n > 0:
                    cute.arch.sync_threads()
            elif cutlass.const_expr(edit == "named barrier"):
                cute.arch.barrier(barrier_id=1, number_of_threads=THREADS)
            else:
                cute.arch.sync_threads()
            total += buffer[t, (i + 3) % 4 if edit == "other stage" else i % 4]
        out[t] = total

    return body


EDITS = {
    "before": "is accessed before it is filled",
    "other stage": "is accessed in another stage than the one that the iteration fills",
    "no commit": "its asynchronous copies are not committed in the iteration that makes them",
    "inner commit": "a group of asynchronous copies is committed in a branch or an inner loop",
    "inner barrier": "its barriers stand in branches or inner loops",
    "named barrier": "cute.barrier in its body is a wait that says nothing of who has read a buffer",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_remark_says_what_is_in_the_way_of_asynchronous_copies(edit):
    (line,) = remarks(run_of(changed(edit)))
    assert line.startswith("prefetch_stages=1 has no effect: ") and line.endswith(EDITS[edit])


def test_too_many_stages_and_steps_of_run_time():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=33):
            total += a[t, i]
        out[t] = total

    assert remarks(run_of(body)) == ["prefetch_stages=33 has no effect: at most 32 iterations are loaded ahead"]


def test_a_loop_that_is_unrolled_for_its_registers():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        values = cute.make_rmem_tensor(4, cutlass.Float32)
        for i in cutlass.range(4, prefetch_stages=2):
            values[i] = a[t, i]
        out[t] = values[0] + values[3]

    assert remarks(run_of(body)) == [
        "prefetch_stages= has no effect: the loop is unrolled, as its index picks registers"
    ]


def test_loops_of_host_functions():
    @cute.jit
    def on_host(x: cute.Tensor, n: cutlass.Int32):
        for i in cutlass.range(n, prefetch_stages=2):
            x[0] = x[0] + x[i]

    x = np.ones(4, np.float32)
    run = cute.compile(on_host, x, 4)
    assert remarks(run) == ["prefetch_stages=2 has no effect: it is for loops of kernels"]


def test_a_report_names_the_line_of_the_loop():
    body = blocked(load_nothing)
    run = compiled(body, numbers(), numbers(1), np.zeros(THREADS, np.float32), 0)
    (found,) = [item for item in run.report().kernels[0].remarks if "prefetch_stages" in str(item)]
    line = body.__code__.co_firstlineno + 4
    assert f"test_pipeline_loops.py:{line}: prefetch_stages=2 has no effect" in str(found)


def test_stages_are_known_at_compile_time():
    def body(a, out, n):
        for i in cutlass.range(4, prefetch_stages=n):
            out[i] = a[0, i]

    with pytest.raises(
        CompileError, match=r"^`prefetch_stages` of a range is an integer known at compile time"
    ) as caught:
        run_of(body)
    assert caught.value.hint == "pass it as `cutlass.Constexpr`"
    assert caught.value.location.line == body.__code__.co_firstlineno + 1
    with pytest.raises(CompileError, match="known at compile time"):
        cutlass.range(4, pipelining="two")


def test_less_than_no_stage_is_none():
    def body(a, out, n):
        t, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for i in cutlass.range(n, prefetch_stages=-1, unroll=1):
            total += a[t, i]
        out[t] = total

    run = run_of(body)
    assert run.stages["ptx"].count("ld.global") == 1 and not remarks(run)
