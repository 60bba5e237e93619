"""Register tensors whose elements are read before they are written, at every level of optimisation."""

import inspect

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Boolean, Float16, Float32, Float64, Int8, Int32, Int64
from tilewright.base.errors import EmulationError
from tilewright.cute.runtime import from_dlpack

LEVELS = (0, 1, 2, 3)


@cute.kernel
def sum_without_fill(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    acc = cute.make_rmem_tensor(4, Float32)
    for _ in range(n):
        acc.store(acc.load() + x[t])
    x[t] = acc[2]  # found


@cute.kernel
def copied(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, Float32)
    part[0] = x[t]
    x[t] = part[1]  # found


@cute.kernel
def last_element_forgotten(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, Float32)
    for k in cutlass.range_constexpr(3):
        part[k] = x[t] + k
    x[t] = part.load().reduce(cute.ReductionOp.ADD, Float32(0), 0)  # found


@cute.kernel
def in_an_unrolled_loop(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, Float32)
    for k in cutlass.range(3, unroll_full=True):
        part[k] = x[t] + Float32(k)
    total = Float32(0)
    for k in cutlass.range(4, unroll_full=True):
        total += part[k]
    x[t] = total  # found


@cute.kernel
def at_an_index_of_run_time(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(8, Float32)
    part[n] = x[t]
    x[t] = part[n + 1]  # found


@cute.kernel
def written_by_some_threads(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(1, Float32)
    if t < 20:
        part[0] = x[t] + 1
    x[t] = part[0]  # found


@cute.kernel
def decides(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(2, Int32)
    part[0] = t
    if part[1] > 3:  # found
        x[t] = Float32(1)


@cute.kernel
def an_address(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(2, Int32)
    part[0] = t
    x[t] = x[part[1] & 1]  # found


@cute.kernel
def of_a_helper(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(2, Float32)
    fill_first(part, x[t])
    x[t] = part[0] + part[1]  # found


@cute.jit
def fill_first(part: cute.Tensor, value: Float32):
    part[0] = value


@cute.jit
def launch(kernel: cutlass.Constexpr, x: cute.Tensor, n: Int32):
    kernel(x, n).launch(grid=1, block=32)


def run(kernel, level, x=None, n=3):
    x = np.ones(32, np.float32) if x is None else x
    compiled = cute.compile[cute.OptLevel(level)](launch, kernel, x, n, target="emu")
    compiled(x, n)
    return x


def line_of(kernel):
    lines, first = inspect.getsourcelines(inspect.unwrap(getattr(kernel, "__wrapped__", kernel)))
    return next(first + k for k, line in enumerate(lines) if "# found" in line)


FAULTY = (sum_without_fill, copied, last_element_forgotten, in_an_unrolled_loop, at_an_index_of_run_time,
          written_by_some_threads, decides, an_address, of_a_helper)  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kernel", FAULTY, ids=lambda kernel: kernel.__name__)
def test_what_depends_on_an_unwritten_element_is_reported_at_its_line(kernel, level):
    with pytest.raises(EmulationError) as caught:
        run(kernel, level)
    error = caught.value
    assert error.kind == "uninitialised"
    assert "A value that was never written is used as a" in error.message
    assert f"test_unwritten_registers.py:{line_of(kernel)}" in str(error)
    assert "register tensor" in error.hint and "fill" in error.hint
    if kernel is written_by_some_threads:
        assert "thread    (20, 0, 0)" in str(error) and "11 other threads" in str(error)


@cute.kernel
def typed(x: cute.Tensor, dtype: cutlass.Constexpr, written: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, dtype)
    for k in cutlass.range_constexpr(4):
        if cutlass.const_expr(written or k != 2):
            part[k] = dtype(1)
    x[t] = part[2]


@cute.jit
def launch_typed(x: cute.Tensor, dtype: cutlass.Constexpr, written: cutlass.Constexpr):
    typed(x, dtype, written).launch(grid=1, block=32)


@pytest.mark.parametrize(("dtype", "array"), [
    (Int8, np.int8), (Int32, np.int32), (Int64, np.int64), (Float16, np.float16), (Float32, np.float32),
    (Float64, np.float64), (Boolean, np.bool_),
])  # fmt: skip
@pytest.mark.parametrize("level", [0, 3])
def test_elements_of_any_type(dtype, array, level):
    x = np.zeros(32, array)
    with pytest.raises(EmulationError, match="never written"):
        cute.compile[cute.OptLevel(level)](launch_typed, x, dtype, False, target="emu")(x)
    cute.compile[cute.OptLevel(level)](launch_typed, x, dtype, True, target="emu")(x)
    assert (x == 1).all()


@cute.kernel
def product(a: cute.Tensor, c: cute.Tensor, fill: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    thr = mma.get_slice(t)
    left, right = thr.partition_A(a), thr.partition_B(cute.local_tile(a, (8, 16), (0, 0)))
    rA, rB = mma.make_fragment_A(left), mma.make_fragment_B(right)
    rA.store(left.load())
    rB.store(right.load())
    acc = mma.make_fragment_C(mma.partition_shape_C((16, 8)))
    if cutlass.const_expr(fill):
        acc.fill(0.0)
    cute.gemm(mma, acc, rA, rB, acc)
    thr.partition_C(c).store(acc.load())


@cute.jit
def launch_product(a: cute.Tensor, c: cute.Tensor, fill: cutlass.Constexpr):
    product(a, c, fill).launch(grid=1, block=32)


@pytest.mark.parametrize("level", LEVELS)
def test_an_accumulator_without_fill(level):
    a = np.random.default_rng(0).integers(-4, 5, (16, 16)).astype(np.float16)
    c = np.zeros((16, 8), np.float32)
    views = from_dlpack(a), from_dlpack(c)
    with pytest.raises(EmulationError, match="never written"):
        cute.compile[cute.OptLevel(level)](launch_product, *views, False, target="emu")(*views)
    cute.compile[cute.OptLevel(level)](launch_product, *views, True, target="emu")(*views)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ a[:8].astype(np.float64).T)


@cute.kernel
def the_same_guard_twice(x: cute.Tensor, n: Int32):
    """Elements beyond the end are neither read nor used, only computed with."""
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, Float32)
    for k in cutlass.range_constexpr(4):
        if t * 4 + k < n:
            part[k] = x[t * 4 + k]
    part.store(part.load() * 2.0)
    for k in cutlass.range_constexpr(4):
        if t * 4 + k < n:
            x[t * 4 + k] = part[k]


@cute.kernel
def the_first_turn_writes(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    acc = cute.make_rmem_tensor(2, Float32)
    for k in range(n):
        if k == 0:
            acc.fill(1.0)
        else:
            acc.store(acc.load() + 1.0)
    x[t] = acc[1]


@cute.kernel
def half_is_used(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    part = cute.make_rmem_tensor(4, Float32)
    part[0], part[1] = x[t], Float32(2)
    doubled = cute.make_rmem_tensor(4, Float32)
    doubled.store(part.load() * 2.0)
    x[t] = doubled[0] + doubled[1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("kernel", "n", "wanted"), [
    (the_same_guard_twice, 27, np.where(np.arange(128) < 27, 2.0, 1.0)), (the_first_turn_writes, 3, np.full(32, 3.0)),
    (half_is_used, 0, np.full(32, 6.0)),
], ids=lambda value: getattr(value, "__name__", None))  # fmt: skip
def test_what_reaches_nothing_is_no_finding(kernel, n, wanted, level):
    np.testing.assert_array_equal(run(kernel, level, np.ones(len(wanted), np.float32), n), wanted)


def test_only_unwritten_elements_leave_a_trace():
    x = np.ones(32, np.float32)
    assert "// unwritten 0 %r" in cute.compile(launch, copied, x, 3, target="emu").stages["ptx"]
    assert "// unwritten" not in cute.compile(launch, half_is_used, x, 3, target="emu").stages["ptx"]


def test_what_stays_in_local_memory_is_not_written():
    text = cute.compile(launch, at_an_index_of_run_time, np.ones(32, np.float32), 3, target="emu").stages["ptx"]
    assert "ld.local" in text and text.count("st.local") == 0  # the one store goes elsewhere: LLVM drops it


@pytest.mark.parametrize("kernel", [copied, at_an_index_of_run_time, written_by_some_threads])
def test_such_code_assembles(kernel):
    assert cute.compile(launch, kernel, np.ones(32, np.float32), 3, target="emu").stages["cubin"][:4] == b"\x7fELF"
