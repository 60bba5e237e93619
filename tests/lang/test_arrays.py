"""`cutlass.Array`: parameters and memory without layouts, slices of so many elements, vectors by slices."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError

SMEM = cutlass.AddressSpace.smem


def test_parameters_are_arrays_in_host_code_and_kernels():
    @cute.kernel
    def kernel(a: cutlass.Array, b: cutlass.Array, out: cutlass.Array):
        i, j, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0.0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        out[i, j] = total

    @cute.jit
    def run(a: cutlass.Array, b: cutlass.Array, out: cutlass.Array):
        assert isinstance(a, cutlass.Array)
        assert a.dtype is cutlass.Float32
        kernel(a, b, out).launch(grid=1, block=(out.shape[0], out.shape[1], 1))

    a, b = (np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in ((5, 7), (7, 3)))
    out = np.zeros((5, 3), np.float32)
    run(a, b, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-5)


def test_a_slice_is_a_start_and_a_count():
    @cute.kernel
    def kernel(x: cutlass.Array, out: cutlass.Array, rows: cutlass.Array):
        i = 4 * cute.arch.thread_idx()[0]
        out[i:4] = x[i:4] + x[i:4]
        rows[1, 2:3] = x[5:3]
        rows[0, 0:2] = 7.0

    @cute.jit
    def run(x: cutlass.Array, out: cutlass.Array, rows: cutlass.Array):
        kernel(x, out, rows).launch(grid=1, block=2)

    x, out, rows = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros((2, 5), np.float32)
    run(x, out, rows)
    assert (out == 2 * x).all()
    assert rows.tolist() == [[7, 7, 0, 0, 0], [0, 0, 5, 6, 7]]


def test_memory_of_a_block_and_of_a_thread():
    @cute.kernel
    def kernel(out: cutlass.Array):
        thread = cute.arch.thread_idx()[0]
        shared = cutlass.Array(cutlass.Int32, (4, 8), space=SMEM)
        own = cutlass.Array(cutlass.Int32, 2)
        own[0], own[1] = thread, 10 * thread
        shared[thread // 8, thread % 8] = own[0] + own[1]
        cute.arch.sync_threads()
        back = shared.subview(8)
        out[thread] = shared.data_ptr(31 - thread).load()
        if thread < 24:
            out[32 + thread] = back[thread]

    @cute.jit
    def run(out: cutlass.Array):
        kernel(out).launch(grid=1, block=32)

    out = np.zeros(56, np.int32)
    run(out)
    assert out[:32].tolist() == [11 * i for i in reversed(range(32))]
    assert out[32:].tolist() == [11 * i for i in range(8, 32)]


def test_loads_and_stores_with_options_and_masks():
    @cute.kernel
    def kernel(x: cutlass.Array, out: cutlass.Array, count: cutlass.Int32):
        out.store(x.load(0), 0)
        out.store(x.load(1, is_volatile=True), 1, is_volatile=True)
        out.store(x.load(4, vector_size=4, alignment=16), 4, vector_size=4, alignment=16)
        out.store(cutlass.Float32(9.0), 2, 2)
        mask = cutlass.Array(cutlass.Boolean, 4)
        for i in cutlass.range_constexpr(4):
            mask[i] = i < count
        out.masked_store(8, x.masked_load(8, 4, mask, default=cutlass.Float32(0.5)) + 1.0, mask)

    @cute.jit
    def run(x: cutlass.Array, out: cutlass.Array, count: cutlass.Int32):
        kernel(x, out, count).launch(grid=1, block=1)

    x, out = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    run(x, out, 2)
    assert out.tolist() == [0, 1, 9, 9, 4, 5, 6, 7, 9, 10]


def test_arrays_go_through_branches_and_loops():
    @cute.kernel
    def kernel(a: cutlass.Array, b: cutlass.Array, out: cutlass.Array):
        thread = cute.arch.thread_idx()[0]
        chosen = a
        if thread % 2 == 1:
            chosen = b
        total = cutlass.Int32(0)
        for i in range(4):
            total += chosen[i]
        out[thread] = total

    @cute.jit
    def run(a: cutlass.Array, b: cutlass.Array, out: cutlass.Array):
        kernel(a, b, out).launch(grid=1, block=2)

    out = np.zeros(2, np.int32)
    run(np.arange(4, dtype=np.int32), np.arange(10, 14, dtype=np.int32), out)
    assert out.tolist() == [6, 46]


def test_views_of_tensors():
    def body(x: cute.Tensor, out: cute.Tensor):
        view = cutlass.make_array_view(x)
        out[0] = view[1, 2]
        out[1] = cutlass.make_array_view(view)[1, 0]

    out = np.zeros(2, np.int32)
    on_device(body, np.arange(6, dtype=np.int32).reshape(2, 3), out, block=1)
    assert out.tolist() == [5, 3]


def test_vectors_by_slices_products_and_folds():
    def body(out: cute.Tensor):
        row = cutlass.Vector.from_elements((1.0, 2.0, 3.0, 4.0), cutlass.Float32)
        part = cutlass.vector.broadcast_to(row, (2, 4))[:, 1:3]
        outer = cutlass.vector.outerproduct(row[0:2], row[1:4])
        for i in cutlass.range_constexpr(2):
            for j in cutlass.range_constexpr(2):
                out[2 * i + j] = part[i, j]
            for j in cutlass.range_constexpr(3):
                out[4 + 3 * i + j] = outer[i, j]
        out[10], out[11], out[12] = row.reduce("add"), row.reduce("min"), (-row).reduce("max")
        out[13] = outer[1, ::2][1]
        out[14] = cutlass.full([3], 2.0, cutlass.Float32).reduce("mul")

    out = np.zeros(15, np.float32)
    on_device(body, out, block=1)
    assert out.tolist() == [2, 3, 2, 3, 2, 3, 4, 4, 6, 8, 10, 1, -1, 8, 8]


def test_what_arrays_refuse():
    vector = cutlass.Vector.from_elements

    def of_run_time(x):
        n = cutlass.Int32(x[0])
        return cutlass.make_array_view(x)[0:n]

    cases = [
        (lambda x: cutlass.Array(cutlass.Int32, 4, space=cutlass.AddressSpace.gmem), "in smem or rmem, not in gmem"),
        (of_run_time, r"a slice of an Array is `start:count` of its last mode[\s\S]*a\[i, j:4\] has the four elements"),
        (lambda x: cutlass.make_array_view(x)[0:4:2], "a slice of an Array is `start:count`"),
        (lambda x: cutlass.make_array_view(3), "make_array_view takes a tensor, not int"),
        (
            lambda x: cutlass.make_array_view(x).store(vector((1, 2), cutlass.Int32), 0, 4),
            "2 elements are stored as 4",
        ),
        (
            lambda x: cutlass.make_array_view(x).masked_load(0, 4, vector((True, False), cutlass.Boolean)),
            "masked_load takes one truth value for each element",
        ),
        (lambda x: vector((1, 2), cutlass.Int32)[:, 1], "a TensorSSA takes one slice or number for each mode"),
        (lambda x: vector((1, 2), cutlass.Int32)[2:], "a slice of a TensorSSA that keeps no element"),
        (
            lambda x: cutlass.vector.outerproduct(cute.full((2, 2), 1, cutlass.Int32), vector((1, 2), cutlass.Int32)),
            "outerproduct takes two vectors of one mode",
        ),
        (lambda x: cutlass.Swizzle.from_name("s16b"), "a swizzle 's16b'"),
    ]
    for body, text in cases:
        with pytest.raises((CompileError, cutlass.LayoutError), match=text):
            on_device(body, np.zeros(8, np.int32), block=1)


def test_a_kernel_that_takes_an_array_takes_nothing_else():
    @cute.kernel
    def kernel(x: cutlass.Array):
        x[0] = 1

    @cute.jit
    def run(x: cute.Tensor):
        kernel(3).launch(grid=1, block=1)

    with pytest.raises(CompileError, match=r"expects argument #1 \(x\) to be cute.Array, but got int"):
        run(np.zeros(1, np.int32))


def test_an_array_prints(capfd):
    @cute.kernel
    def kernel():
        own = cutlass.Array(cutlass.Int32, 6)
        for i in cutlass.range_constexpr(6):
            own[i] = i
        own.print_runtime(max_elements=2)

    @cute.jit
    def run():
        kernel().launch(grid=1, block=1)

    run()
    shown = capfd.readouterr().out
    assert "1" in shown
    assert "3" not in shown.partition("data=")[2]
