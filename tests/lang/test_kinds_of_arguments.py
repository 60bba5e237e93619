"""Functions given things of another kind: the error names the function, the parameter and what it was given."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float16, Float32, Int32
from tilewright.cute.nvgpu import warp


def in_a_kernel(function, *arrays):
    """Trace `function` of a tensor as a kernel; its result."""
    found = []

    @cute.kernel
    def kernel(x: cute.Tensor):
        found.append(function(x))

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=64)

    cute.compile(host, cute.runtime.from_dlpack(np.zeros((16, 16), np.float32)))
    return found[0]


def mma(threads=(2, 1, 1)):
    return cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), cute.make_layout(threads))


def atom():
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)


def tiled_copy(threads=32, values=4):
    return cute.make_tiled_copy_tv(atom(), cute.make_layout(threads), cute.make_layout(values))


@pytest.mark.parametrize(
    ("made", "threads"),
    [(mma, 64), (lambda: mma((2, 2, 1)), 128), (lambda: mma((1, 4, 2)), 256), (tiled_copy, 32),
     (lambda: tiled_copy((4, 8), (2, 2)), 32), (lambda: mma().get_slice(3), 64), (lambda: tiled_copy(96), 96)],
)  # fmt: skip
def test_the_size_of_a_tiled_operation_is_that_of_its_threads(made, threads):
    assert in_a_kernel(lambda x: cute.size(made())) == threads
    assert in_a_kernel(lambda x: made().size) == threads


def test_the_modes_of_the_threads_of_a_tiled_mma():
    assert in_a_kernel(lambda x: [cute.size(mma((2, 4, 1)), mode=[mode]) for mode in range(4)]) == [32, 2, 4, 1]


NONSENSE = [None, "abc", 2.5, object(), [], (4, "a")]


def called(value):
    """The name of a test's value, the same in every process."""
    return "object" if type(value) is object else repr(value)


@pytest.mark.parametrize("value", NONSENSE, ids=called)
@pytest.mark.parametrize(
    ("name", "parameter", "call"),
    [
        ("recast_tensor", "source", lambda v, x: cute.recast_tensor(v, Float16)),
        ("recast_tensor", "dtype", lambda v, x: cute.recast_tensor(x, v)),
        ("recast_ptr", "ptr", lambda v, x: cute.recast_ptr(v, dtype=Float16)),
        ("size_in_bytes", "dtype", lambda v, x: cute.size_in_bytes(v, cute.make_layout(4))),
        ("assume", "value", lambda v, x: cute.assume(v, 4)),
        ("make_rmem_tensor_like", "source", lambda v, x: cute.make_rmem_tensor_like(v, Float32)),
        ("full_like", "source", lambda v, x: cute.full_like(v, 1.0)),
        ("zeros_like", "source", lambda v, x: cute.zeros_like(v)),
        ("print_tensor", "tensor", lambda v, x: cute.print_tensor(v)),
        ("make_tiled_copy", "atom", lambda v, x: cute.make_tiled_copy(v, cute.make_layout((8, 4)), (8, 4))),
        ("make_tiled_copy_tv", "thr_layout", lambda v, x: cute.make_tiled_copy_tv(atom(), v, cute.make_layout(4))),
        ("make_tiled_copy_S", "tiled_copy", lambda v, x: cute.make_tiled_copy_S(atom(), v)),
        ("make_tiled_copy_A", "tiled_mma", lambda v, x: cute.make_tiled_copy_A(atom(), v)),
        ("make_tiled_copy_C", "atom", lambda v, x: cute.make_tiled_copy_C(v, mma())),
        ("gemm", "a", lambda v, x: cute.gemm(mma(), x, v, x, x)),
    ],
)
def test_an_argument_of_another_kind(name, parameter, call, value):
    with pytest.raises(CompileError, match=rf"{name} takes .* as `\w+`, not ") as error:
        in_a_kernel(lambda x: call(value, x))
    assert f"{name}(" in error.value.hint and error.value.location.file == __file__
    assert parameter in str(error.value) or name in ("recast_tensor", "full_like", "zeros_like")


@pytest.mark.parametrize("value", [*NONSENSE[:4], (4, "a"), {}, Float32, Float32(2.0)], ids=called)
@pytest.mark.parametrize("function", [cute.rank, cute.depth, cute.flatten, lambda v: cute.slice_(v, 0)])
def test_what_is_no_tuple_layout_or_tensor(function, value):
    with pytest.raises(CompileError, match="takes integers, a tuple of them, a layout or a tensor as `"):
        function(value)


def test_tuples_layouts_and_numbers_have_a_rank():
    values = [
        4,
        Int32(4),
        (4, (2, None)),
        [2, 3],
        cute.make_layout((2, (3, 4))),
        cute.make_swizzle(3, 3, 3),
    ]
    assert [cute.rank(value) for value in values] == [1, 1, 2, 2, 2, 1]
    assert [cute.depth(value) for value in values] == [0, 0, 2, 1, 2, 0]
    assert cute.flatten(values[2]) == (4, 2, None) and str(cute.flatten(values[4])) == "(2,3,4):(1,2,6)"


def test_a_layout_needs_a_type_of_elements():
    with pytest.raises(CompileError, match="make_rmem_tensor_like of a layout needs the type of the elements"):
        in_a_kernel(lambda x: cute.make_rmem_tensor_like(x.layout))
    with pytest.raises(CompileError, match="assume takes a positive integer as `divby`, not int"):
        in_a_kernel(lambda x: cute.assume(Int32(8), 0))


def test_numbers_as_a_condition_are_true_where_they_are_not_zero():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        out.store(cute.where(x.load(), 1.0, 2.0))

    x, out = np.array([0.0, 1.0, -3.0, np.nan], np.float32), np.zeros(4, np.float32)
    cute.compile(host, cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(out))(x, out)
    assert out.tolist() == [2.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("layout", "tile", "index"),
    [(lambda: cute.make_layout((32, 4)), (8, 4), 127), (lambda: cute.make_layout((32, 4), stride=(8, 1)), (8, 16), 251),
     (lambda: cute.make_layout(((4, 8), (1, 4))), (8, 8), 127), (lambda: cute.make_layout((32, 2)), (63,), 63)],
)  # fmt: skip
def test_a_thread_value_layout_past_its_tile(layout, tile, index):
    with pytest.raises(CompileError, match="a thread-value layout reaches past the end of its tile") as error:
        in_a_kernel(lambda x: cute.make_tiled_copy(atom(), layout(), tile))
    assert str(error.value.values["thread-value layout"]).endswith(f"index {index}")
    assert str(error.value.values["tile"]).endswith(f"{np.prod(tile)} elements")


@pytest.mark.parametrize(
    ("layout", "index"),
    [(lambda: cute.make_layout((32, 16), stride=(1, 32)), 511), (lambda: cute.make_layout(257), 256),
     (lambda: cute.make_layout((2, 2), stride=(255, 1)), 256), (lambda: cute.make_layout((32, (4, 4))), 511)],
)  # fmt: skip
def test_a_layout_past_the_tensor_that_it_is_composed_with(layout, index):
    with pytest.raises(CompileError, match="reaches past the end of the tensor that it is composed with") as error:
        in_a_kernel(lambda x: cute.composition(x, layout()))
    assert str(error.value.values["layout"]).endswith(f"index {index}")


def test_layouts_that_fill_a_tile_or_less_are_taken():
    for shape, stride in (((32, 8), (1, 32)), ((32, 4), (8, 2)), (((4, 8), 8), ((64, 1), 8)), ((2, 2), (0, 1))):
        part = in_a_kernel(lambda x, s=shape, d=stride: cute.composition(x, cute.make_layout(s, stride=d)))
        assert cute.size(part.layout) == cute.size(shape)


@cute.kernel
def staged(x: cute.Tensor, out: cute.Tensor, way: cutlass.Constexpr):
    """Copies of 128 bits through shared memory."""
    i, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    smem.allocate(4)  # what follows it lies at a multiple of 16 all the same
    layout = cute.make_layout((32, 8), stride=(8, 1))
    if cutlass.const_expr(way == "tensor"):
        tile = smem.allocate_tensor(Float16, layout)
    elif cutlass.const_expr(way == "array"):
        tile = cute.make_tensor(smem.allocate_array(Float16, 256), layout)
    elif cutlass.const_expr(way == "bytes"):
        tile = cute.make_tensor(cute.recast_ptr(smem.allocate(512), dtype=Float16), layout)
    elif cutlass.const_expr(way == "struct"):
        tile = smem.allocate(Storage).tile.get_tensor(layout)
    else:
        tile = smem.allocate_tensor(Float16, layout, byte_alignment=way)
    copy_atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(copy_atom, cute.make_layout((32, 1)), cute.make_layout((1, 8)))
    mine = copy.get_slice(i)
    cute.copy(copy, mine.partition_S(x), mine.partition_D(tile))
    cute.arch.sync_threads()
    cute.copy(copy, mine.partition_S(tile), mine.partition_D(out))


@cute.struct
class Storage:
    tile: cute.struct.MemRange[Float16, 256]
    barrier: cutlass.Int64


@cute.jit
def stage(x: cute.Tensor, out: cute.Tensor, way: cutlass.Constexpr):
    staged(x, out, way).launch(grid=1, block=32)


def run_staged(way):
    x = np.arange(256, dtype=np.float16).reshape(32, 8)
    out = np.zeros_like(x)
    stage(*(cute.runtime.from_dlpack(item, assumed_align=16) for item in (x, out)), way)
    assert (out == x).all()


@pytest.mark.parametrize("way", ["tensor", "array", "bytes", "struct", 16, 128])
def test_shared_memory_takes_wide_copies_without_being_told(way):
    run_staged(way)


@pytest.mark.parametrize("way", [2, 4, 8])
def test_an_alignment_that_is_asked_for_is_taken_as_it_is(way):
    with pytest.raises(CompileError, match="a copy of 128 bits needs 8 contiguous elements, aligned to 16") as error:
        run_staged(way)
    assert error.value.values["alignment known"] == f"{way} bytes"
    assert "byte_alignment=" in error.value.hint and "from_dlpack" not in error.value.hint


@pytest.mark.parametrize(("count", "alignment"), [(1, 1), (2, 2), (3, 2), (8, 8), (12, 8), (16, 16), (100, 16)])
def test_small_allocations_are_not_spread_out(count, alignment):
    assert in_a_kernel(lambda x: cutlass.utils.SmemAllocator().allocate(count).alignment) == alignment


@pytest.mark.parametrize(("name", "instruction"), [("test_wait", "test_wait"), ("try_wait", "try_wait")])
def test_a_look_at_a_barrier_does_not_wait(name, instruction):
    @cute.kernel
    def kernel(out: cute.Tensor):
        barrier = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        cute.arch.mbarrier_init(barrier, 1)
        look = getattr(cute.arch, f"mbarrier_{name}")
        out[0] = Int32(look(barrier, 0))
        cute.arch.mbarrier_arrive(barrier)
        out[1] = Int32(look(barrier, 0))

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.full(2, -1, np.int32)
    executor = cute.compile(host, out, options="--gpu-arch sm_90a")
    executor(out)
    assert out.tolist() == [0, 1]
    ptx = executor.stages["ptx"]
    assert ptx.count(f"mbarrier.{instruction}.parity") == 2
    assert ptx.count("mbarrier.try_wait") == (0 if name == "test_wait" else 2)
