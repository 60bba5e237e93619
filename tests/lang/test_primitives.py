"""The primitives of `cutlass.experimental`: barriers, mbarriers, shuffles, matrices, tensor maps by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.experimental import cuda
from tilewright.experimental import primitives as prims

SMEM = cutlass.AddressSpace.smem


def test_barriers_fold_predicates():
    def body(out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        some = prims.barrier_cta_red(thread == 5, barrier_id=0, kind="or", thread_count=64)
        every = prims.barrier_cta_red(thread < 64, barrier_id=1, kind="and", thread_count=64)
        none = prims.barrier_cta_red(thread > 0, barrier_id=1, kind="and")
        count = prims.barrier_cta_red(thread % 3 == 0, kind="popc")
        if thread == 63:
            out[0], out[1], out[2], out[3] = cutlass.Int32(some), cutlass.Int32(every), cutlass.Int32(none), count

    out = np.zeros(4, np.int32)
    on_device(body, out, block=64)
    assert out.tolist() == [1, 1, 0, 22]


def test_one_warp_waits_for_another():
    def body(out: cute.Tensor):
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        word = cutlass.Array(cutlass.Int32, 32, space=SMEM)
        if warp == 0:
            word[lane] = 3 * lane
            prims.barrier_cta_arrive(1, 64)
        else:
            prims.barrier_cta_sync(1, thread_count=64)
            out[lane] = word[31 - lane]
        prims.bar_warp_sync()
        prims.barrier_cta_sync_aligned(0)

    out = np.zeros(32, np.int32)
    on_device(body, out, block=64)
    assert out.tolist() == [3 * i for i in reversed(range(32))]


def test_an_mbarrier_from_its_making_to_its_end():
    def body(out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        bar = cutlass.Array(cutlass.Int64, 2, space=SMEM)
        word = cutlass.Array(cutlass.Int32, 1, space=SMEM)
        if thread == 0:
            prims.mbarrier_init(bar, 1)
            prims.mbarrier_init(bar.subview(1), 1)
        prims.fence_mbarrier_init()
        prims.barrier_cta_sync(0)
        if thread == 0:
            word[0] = 42
            prims.mbarrier_arrive(bar)
        while not prims.mbarrier_try_wait_parity(bar, 0, time_limit=1000):
            pass
        if thread == 1:
            state = prims.mbarrier_arrive(bar.subview(1))
            while not prims.mbarrier_try_wait_timelimit(bar.subview(1), state, 1000):
                pass
            out[0] = word[0]
            prims.mbarrier_inval(bar.subview(1))

    out = np.zeros(1, np.int32)
    on_device(body, out, block=32)
    assert out.tolist() == [42]


def test_shuffles_say_whether_there_is_a_lane():
    def body(out: cute.Tensor, clamp: cute.Tensor):
        lane = cute.arch.lane_idx()
        value = 10 * lane
        up, has_up = prims.shfl_sync(0xFFFFFFFF, value, 1, 0, prims.Shfl.UP, return_value_and_is_valid=True)
        down, has_down = prims.shfl_sync(
            0xFFFFFFFF, value, 3, clamp[0], prims.Shfl.DOWN, return_value_and_is_valid=True
        )
        out[0, lane], out[1, lane] = up, cutlass.Int32(has_up)
        out[2, lane], out[3, lane] = down, cutlass.Int32(has_down)
        out[4, lane] = prims.shfl_sync(0xFFFFFFFF, value, lane ^ 5, 31, prims.Shfl.IDX)
        out[5, lane] = prims.shfl_sync(0xFFFFFFFF, value, 9, 31, prims.Shfl.BFLY)

    out = np.zeros((6, 32), np.int32)
    eights = 24 << 8 | 31  # segments of 8 lanes
    on_device(body, out, np.array([eights], np.int32), block=32)
    lanes = np.arange(32)
    assert out[0].tolist() == [10 * max(i - 1, 0) for i in lanes]
    assert out[1].tolist() == [int(i > 0) for i in lanes]
    assert out[2].tolist() == [10 * (i + 3 if i % 8 < 5 else i) for i in lanes]
    assert out[3].tolist() == [int(i % 8 < 5) for i in lanes]
    assert out[4].tolist() == [10 * (i ^ 5) for i in lanes]
    assert out[5].tolist() == [10 * (i ^ 9) for i in lanes]


def test_votes_and_the_chosen_lane():
    def body(out: cute.Tensor):
        lane = cute.arch.lane_idx()
        for place, kind in enumerate((prims.VoteSync.ANY, prims.VoteSync.ALL, prims.VoteSync.UNI)):
            out[place] = cutlass.Int32(prims.vote_sync(0xFFFFFFFF, lane > 40, kind))
        out[3] = cutlass.Int32(prims.vote_sync(0xFFFFFFFF, lane % 4 == 0, prims.VoteSync.BALLOT))
        if prims.elect_sync():
            out[4] = out[4] + 1
        if lane < 16:
            if prims.elect_sync(0xFFFF):
                out[5] = out[5] + 1

    out = np.zeros(6, np.int32)
    on_device(body, out, block=32)
    assert out.view(np.uint32).tolist() == [0, 0, 1, 0x11111111, 1, 1]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("layouts", [("ROW", "ROW"), ("COL", "ROW"), ("ROW", "COL"), ("COL", "COL")])
def test_matrices_there_and_back(count, layouts):
    load, store = (prims.MMALayout[name] for name in layouts)

    def body(x: cute.Tensor, out: cute.Tensor):
        lane = cute.arch.lane_idx()
        source = cutlass.Array(cutlass.Float16, (8 * count, 8), space=SMEM, alignment=128)
        target = cutlass.Array(cutlass.Float16, (8 * count, 8), space=SMEM, alignment=128)
        for i in range(lane, 64 * count, 32):
            source[i // 8, i % 8] = x[i // 8, i % 8]
        prims.bar_warp_sync()
        row = lane % (8 * count)
        words = prims.ldmatrix(source.data_ptr(8 * row), count, load)
        prims.stmatrix(target.data_ptr(8 * row), words, store)
        prims.bar_warp_sync()
        for i in range(lane, 64 * count, 32):
            out[i // 8, i % 8] = target[i // 8, i % 8]

    x = np.arange(64 * count, dtype=np.float16).reshape(8 * count, 8)
    out = np.zeros_like(x)
    on_device(body, x, out, block=32)
    expected = x.reshape(count, 8, 8)
    assert (out.reshape(count, 8, 8) == (expected if load is store else expected.transpose(0, 2, 1))).all()


def test_copies_of_a_thread_fill_up_with_zeros():
    def body(x: cute.Tensor, out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        shared = cutlass.Array(cutlass.Int32, 16, space=SMEM, alignment=16)
        prims.cp_async_shared_global(shared.data_ptr(4 * thread), x.iterator + 4 * thread, 16, "cg", cp_size=8)
        prims.cp_async_commit_group()
        prims.cp_async_wait_group(0)
        for i in cutlass.range_constexpr(4):
            out[4 * thread + i] = shared[4 * thread + i]

    x, out = np.arange(1, 17, dtype=np.int32), np.zeros(16, np.int32)
    on_device(body, x, out, block=4)
    assert out.tolist() == [n if i % 4 < 2 else 0 for i, n in enumerate(range(1, 17))]


@pytest.mark.parametrize("kind", ["F32", "S32", "F16"])
def test_red_folds_into_memory(kind):
    dtype = {"F32": cutlass.Float32, "S32": cutlass.Int32, "F16": cutlass.Float16}[kind]

    def body(out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        prims.red(prims.ReductionOp.ADD, prims.ReductionType[kind], out, dtype(thread),
                  mem_order=prims.MemOrder.RELAXED, mem_scope=prims.MemScope.GPU)  # fmt: skip

    out = np.zeros(1, {"F32": np.float32, "S32": np.int32, "F16": np.float16}[kind])
    on_device(body, out, block=32)
    assert out[0] == 496


MAPS = [("none", 8), ("s32b", 16), ("s64b", 32), ("s128b", 64)]


@pytest.mark.parametrize(("swizzle", "columns"), MAPS)
@pytest.mark.parametrize("from_view", [True, False])
def test_boxes_by_tensor_maps(swizzle, columns, from_view):
    """A box at an offset, some of it outside: zeros come from there, and nothing goes there."""

    @cute.kernel
    def kernel(source: cutlass.GridConstant[cuda.TensorMap], target: cutlass.GridConstant[cuda.TensorMap]):
        thread = cute.arch.thread_idx()[0]
        box = cutlass.Array(cutlass.Float16, 16 * columns, space=SMEM, alignment=1024)
        bar = cutlass.Array(cutlass.Int64, 1, space=SMEM)
        if thread == 0:
            prims.prefetch_tensormap(source.get_ptr())
            prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
        prims.barrier_cta_sync(0)
        if thread == 0:
            prims.mbarrier_arrive_expect_tx(bar, source.global_tx_bytes())
            prims.cp_async_bulk_tensor_shared_cta_global(box, source.get_ptr(), (columns, 24), bar)
        while not prims.mbarrier_try_wait_parity(bar, 0):
            pass
        row = box.data_ptr(thread * columns)
        name = cutlass.Swizzle.from_name(swizzle)
        row.store_swizzled(row.load_swizzled(name, count=columns) + 1.0, name)
        prims.fence_proxy(prims.Proxy.ASYNC_SHARED, space=prims.SharedSpace.shared_cta)
        prims.barrier_cta_sync(0)
        if thread == 0:
            prims.cp_async_bulk_tensor_global_shared_cta(target.get_ptr(), box, (0, 24))
            prims.cp_async_bulk_commit_group()
            prims.cp_async_bulk_wait_group(0)

    def made(tensor: cute.Tensor) -> cuda.TensorMap:
        kind = cuda.TensorMapSwizzle[swizzle]
        if from_view:
            return cuda.create_tensor_map_tiled_from_view(tensor, box_dims=(16, columns), swizzle=kind)
        return cuda.create_tensor_map_tiled(
            global_address=tensor.iterator.toint(), dtype=cutlass.Float16, global_dims=[tensor.shape[1], 32],
            global_strides=[2 * columns * 2 // 16], box_dims=[columns, 16], swizzle=kind,
        )  # fmt: skip

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        kernel(made(x), made(y)).launch(grid=1, block=16)

    x = np.arange(32 * 2 * columns, dtype=np.float16).reshape(32, 2 * columns) % 1000
    room = np.zeros(x.nbytes + 16, np.uint8)
    y = room[-room.ctypes.data % 16 :][: x.nbytes].view(np.float16).reshape(x.shape)
    run(cute.runtime.from_dlpack(x, assumed_align=16), cute.runtime.from_dlpack(y, assumed_align=16))
    expected = np.zeros_like(x)
    expected[24:, :columns] = x[24:, columns:] + 1
    assert (y == expected).all()


def test_a_ragged_tensor_begins_before_its_memory():
    """Rows count down to the end of a mode of 2**30, so that what follows a sequence is outside: zeros are read."""
    big = 1 << 30

    @cute.kernel
    def kernel(
        rows: cutlass.GridConstant[cuda.TensorMap], out: cute.Tensor, first: cutlass.Int32, count: cutlass.Int32
    ):
        thread = cute.arch.thread_idx()[0]
        box = cutlass.Array(cutlass.Int16, (8, 16), space=SMEM, alignment=128)
        bar = cutlass.Array(cutlass.Int64, 1, space=SMEM)
        if thread == 0:
            prims.mbarrier_init(bar, 1)
            prims.fence_mbarrier_init()
            prims.mbarrier_arrive_expect_tx(bar, rows.global_tx_bytes())
            at = (0, big - count, first + count)
            prims.cp_async_bulk_tensor_shared_cta_global(box, rows.get_ptr(), at, bar)
            while not prims.mbarrier_try_wait_parity(bar, 0):
                pass
            for i in cutlass.range_constexpr(8):
                for j in cutlass.range_constexpr(16):
                    out[i, j] = box[i, j]

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor, first: cutlass.Int32, count: cutlass.Int32):
        rows = cuda.create_tensor_map_tiled(
            global_address=x.iterator.toint() - big * 32, dtype=cutlass.Int16, global_dims=[16, big, 2**31 - 1],
            global_strides=[2, 2], box_dims=[16, 8, 1],
        )  # fmt: skip
        kernel(rows, out, first, count).launch(grid=1, block=32)

    x, out = np.arange(20 * 16, dtype=np.int16).reshape(20, 16), np.full((8, 16), -1, np.int16)
    run(cute.runtime.from_dlpack(x, assumed_align=16), out, 11, 5)
    assert (out[:5] == x[11:16]).all()
    assert not out[5:].any()


def test_registers_and_ends_of_threads():
    def body(out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        if thread >= 8:
            prims.exit()
        out[thread] = 1

    out = np.zeros(32, np.int32)
    on_device(body, out, block=32)
    assert out.tolist() == [1] * 8 + [0] * 24


def test_printing_ends_lines_once(capfd):
    def body(out: cute.Tensor):
        prims.print_runtime("a {}\n", 1)
        prims.print_runtime("b {}", 2)

    on_device(body, np.zeros(1, np.int32), block=1)
    assert capfd.readouterr().out == "a 1\nb 2\n"


def test_what_primitives_refuse():
    def maps(**numbers):
        def run(x: cute.Tensor):
            given = {"global_address": x.iterator.toint(), "dtype": cutlass.Float32, "global_dims": [32, 8],
                     "global_strides": [8], "box_dims": [32, 8]} | numbers  # fmt: skip
            cuda.create_tensor_map_tiled(**given)

        return lambda: cute.jit(run)(np.zeros((8, 32), np.float32))

    def view(shape=(8, 32), **options):
        def run(x: cute.Tensor):
            cuda.create_tensor_map_tiled_from_view(x, **options)

        return lambda: cute.jit(run)(cute.runtime.from_dlpack(np.zeros(shape, np.float32), assumed_align=16))

    def device(body):
        return lambda: on_device(body, np.zeros(64, np.float32), block=32)

    def shared():
        return cutlass.Array(cutlass.Float32, 32, space=SMEM)

    cases = [
        (device(lambda x: prims.barrier_cta_red(True, kind="xor")), r"has no kind 'xor'[\s\S]*and, or or popc"),
        (device(lambda x: prims.mbarrier_init(x, 1)), "mbarrier_init takes a pointer to shared memory"),
        (device(lambda x: prims.ldmatrix(shared(), 3, prims.MMALayout.ROW)), r"ldmatrix of 3 matrices"),
        (device(lambda x: prims.cp_async_shared_global(shared(), x, 8, "cg")), r"cp.async.cg of 8 bytes"),
        (device(lambda x: prims.cp_async_shared_global(shared(), shared(), 16)), "takes a pointer to global memory"),
        (
            device(
                lambda x: prims.shfl_sync(-1, cutlass.Int64(1), 1, 0, prims.Shfl.UP, return_value_and_is_valid=True)
            ),
            "shfl_sync of Int64 with a clamp of run time or its validity",
        ),
        (
            device(lambda x: prims.cp_async_bulk_tensor_global_shared_cta(x, shared(), (0, 0))),
            "a copy of a box takes a tensor map, not Tensor",
        ),
        (maps(global_strides=[]), "a tensor map has a stride for each mode but the first"),
        (maps(box_dims=[512, 8]), "no tensor map has this box"),
        (view(box_dims=(8,)), "a box has an extent for each mode of the tensor"),
        (view(box_dims=(8, 32), stride_order=(0, 0)), "stride_order names each mode of the tensor once"),
        (view(box_dims=(8, 32), stride_order=(0, 1)), "the first mode of a tensor map is contiguous"),
        (
            device(lambda x: cuda.create_tensor_map_tiled_from_view(x, box_dims=(32,))),
            "a tensor map is made in a kernel",
        ),
    ]
    for run, text in cases:
        with pytest.raises(CompileError, match=text):
            run()
