"""Tensors over global, shared and register memory; TensorSSA; copies. Values against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Boolean, Float16, Float32, Int32, Int64, Uint32
from tilewright.cute.runtime import from_dlpack


def run(body, *arrays, block=32, grid=1, **compile_options):
    """Run `body` as a kernel on arrays (made static tensors) and give the arrays back."""
    kernel = cute.kernel(body)

    @cute.jit
    def host(tensors: tuple):
        kernel(*tensors).launch(grid=grid, block=block)

    tensors = tuple(from_dlpack(array, assumed_align=16) for array in arrays)
    cute.compile(host, tensors, **compile_options)(tensors)
    return arrays if len(arrays) > 1 else arrays[0]


def run_on_host(body, *arrays):
    """Run `body` as host code on arrays."""

    @cute.jit
    def host(tensors: tuple):
        body(*tensors)

    tensors = tuple(from_dlpack(array, assumed_align=16) for array in arrays)
    cute.compile(host, tensors)(tensors)
    return arrays if len(arrays) > 1 else arrays[0]


PLACES = pytest.mark.parametrize("place", [lambda *a: run(*a, block=1), run_on_host], ids=["device", "host"])


# Indexing and views.


@PLACES
def test_coordinates_linear_and_nested(place):
    x = np.arange(24, dtype=np.int32).reshape(4, 6)

    def body(x, out):
        out[0] = x[2, 3]
        out[1] = x[9]  # colexicographic: (1, 2)
        out[2] = x[(3, 5)]
        nested = cute.make_tensor(x.iterator, cute.make_layout(((2, 2), (3, 2)), stride=((6, 12), (1, 3))))
        out[3] = nested[(1, 0), (2, 1)]
        out[4] = nested[3, 4]  # modes by linear index: (1, 1), (1, 1)
        out[5] = nested[(1, (0, 1))] if False else nested[(1, 1), 5]
        out[6] = cute.size(x)
        out[7] = cute.rank(x)

    _, out = place(body, x, np.zeros(8, np.int32))
    flat = x.reshape(-1)
    assert out.tolist() == [x[2, 3], x[1, 2], x[3, 5], flat[6 + 2 + 3], flat[18 + 1 + 3], flat[18 + 2 + 3], 24, 2]


@PLACES
def test_slices_are_views(place):
    x = np.arange(24, dtype=np.int32).reshape(4, 6)

    def body(x, out):
        row = x[2, None]
        column = x[None, 3]
        assert str(row.layout) == "(6):(1)" and str(column.layout) == "(4):(6)"
        out[0] = row[4]
        out[1] = column[1]
        tiles = cute.zipped_divide(x, (2, 3))
        tile = tiles[(None, None), (1, 1)]
        assert cute.size(tile) == 6
        out[2] = tile[1, 2]
        flat_tile = tiles[None, 1]
        out[3] = flat_tile[0]
        row[0] = -1

    x, out = place(body, x, np.zeros(4, np.int32))
    assert out.tolist() == [16, 9, 6 * 3 + 5, 12] and x[2, 0] == -1


def test_slices_by_runtime_coordinates():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)

    def body(x, out):
        i = cute.arch.thread_idx()[0]
        row = x[i // 8, None]
        out[i // 8, i % 8] = row[i % 8] + 1.0

    _, out = run(body, x, np.zeros((8, 8), np.float32), block=64)
    assert (out == x + 1).all()


def test_local_tile_and_partition():
    x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32)

    def body(x, out):
        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        for destination, tensor in ((1, x),):
            tile = cute.local_tile(tensor, (16, 32), (block, 0))
            mine = cute.local_partition(tile, cute.make_layout((4, 8)), thread)
            other = cute.local_partition(cute.local_tile(out, (16, 32), (block, 0)), cute.make_layout((4, 8)), thread)
            assert cute.size(mine) == 16
            for k in cutlass.range_constexpr(16):
                other[k] = mine[k] * 2 + destination

    _, out = run(body, x, np.zeros_like(x), block=32, grid=4)
    assert (out == 2 * x + 1).all()


def test_storage_offset_views():
    """A view at an offset: the kernel writes the view's elements and no others, whatever the way it is passed."""
    x = np.arange(16, dtype=np.int32)

    @cute.kernel
    def kernel(y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        if i < cute.size(y):
            y[i] = y[i] * 2

    @cute.jit
    def host(y: cute.Tensor):
        kernel(y).launch(grid=1, block=32)

    for pass_it in (lambda y: y, from_dlpack, lambda y: from_dlpack(y).mark_layout_dynamic()):
        x[:] = np.arange(16)
        executor = cute.compile(host, pass_it(x[5:9]))
        executor(pass_it(x[5:9]))
        assert x.tolist() == [0, 1, 2, 3, 4, 10, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15]
    with pytest.raises(cutlass.ArgumentError, match="align"):
        cute.compile(host, from_dlpack(x, assumed_align=16))(x[5:21])


def test_negative_and_large_strides():
    x = np.arange(64, dtype=np.float32)

    @cute.kernel
    def kernel(y: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = y[i]

    @cute.jit
    def host(y: cute.Tensor, out: cute.Tensor):
        kernel(y, out).launch(grid=1, block=16)

    out = np.zeros(16, np.float32)
    for view in (x[::4], x[15::-1], x[:16], x[32:48]):
        cute.compile(host, view, out)(view, out)
        assert (out == view).all()


# Registers and shared memory.


@PLACES
def test_register_tensors(place):
    def body(x, out):
        fragment = cute.make_rmem_tensor((4, 2), Float32)
        fragment.fill(1.5)
        fragment[2, 1] = 7.0
        out[0] = fragment[2, 1] + fragment[0]
        like = cute.make_rmem_tensor_like(x)
        assert like.element_type is Float32 and cute.size(like) == 8
        like.store(x.load())
        out[1] = like[3]
        strided = cute.make_fragment(cute.make_layout((2, 2), stride=(4, 1)), Float32)
        for i in cutlass.range_constexpr(4):
            strided[i] = Float32(i)
        out[2] = strided[1, 1]

    _, out = place(body, np.arange(8, dtype=np.float32), np.zeros(3, np.float32))
    assert out.tolist() == [8.5, 3.0, 3.0]


def test_shared_memory_allocator():
    def body(x, out):
        allocator = cutlass.utils.SmemAllocator()
        first = allocator.allocate_tensor(Float32, cute.make_layout((32,)))
        second = allocator.allocate_tensor(Float16, cute.make_layout((8, 8)), byte_alignment=128)
        array = allocator.allocate_array(Int32, 16)
        raw = allocator.allocate(64, byte_alignment=16)
        assert str(first.memspace) == "smem" and second.iterator.alignment == 128
        thread, _, _ = cute.arch.thread_idx()
        first[thread] = x[thread]
        if thread < 16:
            third = cute.make_tensor(array, cute.make_layout(16))
            third[thread] = thread
            cute.make_tensor(raw, cute.make_layout(64))[thread] = 1
        second[thread] = Float16(thread)
        cute.arch.sync_threads()
        out[thread] = first[31 - thread] + second[31 - thread]

    x, out = run(body, np.arange(32, dtype=np.float32), np.zeros(32, np.float32))
    assert (out == 2 * x[::-1]).all()


def test_swizzled_shared_memory_round_trip():
    """Case: S<3,3,3> over (8, 64) row-major, 8 x 8 threads with 8 columns each."""

    def body(x, out, offsets):
        layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout, byte_alignment=128)
        thread, _, _ = cute.arch.thread_idx()
        row, column = thread // 8, thread % 8
        for k in cutlass.range_constexpr(8):
            shared[row, column + 8 * k] = x[row, column + 8 * k]
        cute.arch.sync_threads()
        for k in cutlass.range_constexpr(8):
            out[row, column + 8 * k] = shared[row, column + 8 * k]
            if thread == 3 * 8 + 5:
                offsets[k] = Int32(layout((row, column + 8 * k)))

    x = np.arange(512, dtype=np.float16).reshape(8, 64)
    _, out, offsets = run(body, x, np.zeros_like(x), np.zeros(8, np.int32), block=64)
    assert (out == x).all()
    assert offsets.tolist() == [221, 213, 205, 197, 253, 245, 237, 229]


def test_elements_of_every_type_in_memory():
    types = {
        Boolean: bool, cutlass.Int8: np.int8, cutlass.Uint16: np.uint16, Int64: np.int64, Float16: np.float16,
        BFloat16: ml_dtypes.bfloat16, cutlass.Float64: np.float64,
    }  # fmt: skip
    for dtype, kind in types.items():

        def body(x, out, dtype=dtype):
            shared = cutlass.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout(32))
            fragment = cute.make_rmem_tensor((1,), dtype)
            thread, _, _ = cute.arch.thread_idx()
            shared[thread] = x[thread]
            cute.arch.sync_threads()
            fragment[0] = shared[31 - thread]
            out[thread] = fragment[0]

        x = (np.arange(32) % 2 == 0) if kind is bool else np.arange(32).astype(kind)
        _, out = run(body, x, np.zeros_like(x))
        assert (out == x[::-1]).all(), dtype


# TensorSSA.


@PLACES
def test_load_compute_store(place):
    def body(x, y, out):
        a, b = x.load(), y.load()
        assert a.shape == (4, 2) and a.dtype is Float32 and str(a) == "vector<8xf32> o (4, 2)"
        out.store((a + b) * 2.0 - a / b)

    x = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    y = x[::-1].copy()
    _, _, out = place(body, x, y, np.zeros_like(x))
    assert (out == (x + y) * 2 - x / y).all()


@PLACES
def test_integer_vectors(place):
    def body(x, out):
        a = x.load()
        rows = [a // 3, a % 3, a << 2, a >> 1, a & 5, a | 5, a ^ 5, -a, ~a, abs(a)]
        for k in cutlass.range_constexpr(len(rows)):
            out[k, None].store(rows[k])

    x = np.array([-9, -1, 0, 7], np.int32)
    _, out = place(body, x, np.zeros((10, 4), np.int32))
    wanted = [x // 3, x % 3, x << 2, x >> 1, x & 5, x | 5, x ^ 5, -x, ~x, abs(x)]
    assert (out == np.array(wanted)).all()


@PLACES
def test_vector_comparison_and_partial_reduction(place):
    """Case: a = 4x1, b = 4x2: `a >= b` is all false; -a is -1; 5.0 mixes. Sums over (4, (5, 4))."""

    def body(sums, flags, mixed):
        a = cute.full((4, 1), 1, Int32)
        b = cute.full((4, 1), 2, Int32)
        compared = a >= b
        assert compared.dtype is Boolean and compared.shape == (4, 1)
        flags.store(compared.reshape((4,)))
        mixed[0] = (-a)[0]
        mixed[1] = Int32((a + 5.0)[1])
        mixed[2] = Int32((5.0 - a)[2])
        fragment = cute.make_rmem_tensor((4, (5, 4)), Int32)
        for i in cutlass.range_constexpr(4):
            for j in cutlass.range_constexpr(20):
                fragment[i, j] = i + 4 * j
        values = fragment.load()
        kept = values.reduce(cute.ReductionOp.ADD, 0, reduction_profile=(None, 1))
        assert kept.shape == (4,)
        for i in cutlass.range_constexpr(4):
            sums[i] = kept[i]
        sums[4] = values.reduce(cute.ReductionOp.ADD, 0, reduction_profile=0)
        sums[5] = values.reduce(cute.ReductionOp.MAX, 0, 0)
        sums[6] = values.reduce(cute.ReductionOp.MIN, 100, 0)

    sums, flags, mixed = place(body, np.zeros(7, np.int32), np.ones(4, bool), np.zeros(3, np.int32))
    assert sums.tolist() == [760, 780, 800, 820, 3160, 79, 0]
    assert not flags.any() and mixed.tolist() == [-1, 6, 4]


@PLACES
def test_unsigned_survives_views(place):
    """Case: uint32 registers of 0xFFFFFFFF, tiled to 4: `>> 1`, `> 1` and the float are those of an unsigned number."""

    def body(bits, truth, number):
        registers = cute.make_rmem_tensor((16,), Uint32)
        registers.fill(0xFFFFFFFF)
        tile = cute.local_tile(registers, (4,), (2,))
        assert tile.element_type is Uint32
        values = tile.load()
        bits[0] = (values >> 1)[0]
        bits[1] = tile[1] >> 1
        truth[0] = (values > 1)[0]
        truth[1] = tile[3] > 1
        number[0] = values.to(Float32)[0]
        number[1] = Float32(tile[2])

    bits, truth, number = place(body, np.zeros(2, np.uint32), np.zeros(2, bool), np.zeros(2, np.float32))
    assert bits.tolist() == [0x7FFFFFFF] * 2 and truth.all() and (number == 4294967296.0).all()


@PLACES
def test_broadcast_where_and_constructors(place):
    def body(x, out):
        a = x.load()  # (4, 3)
        row = cute.full((1, 3), 2.0, Float32)
        out[0, None, None].store(a * row)
        out[1, None, None].store(cute.where(a > 5.0, a, 0.0))
        out[2, None, None].store(cute.full((4, 1), 3.0, Float32).broadcast_to((4, 3)) + cute.zeros_like(a))
        out[3, None, None].store(cute.ones_like(a) + cute.full_like(a, 0.5))
        out[4, None, None].store(a.to(Float16).to(Float32) + Float32(1))
        out[5, None, None].store(cute.math.exp2(a))

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    _, out = place(body, x, np.zeros((6, 4, 3), np.float32))
    wanted = [x * 2, np.where(x > 5, x, 0), x * 0 + 3, x * 0 + 1.5, x + 1, np.exp2(x)]
    assert (out == np.array(wanted)).all()


@PLACES
def test_elements_and_slices_of_values(place):
    def body(x, out):
        a = x.load()
        assert a[None, 1].shape == (4,)
        out[0] = a[2, 1]
        out[1] = a[5]
        out[2] = a[None, 1][2]
        out[3] = a.reduce(cute.ReductionOp.MUL, 1.0, 0)
        total = a.reduce(cute.ReductionOp.ADD, 0.0, (1, None))
        out[4] = total[0]
        out[5] = total[1]

    x = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    _, out = place(body, x, np.zeros(6, np.float32))
    assert out.tolist() == [x[2, 1], x[1, 1], x[2, 1], 40320.0, x[:, 0].sum(), x[:, 1].sum()]


def test_values_are_carried_by_loops():
    def body(x, out):
        total = cute.zeros_like(x[0, None], Float32)
        i = cutlass.Int32(0)
        while i < 5:
            total = total + x[i, None].load()
            i += 1
        out.store(total)

    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    _, out = run(body, x, np.zeros(4, np.float32), block=1)
    assert (out == x.sum(0)).all()


@pytest.mark.parametrize(
    "use, words",
    [
        (lambda a: a + cute.full((3,), 1.0, Float32), ["shapes do not broadcast", "(8,)", "(3,)"]),
        (lambda a: a.broadcast_to((4,)), ["shapes do not broadcast"]),
        (lambda a: a.reshape((3,)), ["reshape changes the number of elements"]),
        (lambda a: a[9], ["index 9 is outside a TensorSSA of 8 elements"]),
        (lambda a: bool(a), ["no single truth value", "cute.where"]),
        (lambda a: a & a, ["`and` on Float32 and Float32"]),
        (lambda a: a.reduce(cute.ReductionOp.ADD, 0.0, (1, None)), ["one entry for each mode"]),
    ],
)
def test_misuse_of_values(use, words):
    def body(x):
        use(x.load())

    with pytest.raises(cutlass.CompileError) as caught:
        run(body, np.zeros(8, np.float32))
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.location.line == use.__code__.co_firstlineno


# Rounding of vectors is that of scalars.


def test_vector_arithmetic_rounds_as_scalars_do():
    """Case: 1 + 1.5 * 2^-24 is 0x3f800001; x * x with x = 1 + 2049 * 2^-23 is 0x3f801003."""

    def body(x, out):
        fragment = cute.make_rmem_tensor((2,), Float32)
        fragment[0], fragment[1] = x[0], x[2]
        other = cute.make_rmem_tensor((2,), Float32)
        other[0], other[1] = x[1], x[2]
        summed = fragment.load() + other.load()
        product = fragment.load() * other.load()
        out[0] = summed[0]
        out[1] = product[1]

    x = np.array([1.0, 1.5 * 2**-24, 1 + 2049 * 2**-23], np.float32)
    _, out = run(body, x, np.zeros(2, np.float32), block=1)
    assert [hex(v) for v in out.view(np.uint32)] == ["0x3f800001", "0x3f801003"]


# Copies.


def test_copies_use_the_widest_vectors():
    def body(x, y, z):
        thread = cute.arch.thread_idx()[0]
        fragment = cute.make_rmem_tensor((8,), Float16)
        cute.autovec_copy(cute.local_tile(x, (8,), (thread,)), fragment)
        cute.autovec_copy(fragment, cute.local_tile(y, (8,), (thread,)))
        cute.basic_copy(cute.local_tile(x, (8,), (thread,)), cute.local_tile(z, (8,), (thread,)))

    x = np.arange(256, dtype=np.float16)
    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        kernel(x, y, z).launch(grid=1, block=32)

    y, z = np.zeros_like(x), np.zeros_like(x)
    tensors = [from_dlpack(array, assumed_align=16) for array in (x, y, z)]
    executor = cute.compile(host, *tensors)
    executor(*tensors)
    assert (y == x).all() and (z == x).all()
    ptx = executor.stages["ptx"]
    assert ptx.count("ld.global.v4.b32") == 1 and ptx.count("st.global.v4.b32") == 1
    narrow = cute.compile(host, *[from_dlpack(array) for array in (x, y, z)])
    assert "v4" not in narrow.stages["ptx"]


def test_copies_with_predicates_leave_the_rest():
    def body(x, y, limit):
        predicate = cute.make_rmem_tensor((4,), Boolean)
        for k in cutlass.range_constexpr(4):
            predicate[k] = k < limit[0]
        thread = cute.arch.thread_idx()[0]
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32) if hasattr(cute, "make_copy_atom") else None
        cute.copy(atom, cute.local_tile(x, (4,), (thread,)), cute.local_tile(y, (4,), (thread,)), pred=predicate)

    x = np.arange(128, dtype=np.float32)
    _, y, _ = run(body, x, np.full(128, -1, np.float32), np.array([3], np.int32))
    wanted = np.where(np.arange(128) % 4 < 3, x, -1)
    assert (y == wanted).all()


def test_copies_that_do_not_fit():
    def other_size(x):
        cute.autovec_copy(cute.local_tile(x, (8,), (0,)), cute.local_tile(x, (4,), (0,)))

    def other_width(x):
        cute.autovec_copy(cute.local_tile(x, (8,), (0,)), cute.make_rmem_tensor((8,), Float16))

    for body, words in (
        (other_size, "disagree on the number of elements"),
        (other_width, "copy from Float32 to Float16"),
    ):
        with pytest.raises(cutlass.CompileError, match=words) as caught:
            run(body, np.zeros(32, np.float32))
        assert caught.value.location.line == body.__code__.co_firstlineno + 1


# Tensors of coordinates.


def test_identity_tensors_give_coordinates():
    def body(out):
        coordinates = cute.make_identity_tensor((8, 4))
        thread = cute.arch.thread_idx()[0]
        mine = cute.local_partition(coordinates, cute.make_layout((4, 2)), thread)
        for k in cutlass.range_constexpr(4):
            row, column = mine[k]
            out[thread, k] = row * 10 + column

    out = run(body, np.zeros((8, 4), np.int32), block=8)
    for thread in range(8):
        for k in range(4):
            row, column = thread % 4 + 4 * (k % 2), thread // 4 + 2 * (k // 2)
            assert out[thread, k] == row * 10 + column
    with pytest.raises(cutlass.CompileError, match="cannot be written"):

        def wrong(out):
            cute.make_identity_tensor((8, 4))[0, 0] = 1

        run(wrong, np.zeros(4, np.int32))
