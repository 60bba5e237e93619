"""Helpers of tiled kernels, and tiles carried through loops and branches of run time."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.base.errors import ArgumentError, CompileError
from tilewright.cute.runtime import from_dlpack
from tilewright.utils import LayoutEnum, create_cute_tensor_for_fp8, get_smem_capacity_in_bytes, is_fp8_dtype

CHIP = "--gpu-arch sm_80"


@pytest.mark.parametrize(
    ("shape", "order", "expected"),
    [((8, 4), "C", "ROW_MAJOR"), ((8, 4), "F", "COL_MAJOR"), ((1, 4), "C", "ROW_MAJOR"), ((8, 1), "F", "COL_MAJOR")],
)
def test_which_mode_of_a_matrix_is_contiguous(shape, order, expected):
    tensor = from_dlpack(np.zeros(shape, np.float32, order=order))
    assert LayoutEnum.from_tensor(tensor) is LayoutEnum[expected]
    assert LayoutEnum[expected].is_k_major_a() == LayoutEnum[expected].is_n_major_c() == (expected == "ROW_MAJOR")


def test_a_matrix_without_a_contiguous_mode_is_refused():
    tensor = from_dlpack(np.zeros((8, 4, 2), np.float32).transpose(0, 1, 2))
    with pytest.raises(CompileError, match="neither of the first two modes is contiguous"):
        LayoutEnum.from_tensor(tensor)


def test_shared_memory_of_chips():
    assert get_smem_capacity_in_bytes("sm_80") == 163 * 1024
    assert get_smem_capacity_in_bytes("sm_86") == 99 * 1024
    assert get_smem_capacity_in_bytes("sm_90") == get_smem_capacity_in_bytes("sm_90a") == 227 * 1024
    with pytest.raises(CompileError):
        get_smem_capacity_in_bytes("sm_1")


def test_number_types_by_name():
    assert cutlass.dtype("Float16") is cutlass.dtype("f16") is cutlass.dtype(cutlass.Float16) is cutlass.Float16
    with pytest.raises(ValueError, match="no number type is called 'Float17'"):
        cutlass.dtype("Float17")


def test_8_bit_float_tensors_round_their_source_into_bytes():
    torch = pytest.importorskip("torch", reason="rounds with torch's types")
    source = torch.linspace(-3, 3, 32).reshape(4, 8)
    storage = torch.zeros(4, 8, dtype=torch.uint8)
    tensor = create_cute_tensor_for_fp8(storage, cutlass.Float8E4M3FN, 1, source_f32_tensor=source)
    assert tensor.element_type is cutlass.Float8E4M3FN and is_fp8_dtype(tensor.element_type)
    np.testing.assert_array_equal(storage.numpy(), source.numpy().astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    assert "(?,?):(?{i64},1)" in tensor.layout
    with pytest.raises(ArgumentError, match="different shapes"):
        create_cute_tensor_for_fp8(storage, cutlass.Float8E5M2, 1, source_f32_tensor=source[:2])
    assert not is_fp8_dtype(cutlass.Float16) and not is_fp8_dtype(cutlass.Int8)


@cute.kernel
def ping_pong(out: cute.Tensor, first: cutlass.Constexpr, second: cutlass.Constexpr):
    """Warps 0 and 1 take turns: each waits for the other's arrival at its barrier."""
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32), 16)
    if thread < 32:
        shared[thread] = thread * 3
        first.arrive()
        second.arrive_and_wait()
        out[thread] = shared[thread]
    else:
        first.arrive_and_wait()
        shared[thread - 32] = shared[thread - 32] + 1
        second.arrive()


@cute.jit
def run_ping_pong(out: cute.Tensor):
    first, second = (cutlass.pipeline.NamedBarrier(barrier_id=number, num_threads=64) for number in (1, 2))
    ping_pong(out, first, second).launch(grid=1, block=64)


def test_named_barriers_order_the_memory_of_warps():
    out = np.zeros(32, np.int32)
    cute.compile(run_ping_pong, from_dlpack(out), target="emu", options=CHIP)(from_dlpack(out))
    np.testing.assert_array_equal(out, np.arange(32) * 3 + 1)


@pytest.mark.parametrize(("number", "threads", "message"), [(16, 64, "barrier 16"), (1, 40, "of 40 threads")])
def test_barriers_that_no_block_has_are_refused(number, threads, message):
    with pytest.raises(CompileError, match=message):
        cutlass.pipeline.NamedBarrier(barrier_id=number, num_threads=threads)


@cute.kernel
def rotate(src: cute.Tensor, dst: cute.Tensor, turns: cutlass.Int32, byte_swizzle: cutlass.Constexpr):
    """A view of a ring of swizzled tiles is carried through a loop and a branch of run time."""
    thread, _, _ = cute.arch.thread_idx()
    plain = cute.make_layout((8, 64, 3), stride=(64, 1, 512))
    swizzle = cute.make_swizzle(3, 4, 3) if byte_swizzle else None
    layout = plain if byte_swizzle else cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, plain)
    ring = cutlass.utils.SmemAllocator().allocate_tensor(src.element_type, layout, 1024, swizzle)
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type, num_bits_per_copy=128),
        cute.make_layout((4, 8), stride=(8, 1)),
        cute.make_layout((1, 8)),
    )
    part = copy.get_slice(thread)
    into, source, target = part.partition_D(ring), part.partition_S(src), part.partition_D(dst)
    for stage in cutlass.range_constexpr(3):
        cute.copy(copy, source[None, None, None, stage], into[None, None, None, stage])
    cute.arch.sync_threads()
    stage = cutlass.Int32(0)
    view = into[None, None, None, stage]
    for _ in range(turns):
        stage = stage + 1
        if stage == 3:
            stage = cutlass.Int32(0)
        view = into[None, None, None, stage]
    registers = cute.make_fragment_like(view)
    cute.copy(copy, view, registers)
    cute.copy(copy, registers, target)


@cute.jit
def run_rotate(src: cute.Tensor, dst: cute.Tensor, turns: cutlass.Int32, byte_swizzle: cutlass.Constexpr):
    rotate(src, dst, turns, byte_swizzle).launch(grid=1, block=32)


@pytest.mark.parametrize("byte_swizzle", [False, True])
def test_views_of_swizzled_tiles_pass_through_loops(byte_swizzle):
    source = np.arange(8 * 64 * 3).reshape(3, 8, 64).astype(np.float16)
    for turns in (0, 1, 2, 4):
        target = np.zeros((8, 64), np.float16)
        src = from_dlpack(source.transpose(1, 2, 0), assumed_align=16)
        dst = from_dlpack(target, assumed_align=16)
        executor = cute.compile(run_rotate, src, dst, turns, byte_swizzle, target="emu", options=CHIP)
        executor(src, dst, turns)
        np.testing.assert_array_equal(target, source[turns % 3])


@cute.kernel
def copy_one(src: cute.Tensor, dst: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    dst[thread] = src[thread]


@cute.jit
def inner(src: cute.Tensor, dst: cute.Tensor):
    copy_one(src, dst).launch(grid=1, block=8)


@cute.jit
def outer(src: cute.Tensor, dst: cute.Tensor):
    inner(src, dst)


def test_a_kernel_launched_by_a_jit_function_that_a_jit_function_calls():
    source, target = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    cute.compile(outer, source, target, target="emu")(source, target)
    np.testing.assert_array_equal(target, source)


@cute.kernel
def rounded(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor, wide: cutlass.Constexpr):
    a, b = cute.make_rmem_tensor(2, cutlass.Float32), cute.make_rmem_tensor(2, cutlass.Float32)
    for n in cutlass.range(2, vectorize=wide):
        a[n] = x[n] + y[n]
        b[n] = x[n] * x[n]
    for n in cutlass.range_constexpr(2):
        out[n] = a[n]
        out[n + 2] = b[n]


@cute.jit
def run_rounded(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor, wide: cutlass.Constexpr):
    rounded(out, x, y, wide).launch(grid=1, block=1)


@pytest.mark.parametrize("wide", [False, True])
def test_vectors_of_float32_round_to_nearest_even(wide):
    x = np.array([1.0, 1 + 2049 * 2.0**-23], np.float32)
    y = np.array([1.5 * 2.0**-24, 0], np.float32)
    out = np.zeros(4, np.float32)
    arguments = [from_dlpack(array) for array in (out, x, y)]
    cute.compile(run_rounded, *arguments, wide, target="emu", options=CHIP)(*arguments)
    np.testing.assert_array_equal(out[:2], x + y)
    assert [hex(word) for word in out.view(np.uint32)[[0, 3]]] == ["0x3f800001", "0x3f801003"]


@cute.kernel
def approximations(out: cute.Tensor, x: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    value = x[thread]
    out[thread, 0] = cute.arch.rcp_approx(value)
    out[thread, 1] = cute.arch.exp2(value)
    out[thread, 2] = cute.arch.log2(value)
    out[thread, 3] = cute.arch.rsqrt_approx(value)
    out[thread, 4] = cute.arch.exp(value)
    out[thread, 5] = cute.arch.tanh_approx(value)


@cute.jit
def run_approximations(out: cute.Tensor, x: cute.Tensor):
    approximations(out, x).launch(grid=1, block=32)


def test_approximate_functions_are_near():
    x = np.linspace(0.25, 8, 32).astype(np.float32)
    out = np.zeros((32, 6), np.float32)
    arguments = [from_dlpack(array) for array in (out, x)]
    executor = cute.compile(run_approximations, *arguments, target="emu", options=CHIP)
    executor(*arguments)
    wide = x.astype(np.float64)
    exact = np.stack([1 / wide, np.exp2(wide), np.log2(wide), wide**-0.5, np.exp(wide), np.tanh(wide)], axis=1)
    np.testing.assert_allclose(out[:, :5], exact[:, :5], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(out[:, 5], exact[:, 5], rtol=2e-3)  # tanh.approx.f32: relative error 2^-11
    ptx = executor.stages["ptx"]
    ptx = ptx if isinstance(ptx, str) else "\n".join(ptx.values())
    for name in ("rcp", "ex2", "lg2", "rsqrt"):
        assert f"{name}.approx.ftz.f32" in ptx


@cute.kernel
def meet(x: cute.Tensor, out: cute.Tensor, start: cutlass.Int32):
    """Views of unlike alignment meet behind a branch, and an aligned one goes on in a loop that needs less."""
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((4, 16)), 128)
    for n in range(64):
        shared[n] = x[n]
    if start > 0:
        view = cute.make_tensor(shared.iterator + 17, cute.make_layout(4))
        pointer = x.iterator + 16
    else:
        view = cute.make_tensor(shared.iterator, cute.make_layout(4))
        pointer = x.iterator + 3
    out[0] = view[1]
    out[1] = cute.make_tensor(pointer, cute.make_layout(1))[0]
    walk = x.iterator + start
    for n in range(3):
        out[n + 2] = cute.make_tensor(walk, cute.make_layout(1))[0]
        walk = walk + 4


@cute.jit
def run_meet(x: cute.Tensor, out: cute.Tensor, start: cutlass.Int32):
    meet(x, out, start).launch(grid=1, block=1)


@pytest.mark.parametrize("start", [0, 1])
def test_views_of_unlike_alignment_meet_behind_a_branch(start):
    x, out = np.arange(64, dtype=np.float32), np.zeros(5, np.float32)
    arguments = [from_dlpack(array, assumed_align=16) for array in (x, out)]
    cute.compile(run_meet, *arguments, start, target="emu", options=CHIP)(*arguments, start)
    np.testing.assert_array_equal(out, [18, 16, 1, 5, 9] if start else [1, 3, 0, 4, 8])


@cute.kernel
def pointers(out: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    shared = smem.allocate_tensor(cutlass.Float32, cute.make_layout((32, 8)), 1024, cute.make_swizzle(3, 4, 3))
    for n in range(256):
        shared[n] = cutlass.Float32(n)
    moved = shared.iterator + 37
    again = cute.recast_ptr(cute.recast_ptr(moved, dtype=cutlass.Int32), dtype=cutlass.Float32)
    (moved + 3).store(-1.0)
    plain = cute.make_tensor(cute.recast_ptr(shared.iterator, cute.make_swizzle(0, 0, 0)), cute.make_layout(256))
    out[0] = moved.load()
    out[1] = (again + 1).load()
    out[2] = shared[40]
    out[3] = cutlass.Float32(moved.toint() - shared.iterator.toint())
    out[4] = plain[37 ^ 4]


@cute.jit
def run_pointers(out: cute.Tensor):
    pointers(out).launch(grid=1, block=1)


def test_swizzled_pointers_move_load_store_and_recast():
    out = np.zeros(5, np.float32)
    cute.compile(run_pointers, from_dlpack(out), target="emu", options=CHIP)(from_dlpack(out))
    # `recast_ptr` without a swizzle gives a pointer without one: element 38 there is element 34 of the swizzled tensor.
    np.testing.assert_array_equal(out, [37, 38 ^ 4, -1, 148, 37])
