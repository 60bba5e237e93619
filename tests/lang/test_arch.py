"""What threads know and share: ids, barriers, shuffles, votes, warp reductions, printing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Boolean, Float16, Float32, Float64, Int8, Int32, Int64, Uint32
from tilewright.cute import arch

LANES = np.arange(32)


def run(body, *arrays, block=32, grid=1, **launch):
    kernel = cute.kernel(body)

    @cute.jit
    def host(arrays: tuple):
        kernel(*arrays).launch(grid=grid, block=block, **launch)

    cute.compile(host, arrays)(arrays)
    return arrays if len(arrays) > 1 else arrays[0]


def test_ids_in_three_dimensions():
    def body(out):
        x, y, z = arch.thread_idx()
        bx, by, bz = arch.block_idx()
        dx, dy, dz = arch.block_dim()
        gx, gy, gz = arch.grid_dim()
        block = bx + gx * (by + gy * bz)
        linear = block * 32 + x + dx * (y + dy * z)
        values = (x, y, z, bx, by, bz, dx, dy, dz, gx, gy, gz, arch.lane_idx(), arch.warp_idx())
        for k in cutlass.range_constexpr(len(values)):
            out[linear, k] = values[k]

    out = run(body, np.full((2 * 3 * 2 * 32, 14), -1, np.int32), block=(4, 4, 2), grid=(2, 3, 2))
    for bz in range(2):
        for by in range(3):
            for bx in range(2):
                for t in range(32):
                    row = out[(bx + 2 * (by + 3 * bz)) * 32 + t]
                    wanted = [t % 4, t // 4 % 4, t // 16, bx, by, bz, 4, 4, 2, 2, 3, 2, t, 0]
                    assert row.tolist() == wanted


def test_second_spellings():
    def body(out):
        x, y, _ = arch.thread_idx()
        linear = x + 16 * y
        values = (
            arch.tid_x() - x,
            arch.tid_y() - y,
            arch.tid_z(),
            arch.lane_id() - arch.lane_idx(),
            arch.warp_id(),
            arch.block_idx_x(),
            arch.block_idx_y(),
            arch.block_idx_z(),
            cute.block_idx_x(),
            arch.shfl_sync(x, 3) - arch.shuffle_sync(x, 3),
        )
        arch.warp_sync()
        arch.warp_sync_op()
        for k in cutlass.range_constexpr(len(values)):
            out[linear, k] = values[k]

    out = run(body, np.full((64, 10), -1, np.int32), block=(16, 4, 1), grid=1)
    wanted = np.zeros((64, 10), np.int32)
    wanted[:, 4] = np.arange(64) // 32
    assert (out == wanted).all()


def test_clusters():
    @cute.kernel
    def kernel(out: cute.Tensor):
        block = arch.block_idx()[0]
        values = (
            arch.cluster_idx()[0],
            arch.block_in_cluster_idx()[0],
            arch.block_idx_in_cluster(),
            arch.cluster_size(),
            arch.block_in_cluster_dim()[0],
            arch.cluster_dim()[0],
        )
        arch.fence_acq_rel_cluster()
        for k in cutlass.range_constexpr(len(values)):
            out[block, k] = values[k]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=8, block=1, cluster=(4, 1, 1))

    out = np.full((8, 6), -1, np.int32)
    executor = cute.compile(host, out)
    executor(out)
    assert out.tolist() == [[b // 4, b % 4, b % 4, 4, 4, 2] for b in range(8)]
    assert ".reqnctapercluster" in executor.stages["ptx"] or "cluster_dim" in executor.stages["nvvm"]


SHUFFLES = {
    "idx": (lambda v, k: arch.shuffle_sync(v, k), lambda lane, k: k),
    "bfly": (lambda v, k: arch.shuffle_sync_bfly(v, k), lambda lane, k: lane ^ k),
    "down": (lambda v, k: arch.shuffle_sync_down(v, k), lambda lane, k: np.where(lane + k < 32, lane + k, lane)),
    "up": (lambda v, k: arch.shuffle_sync_up(v, k), lambda lane, k: np.where(lane - k >= 0, lane - k, lane)),
}


@pytest.mark.parametrize("kind", SHUFFLES)
def test_shuffles(kind):
    shuffle, source = SHUFFLES[kind]
    steps = (1, 5, 16, 31)

    def body(out):
        lane = arch.lane_idx()
        for row in cutlass.range_constexpr(len(steps)):
            out[row, lane] = shuffle(lane * 3, steps[row])
        out[len(steps), lane] = arch.shuffle_sync_op(lane * 3, 5, kind=kind)

    out = run(body, np.zeros((5, 32), np.int32))
    for row, step in enumerate((*steps, 5)):
        assert (out[row] == 3 * source(LANES, step)).all()


def test_shuffles_of_every_width():
    kinds = {
        Boolean: bool,
        Int8: np.int8,
        Float16: np.float16,
        Float32: np.float32,
        Int64: np.int64,
        Float64: np.float64,
    }
    for dtype, kind in kinds.items():

        def body(x, out):
            lane = arch.lane_idx()
            out[lane] = arch.shuffle_sync_bfly(x[lane], 31)

        x = (LANES * 2.5 - 7).astype(kind) if kind is not bool else LANES % 3 == 0
        _, out = run(body, x, np.zeros_like(x))
        assert (out == x[::-1]).all(), dtype


def test_shuffle_of_a_vector():
    def body(out):
        lane = arch.lane_idx()
        fragment = cute.make_rmem_tensor((2,), Float32)
        fragment[0], fragment[1] = Float32(lane), Float32(lane) * 10.0
        moved = arch.shuffle_sync_bfly(fragment.load(), 1)
        out[lane, 0], out[lane, 1] = moved[0], moved[1]

    out = run(body, np.zeros((32, 2), np.float32))
    assert (out[:, 0] == (LANES ^ 1)).all() and (out[:, 1] == (LANES ^ 1) * 10).all()


def test_votes():
    def body(out):
        lane = arch.lane_idx()
        out[0, lane] = Int32(arch.vote_any_sync(lane == 5))
        out[1, lane] = Int32(arch.vote_any_sync(lane > 99))
        out[2, lane] = Int32(arch.vote_all_sync(lane < 32))
        out[3, lane] = Int32(arch.vote_all_sync(lane < 31))
        out[4, lane] = Int32(arch.vote_uni_sync(lane > 99))
        out[5, lane] = Int32(arch.vote_uni_sync(lane > 9))
        out[6, lane] = arch.vote_ballot_sync(lane % 3 == 0)

    out = run(body, np.zeros((7, 32), np.int32))
    ballot = sum(1 << lane for lane in range(0, 32, 3))
    assert [set(row) for row in out.tolist()] == [{1}, {0}, {1}, {0}, {1}, {0}, {ballot}]


@pytest.mark.parametrize(
    "dtype, kind", [(Int32, np.int32), (Uint32, np.uint32), (Float32, np.float32), (Float64, np.float64)]
)
@pytest.mark.parametrize("width", [32, 8, 1])
def test_warp_reductions(dtype, kind, width):
    def body(x, out):
        lane = arch.lane_idx()
        out[0, lane] = arch.warp_reduction_sum(x[lane], threads_in_group=width)
        out[1, lane] = arch.warp_reduction_max(x[lane], threads_in_group=width)
        out[2, lane] = arch.warp_reduction_min(x[lane], threads_in_group=width)
        out[3, lane] = arch.warp_reduction(x[lane], lambda a, b: a + b, threads_in_group=width)

    x = (LANES * 7 % 32 + (0 if kind is np.uint32 else -10)).astype(kind)
    _, out = run(body, x, np.zeros((4, 32), kind))
    groups = x.reshape(-1, width)
    for row, fold in zip(out, (np.sum, np.max, np.min, np.sum), strict=True):
        assert (row.reshape(-1, width) == fold(groups, axis=1)[:, None]).all()


def test_sums_of_32_bit_integers_take_one_instruction():
    def body(out):
        out[arch.lane_idx()] = arch.warp_reduction_sum(arch.lane_idx())

    kernel = cute.kernel(body)

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=32)

    executor = cute.compile(host, np.zeros(32, np.int32), arch="sm_80")
    assert "redux.sync.add.s32" in executor.stages["ptx"] and "REDUX" in executor.stages["sass"]
    assert "shfl" in cute.compile(host, np.zeros(32, np.int32), arch="sm_75").stages["ptx"]


def test_barriers():
    def body(out):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Int32, cute.make_layout(64))
        thread = arch.thread_idx()[0]
        shared[thread] = thread
        arch.barrier()
        value = shared[63 - thread]
        arch.barrier(barrier_id=1, number_of_threads=64)
        shared[thread] = value + 100
        arch.sync_threads()
        if thread < 32:
            arch.barrier_arrive(barrier_id=2, number_of_threads=64)
        else:
            arch.barrier(barrier_id=2, number_of_threads=64)
        arch.fence_acq_rel_cta()
        arch.fence_acq_rel_gpu()
        arch.fence_acq_rel_sys()
        out[thread] = shared[(thread + 1) % 64]

    out = run(body, np.zeros(64, np.int32), block=64)
    assert out.tolist() == [63 - (t + 1) % 64 + 100 for t in range(64)]


def test_a_missing_barrier_is_reported():
    def body(out):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Int32, cute.make_layout(64))
        thread = arch.thread_idx()[0]
        shared[thread] = thread
        out[thread] = shared[63 - thread]

    with pytest.raises(cutlass.EmulationError, match=r"(?i)race") as caught:
        run(body, np.zeros(64, np.int32), block=64)
    assert caught.value.location.file == __file__


def test_uniform_values_and_extremes():
    def body(out):
        lane = arch.lane_idx()
        out[0, lane] = Float32(arch.make_warp_uniform(lane + 3))
        out[1, lane] = arch.fmax(Float32(lane), 15.5)
        out[2, lane] = arch.fmin(lane, 15)
        out[3, lane] = cutlass.max(Float32(lane), Float32(math.nan))
        out[4, lane] = Float32(arch.dynamic_smem_size())

    out = run(body, np.zeros((5, 32), np.float32), smem=2048)
    assert (out[0] == 3).all() and (out[1] == np.maximum(LANES, 15.5)).all() and (out[2] == np.minimum(LANES, 15)).all()
    assert (out[3] == LANES).all() and (out[4] == 2048).all()


# Printing.


def test_printf_on_the_device(capsys):
    def body(x):
        i = arch.thread_idx()[0]
        if i == 2:
            cute.printf("i = {}, x = {}, half {}", i, x[i], Float16(0.5))
            cute.printf("%d %5.2f %% %s", i, x[i], "text")
            cute.printf(i, i + 1)
            cute.printf("big {} unsigned {} flag {}", Int64(1) << 40, Uint32(0xFFFFFFFF), i > 1)

    run(body, np.array([0, 1, 2.5], np.float32), block=3)
    assert capsys.readouterr().out.splitlines() == [
        "i = 2, x = 2.500000, half 0.500000",
        "2  2.50 % text",
        "2 3",
        "big 1099511627776 unsigned 4294967295 flag 1",
    ]


def test_printf_on_the_host(capfd):
    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        cute.printf("n = {}, x[1] = {}", n, x[1])
        layout = cute.make_layout((n, 4), stride=(4, 1))
        cute.printf("layout {} of size {}", layout, cute.size(layout))
        cute.printf("static {} tensor {}", cute.make_layout((2, 3)), x)
        cute.printf("tuple {} value {}", (n, 2), x.load() if cutlass.const_expr(cute.is_static(x.layout)) else n)

    x = np.array([1, 2, 3], np.float32)
    cute.compile(host, x, 5)(x, 5)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "n = 5, x[1] = 2.000000"
    assert lines[1] == "layout (5,4):(4,1) of size 20"
    assert lines[2].startswith("static (2,3):(1,2) tensor tensor(0x") and lines[2].endswith(" o (3):(1))")
    assert lines[3] == "tuple (5,2) value 5"


def test_print_at_trace_time(capsys):
    @cute.kernel
    def kernel(x: cute.Tensor):
        print("thread", arch.thread_idx()[0], "tensor", x)
        print(f"layout {x.layout}")

    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        print(n, n + 1, cutlass.Float32(1.5), x.shape, cute.size(x))
        print(cute.make_layout((n, 2), stride=(2, 1)))
        kernel(x).launch(grid=1, block=1)

    x = np.zeros((4, 8), np.float32)
    executor = cute.compile(host, x, 3)
    assert capsys.readouterr().out.splitlines() == [
        "? ? ? (Int32(?), Int32(?)) ?",
        "(?,2):(2,1)",
        "thread ? tensor tensor<ptr<f32, gmem> o (?,?):(?,1)>",
        "layout (?,?):(?,1)",
    ]
    executor(x, 3)
    assert capsys.readouterr().out == ""
