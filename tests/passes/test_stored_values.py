"""Values on their way into memory: stores, fills and copies of each kind are changed and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32, PassError, passes
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.ir import types


class Negate(passes.Rewrite):
    """-x of all that is stored to `output`."""

    name = "negate"
    options = {"output": "y"}  # noqa: RUF012
    greedy = False

    @passes.rule(*passes.STORES)
    def negate(self, op, rewriter):
        if passes.origin(passes.target_of(op)).name == self["output"]:
            return passes.change_stored(op, lambda x: rewriter.build("arith.negf", x.type, x))


def at_end(item):
    """Where passes go that say nothing: registers whose indices are known are values by then."""
    return item


def at_start(item):
    """Where registers are memory still."""
    return cutlass.before("promote-register-tensors", item)


PLACES = [at_end, at_start]


def run(body, *arguments, block=8, item=None, place=at_end, **given):
    """Launch `body(x, y)` with the pass."""

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        cute.kernel(body)(x, y).launch(grid=1, block=block)

    item = Negate() if item is None else item
    executor = cute.compile(host, *arguments, passes=place(item), **given)
    executor(*arguments)
    return item, executor


def one_element(x, y):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i]


def a_vector(x, y):
    i = cute.arch.thread_idx()[0]
    cute.local_tile(y, (8,), (i,)).store(cute.local_tile(x, (8,), (i,)).load())


def memory_to_memory(x, y):
    i = cute.arch.thread_idx()[0]
    cute.autovec_copy(cute.local_tile(x, (8,), (i,)), cute.local_tile(y, (8,), (i,)))


def by_an_atom(x, y):
    i = cute.arch.thread_idx()[0]
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=64)
    cute.copy(atom, cute.local_tile(x, (8,), (i,)), cute.local_tile(y, (8,), (i,)))


def from_registers(x, y):
    i = cute.arch.thread_idx()[0]
    fragment = cute.make_rmem_tensor((8,), Float32)
    cute.autovec_copy(cute.local_tile(x, (8,), (i,)), fragment)
    cute.autovec_copy(fragment, cute.local_tile(y, (8,), (i,)))


def through_shared_memory(x, y):
    i = cute.arch.thread_idx()[0]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((8, 8)), 16)
    cute.autovec_copy(cute.local_tile(x, (8,), (i,)), shared[None, i])
    cute.arch.sync_threads()
    cute.autovec_copy(shared[None, i], cute.local_tile(y, (8,), (i,)))


def strided(x, y):
    i = cute.arch.thread_idx()[0]
    spread = cute.make_layout((8,), stride=(8,))
    cute.autovec_copy(
        cute.make_tensor(x.iterator + i, spread), cute.composition(y, cute.make_layout((8, 8), stride=(8, 1)))[None, i]
    )


BODIES = [one_element, a_vector, memory_to_memory, by_an_atom, from_registers, through_shared_memory, strided]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_stored_is_negated(body, place, level):
    x, y = np.arange(64, dtype=np.float32) + 1, np.zeros(64, np.float32)
    xs, ys = from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)
    item, _ = run(body, xs, ys, place=place, options=f"--opt-level {level}")
    expected = -x if body is not one_element else np.where(np.arange(64) < 8, -x, 0)
    assert item.changes == 1 and np.array_equal(y, expected)


def test_other_outputs_stay():
    x, y = np.arange(64, dtype=np.float32) + 1, np.zeros(64, np.float32)
    item, _ = run(memory_to_memory, x, y, item=Negate(output="x"))
    assert item.changes == 0 and np.array_equal(y, x)


def test_a_fill():
    def body(x, y):
        cute.local_tile(y, (8,), (cute.arch.thread_idx()[0],)).fill(3.0)

    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    run(body, x, y)
    assert (y == -3).all()


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("place", PLACES)
def test_under_a_predicate(place, level):
    """What is not copied is neither read nor written, and the rest is changed."""

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        pred = cute.make_rmem_tensor((4,), cutlass.Boolean)
        for n in cutlass.range_constexpr(4):
            pred[n] = i * 4 + n < 13
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)
        cute.copy(atom, cute.local_tile(x, (4,), (i,)), cute.local_tile(y, (4,), (i,)), pred=pred)

    x, y = np.arange(1, 14, dtype=np.float32), np.full(13, 99, np.float32)
    item, _ = run(body, x, y, block=4, place=place, options=f"--opt-level {level}")
    assert item.changes == 1 and np.array_equal(y, -x)


def test_as_wide_as_before():
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    xs, ys = from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)
    _, executor = run(memory_to_memory, xs, ys)
    ptx = executor.stages["ptx"]
    assert ptx.count("ld.global.v4") == ptx.count("st.global.v4") == 2 and "local" not in ptx


class Twice(passes.Rewrite):
    """Doubles what copies write to registers that are memory."""

    name = "twice"
    greedy = False

    @passes.rule("cute.copy")
    def double(self, op, rewriter):
        if passes.tensor_info(passes.target_of(op)).space == "rmem":
            return passes.change_stored(op, lambda x: rewriter.build("arith.addf", x.type, x, x))


def test_registers_that_are_filled_by_a_copy():
    """The vector goes into the register tensor itself, which becomes a value all the same."""
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    item, executor = run(from_registers, x, y, item=Twice(), place=at_start)
    assert item.changes == 1 and np.array_equal(y, 2 * x) and "cute.alloc" not in executor.stages["cute"]


@pytest.mark.parametrize("place", PLACES)
def test_registers_with_an_index_of_run_time(place):
    """They stay memory."""

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        fragment = cute.make_rmem_tensor((8,), Float32)
        cute.autovec_copy(cute.local_tile(x, (8,), (i,)), fragment)
        y[i] = fragment[i]

    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    item, _ = run(body, x, y, item=Twice(), place=place)
    assert item.changes == 1 and np.array_equal(y[:8], 2 * x[::9]) and not y[8:].any()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("known", [True, False])
def test_registers_that_a_predicate_keeps(place, known):
    """What is not copied stays in the registers as it was, unchanged."""

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        fragment, pred = cute.make_rmem_tensor((4,), Float32), cute.make_rmem_tensor((4,), cutlass.Boolean)
        fragment.fill(7)
        for n in cutlass.range_constexpr(4):
            pred[n] = i * 4 + n < 13
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)
        cute.copy(atom, cute.local_tile(x, (4,), (i,)), fragment, pred=pred)
        for n in cutlass.range(4):
            y[i * 4 + n] = fragment[n if cutlass.const_expr(known) else (i * 4 + n) % 4]

    x, y = np.arange(1, 17, dtype=np.float32), np.zeros(16, np.float32)
    item, _ = run(body, x, y, item=Twice(), place=place, block=4)
    doubled = place is at_start or not known
    copied = np.where(np.arange(16) < 13, x * 2 if doubled else x, 7)
    assert item.changes == int(doubled)
    assert np.array_equal(y, copied)


@pytest.mark.parametrize("known", [True, False])
def test_a_vector_on_its_way_is_changed_where_it_is(known):
    """A copy of a vector is its own second half: no other copy is made of it."""

    class Halves(Negate):
        name = "halves"

        @passes.rule("cute.copy")
        def negate(self, op, rewriter):
            if passes.tensor_info(passes.target_of(op)).space == "gmem":
                split = passes.split_copy(op)
                kinds.append(split.value.owner.name)
                split.store(rewriter.build("arith.negf", split.value.type, split.value))
                return True

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        fragment = cute.make_rmem_tensor((8,), Float32)
        cute.autovec_copy(cute.local_tile(x, (8,), (i,)), fragment)
        if cutlass.const_expr(not known):
            fragment[i] = fragment[i] + 1
        cute.autovec_copy(fragment, cute.local_tile(y, (8,), (i,)))

    kinds = []
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    item, executor = run(body, x, y, item=Halves())
    assert item.changes == 1 and kinds == ["cute.copy_value" if known else "cute.load_tensor"]
    assert np.array_equal(y, -x if known else -(x + np.eye(8, dtype=np.float32).reshape(-1)))
    assert executor.stages["cute"].count('"cute.copy"') == (1 if known else 2)


def test_an_asynchronous_copy_has_no_value():
    def body(x, y):
        i = cute.arch.thread_idx()[0]
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(32), 16)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), Float32, num_bits_per_copy=32)
        cute.copy(atom, cute.local_tile(x, (4,), (i,)), cute.local_tile(shared, (4,), (i,)))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        y[i] = shared[i * 4]

    class Shared(Negate):
        name = "shared"

        @passes.rule("cute.copy")
        def negate(self, op, rewriter):
            return passes.change_stored(op, lambda x: x)

    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PassError, match=r"a copy by cp\.async from gmem to smem has no value on its way") as caught:
        run(body, x, y, item=Shared())
    assert caught.value.location.file == __file__ and "atom_of" in caught.value.hint


@pytest.mark.parametrize("body", [one_element, memory_to_memory])
def test_a_value_of_another_type(body):
    class Widen(Negate):
        name = "widen"

        @passes.rule(*passes.STORES)
        def negate(self, op, rewriter):
            index = rewriter.build("cute.index", types.parse("i32"), name="thread_idx.x")
            return passes.change_stored(op, lambda x: index)

    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PassError, match="is changed to another type") as caught:
        run(body, x, y, item=Widen())
    assert caught.value.values["is"] == "i32"


# How wide an access may be.


@pytest.mark.parametrize(
    ("layout", "align", "dtype", "bits"),
    [
        ((8,), 16, np.float32, 128),
        ((8,), 8, np.float32, 64),
        ((8,), 4, np.float32, 32),
        ((6,), 16, np.float32, 64),
        ((5,), 16, np.float32, 32),
        ((16,), 16, np.float16, 128),
        ((16,), 16, np.int8, 128),
        ((4,), 16, np.int8, 32),
        ((4,), 16, np.float64, 128),
    ],
)
def test_contiguous_bits(layout, align, dtype, bits):
    found = []

    class Look(passes.Pass):
        name = "look"

        def run(self, module):
            (copy,) = [op for op in passes.operations(module) if op.name == "cute.copy"]
            found.append(passes.contiguous_bits(passes.operands_of(copy)["src"]))

    def body(x, y):
        tile = cute.local_tile(x, layout, (cute.arch.thread_idx()[0],))
        cute.autovec_copy(tile, cute.local_tile(y, layout, (cute.arch.thread_idx()[0],)))

    n = 8 * int(np.prod(layout))
    x, y = (from_dlpack(np.zeros(n, dtype), assumed_align=align) for _ in range(2))
    run(body, x, y, item=Look())
    assert found == [bits]
