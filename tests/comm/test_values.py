"""What collectives are given and give: several values, vectors, special numbers, masks, votes; and what they refuse."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.comm import cases
from tilewright import CompileError, Float32, Int32, Int64

arch = cute.arch


def of_block(body, x, count, out=None, block=(64, 1, 1), **options):
    return cases.rows(lambda v, _: body(v), x, count, out, block=block, **options)


# Several values


def test_several_types_share_one_exchange():
    """An integer, a float and a vector, each with an operation of its own."""

    def body(x):
        vector = cute.TensorSSA.from_elements([x, x * 2.0])
        count, (most, pair) = cute.block_allreduce((Int64(1), (x, vector)), ("add", "max"))
        return [Float32(count), most, pair[0], pair[1]]

    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    found, compiled = of_block(body, x, 4, block=(128, 1, 1))
    np.testing.assert_array_equal(found[:, 0], [128, x.max(), x.max(), 2 * x.max()])
    assert cases.equal_bits(found[1])
    assert compiled.stages["ptx"].count("bar.sync") == 1


def test_a_list_gives_a_list_and_a_vector_a_vector():
    def body(x):
        both = cute.warp_allreduce([x, x + 1], "min")
        assert isinstance(both, list)
        vector = cute.warp_scan(cute.TensorSSA.from_elements([x, x]), "max")
        assert isinstance(vector, cute.TensorSSA) and vector.size == 2
        return [*both, vector[1]]

    x = np.arange(64, dtype=np.int32)[::-1].copy()
    found, _ = of_block(body, x, 3)
    np.testing.assert_array_equal(found[0], np.repeat([32, 0], 32))
    np.testing.assert_array_equal(found[1], np.repeat([33, 1], 32))
    np.testing.assert_array_equal(found[2], np.repeat([63, 31], 32))


def test_python_numbers_and_operations_of_the_language():
    def body(x):
        return [
            x * 0 + cute.block_allreduce(1),
            cute.block_allreduce(x, cute.ReductionOp.MAX),
            cute.warp_reduce(x, "sum"),
        ]

    found, _ = of_block(body, np.arange(64, dtype=np.int32), 3)
    np.testing.assert_array_equal(found[:, 0], [64, 63, 496])


# Special numbers, as NumPy has them

_SPECIAL = (
    [-0.0] * 64,
    [0.0] + [-0.0] * 63,
    [np.nan] + [1.0] * 63,
    [1.0] * 40 + [np.nan] * 2 + [-np.inf] * 22,
    [np.inf] * 3 + [1.0] * 61,
    [np.inf, -np.inf] + [0.0] * 62,
)


@pytest.mark.parametrize("dtype", cases.FLOATS, ids=cases.name_of)
def test_nan_infinities_and_zeros(dtype):
    def body(x):
        ops = ("add", "mul", "min", "max")
        return [*cute.block_allreduce((x,) * 4, ops), *cute.warp_allreduce((x,) * 4, ops)]

    x = np.array(_SPECIAL, dtype).reshape(-1)
    found, _ = of_block(body, x, 8, grid=(len(_SPECIAL), 1, 1))
    for number, row in enumerate(np.array(_SPECIAL, dtype)):
        seen = found[:, number * 64 : number * 64 + 64]
        for place, op in enumerate(("add", "mul", "min", "max")):
            for first, width in ((0, 64), (4, 32)):
                group = row if width == 64 else row[:32]
                got = seen[first + place][:width]
                with np.errstate(invalid="ignore"):
                    wanted = cases.UFUNCS[op].reduce(group)
                assert cases.equal_bits(got), (op, row[:4])
                np.testing.assert_array_equal(np.float64(got[0]), np.float64(wanted))
                if op == "add" and wanted == 0:
                    assert np.signbit(got[0]) == np.signbit(group).all()


def test_nans_of_several_payloads_are_one_nan_everywhere():
    payloads = np.array(
        [0x7FF8000000000001, 0x7FF8000000000002, 0xFFF8000000000003, 0x3FF0000000000000] * 16, np.uint64
    )
    found, _ = of_block(
        lambda x: [cute.block_allreduce(x), cute.warp_allreduce(x, "max")], payloads.view(np.float64), 2
    )
    assert np.isnan(found).all()
    assert cases.equal_bits(found[0]) and cases.equal_bits(found[1])


def test_products_before_a_sum_are_not_fused_into_it():
    """Else lanes would round `x * y + other` in different ways."""
    x = np.random.default_rng(4).standard_normal(64).astype(np.float32)
    found, compiled = of_block(lambda v: [cute.block_allreduce(v * v)], x, 1)
    assert cases.equal_bits(found[0])
    assert "fma" not in compiled.stages["ptx"]


def test_exclusive_scans_begin_with_what_changes_nothing():
    def body(x):
        ops = ("add", "mul", "min", "max")
        return [*cute.block_scan((x,) * 4, ops, exclusive=True), *cute.warp_scan((x,) * 4, ops, exclusive=True)]

    found, _ = of_block(body, np.full(64, -0.0, np.float32), 8)
    np.testing.assert_array_equal(found[:, 0], [0, 1, np.inf, -np.inf] * 2)
    assert not np.signbit(found[[0, 4], 0]).any()


# Masks and votes


@pytest.mark.parametrize("mask", (0x1, 0x80000000, 0x0F0F1234, 0xFFFF0000, 0x00FFFF00, 0xFFFFFFFF))
@pytest.mark.parametrize("at_run_time", (False, True))
@pytest.mark.parametrize("width", (32, 8))
def test_any_lanes(mask, at_run_time, width):
    """Lanes of a mask alone call; others do something else."""

    @cute.jit
    def body(x):
        lane = arch.lane_idx()
        bits = cutlass.Uint32(mask)
        if cutlass.const_expr(at_run_time):
            bits = cutlass.Uint32(arch.vote_ballot_sync((bits >> cutlass.Uint32(lane)) & 1 != 0))
        chosen = bits if at_run_time else mask
        total, running, before = x * 0, x * 0, x * 0
        if (bits >> cutlass.Uint32(lane)) & 1 != 0:
            total = cute.warp_allreduce(x, "add", width, chosen)
            running = cute.warp_scan(x, "add", False, width, chosen)
            before = cute.warp_scan(x, "add", True, width, chosen)
        return [total, running, before]

    x = np.random.default_rng(2).integers(-100, 100, 32).astype(np.float32)
    found, _ = of_block(body, x, 3, block=(32, 1, 1))
    wanted = np.zeros((3, 32), np.float32)
    for first in range(0, 32, width):
        lanes = [lane for lane in range(first, first + width) if mask >> lane & 1]
        sums = np.cumsum(x[lanes])
        for place, lane in enumerate(lanes):
            wanted[:, lane] = sums[-1], sums[place], sums[place] - x[lane]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("threads", "width"), ((64, 32), (64, 8), (40, 32), (20, 4), (70, 16)))
def test_votes_of_lanes(threads, width):
    def body(x):
        odd = x % 2 != 0
        return [
            Int32(cute.warp_any(x > 50, width)), Int32(cute.warp_all(x < 60, width)),
            Int32(cute.warp_ballot(odd, width)), Int32(cute.warp_match(x // 16, width)),
        ]  # fmt: skip

    x = np.random.default_rng(3).integers(0, 64, threads).astype(np.int32)
    found, _ = of_block(body, x, 4, block=(threads, 1, 1))
    for thread in range(threads):
        first = thread // width * width
        group = x[first : min(first + width, threads)]
        lanes = 1 << (np.arange(len(group), dtype=np.uint64) + np.uint64(first % 32))
        bits = [int(lanes[group % 2 != 0].sum()), int(lanes[group // 16 == x[thread] // 16].sum())]
        wanted = [(group > 50).any(), (group < 60).all(), *(np.uint32(number).astype(np.int32) for number in bits)]
        np.testing.assert_array_equal(found[:, thread], wanted)


@pytest.mark.parametrize(
    "dtype", (np.float16, cases.BF16, np.float32, np.float64, np.int64, np.uint8), ids=cases.name_of
)
def test_match_compares_bits(dtype):
    x = np.array([1.25, 1.5, 1.25, 0.0, -0.0, 1.5, 2.0, 2.0] * 4).astype(dtype)
    found, _ = of_block(lambda v: [cutlass.Uint32(cute.warp_match(v))], x, 1, np.uint32, block=(32, 1, 1))
    same = x.view(f"u{x.itemsize}")[:, None] == x.view(f"u{x.itemsize}")[None, :]
    np.testing.assert_array_equal(found[0], (same << np.arange(32, dtype=np.uint64)).sum(1))


@pytest.mark.parametrize("block", ((64, 1, 1), (7, 5, 3), (20, 1, 1)))
def test_votes_of_a_block(block):
    def body(x):
        return [
            Int32(cute.block_any(x > 98)), Int32(cute.block_all(x > 98)), cute.block_count(x % 3 == 0),
            Int32(cute.block_all(x >= 0)), Int32(cute.block_any(x < 0)),
        ]  # fmt: skip

    x = np.random.default_rng(5).integers(0, 100, cases.threads_of(block)).astype(np.int32)
    x[-1] = 99
    found, _ = of_block(body, x, 5, block=block)
    np.testing.assert_array_equal(found[:, 0], [1, 0, (x % 3 == 0).sum(), 1, 0])
    assert (found == found[:, :1]).all()


def test_votes_of_a_cluster_and_barriers():
    def body(x):
        cute.warp_barrier()
        cute.block_barrier()
        cute.cluster_barrier()
        return [Int32(cute.cluster_any(x == 127)), Int32(cute.cluster_all(x == 127)), cute.cluster_reduce(x, "max")]

    found, _ = of_block(body, np.arange(128, dtype=np.int32), 3, grid=(2, 1, 1), cluster=(2, 1, 1))
    np.testing.assert_array_equal(found[:, 0], [1, 0, 127])


# Groups and memory


@pytest.mark.parametrize("threads", (32, 64, 128, 288))
def test_groups_of_warps_of_a_block(threads):
    """Each group by a barrier of its own, side by side."""
    count = threads * 2

    def body(x):
        barrier = arch.thread_idx()[0] // threads + 1
        total, most = cute.block_allreduce((x, x), ("add", "max"), barrier_id=barrier, threads=threads)
        running = cute.block_scan(x, barrier_id=barrier, threads=threads)
        first = cute.block_broadcast(x, threads - 1, barrier_id=barrier, threads=threads)
        return [total, most, running, first, cute.block_count(x > 0, barrier, threads)]

    x = np.random.default_rng(6).integers(-50, 50, count).astype(np.int32)
    found, _ = of_block(body, x, 5, block=(count, 1, 1), run=cases.OnEmulator(range(4)))
    for first in range(0, count, threads):
        group, seen = x[first : first + threads], found[:, first : first + threads]
        for row, number in zip(
            seen[[0, 1, 3, 4]], (group.sum(), group.max(), group[-1], (group > 0).sum()), strict=True
        ):
            assert (row == number).all()
        np.testing.assert_array_equal(seen[2], np.cumsum(group))


def test_a_group_alone_calls():
    @cute.jit
    def body(x):
        total = x
        if arch.warp_idx() >= 4:
            total = cute.block_allreduce(x, threads=128, barrier_id=2)
        return [total]

    x = np.arange(256, dtype=np.int32)
    found, _ = of_block(body, x, 1, block=(256, 1, 1))
    np.testing.assert_array_equal(found[0], np.where(x < 128, x, x[128:].sum()))


def test_memory_of_the_caller_is_used_again():
    def body(x):
        memory = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int8, 64, 16)
        return [cute.block_allreduce(x, "max", memory), *cute.block_allreduce((x, x), "add", smem=memory.iterator)]

    x = np.arange(128, dtype=np.float32)
    found, compiled = of_block(body, x, 3, block=(128, 1, 1), run=cases.OnEmulator(range(4)))
    np.testing.assert_array_equal(found[:, 5], [127, x.sum(), x.sum()])
    assert compiled.smem_bytes(next(iter(compiled.kernels))) == 64


def test_one_barrier_once_and_two_in_a_loop():
    once = of_block(lambda x: [cute.block_allreduce(x)], np.ones(128, np.float32), 1, block=(128, 1, 1))[1]

    @cute.jit
    def in_a_loop(x):
        for _ in cutlass.range(4, unroll=1):
            x = cute.block_allreduce(x) * 0.5
        return [x]

    often = of_block(in_a_loop, np.ones(128, np.float32), 1, block=(128, 1, 1))[1]
    assert [item.stages["ptx"].count("bar.sync") for item in (once, often)] == [1, 2]


def test_integers_of_a_warp_take_one_instruction():
    def body(x):
        return [cute.warp_allreduce(x, op) for op in ("add", "min", "max", "and", "or", "xor")]

    for dtype in (np.int32, np.uint8):
        ptx = of_block(body, np.ones(32, dtype), 6, block=(32, 1, 1))[1].stages["ptx"]
        assert (ptx.count("redux.sync"), ptx.count("shfl")) == (6, 0)


# What is refused


def refused(body, block=(64, 1, 1), **options):
    with pytest.raises(CompileError) as raised:
        of_block(lambda x: [body(x)], np.ones(cases.threads_of(block), np.float32), 1, block=block, **options)
    assert str(raised.value.location).partition(":")[0].endswith("test_values.py")
    return str(raised.value)


@pytest.mark.parametrize(
    ("body", "text"),
    (
        (lambda x: cute.warp_allreduce(x, "median"), "no collective folds with 'median'"),
        (lambda x: cute.block_allreduce(x, "xor"), "xor of a Float32"),
        (lambda x: cute.block_allreduce(x > 0, "add"), "add of a Boolean"),
        (lambda x: cute.block_allreduce(cutlass.Float8E4M3FN(x)), "collectives take no Float8E4M3FN"),
        (lambda x: cute.block_allreduce("x"), "a collective takes numbers, not a str"),
        (lambda x: cute.block_allreduce((x, x), ("add",)), "1 operations for 2 values"),
        (lambda x: cute.block_allreduce(x, ("add", "max")), "2 operations for 1 value"),
        (lambda x: cute.warp_allreduce(x, width=12), "there are no groups of 12 lanes"),
        (lambda x: cute.warp_allreduce(x, mask=0), "mask names no lane"),
        (lambda x: cute.warp_allreduce(x, mask="all"), "mask is 'all'"),
        (lambda x: cute.warp_reduce(x, width=8, dst=8), "there is no lane 8 in groups of 8"),
        (lambda x: cute.warp_broadcast(x, 32), "there is no lane 32 in groups of 32"),
        (lambda x: cute.block_broadcast(x, 64), "there is no thread 64 in a group of 64"),
        (lambda x: cute.block_allreduce(x, threads=48), "a block has no groups of 48 threads"),
        (lambda x: cute.block_allreduce(x, threads=128, barrier_id=1), "no group of 128 threads in a block of 64"),
        (lambda x: cute.block_allreduce(x, threads=32), "a group of 32 threads meets at barrier 0"),
        (lambda x: cute.block_allreduce(x, smem=x), "smem is shared memory at a multiple of 16 bytes"),
        (lambda x: cute.cluster_allreduce(x, mode="throw"), "there is no mode 'throw'"),
        (lambda x: cute.cluster_broadcast(x, 1), "there is no block 1 in a cluster of 1"),
        (lambda x: cute.grid_allreduce(x, "add", None), "grid_allreduce in a launch that is not cooperative"),
    ),
)  # fmt: skip
def test_wrong_arguments_name_the_users_line(body, text):
    assert text in refused(body)


def test_more_wrong_arguments():
    def small(x):
        return cute.block_allreduce(x, smem=cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int8, 8, 16))

    assert "smem has 8 bytes, and 16 are needed" in refused(small)
    assert "grid_allreduce takes a tensor or a pointer in global memory" in refused(
        lambda x: cute.grid_allreduce(x), cooperative=True
    )


def test_groups_of_blocks_meet_apart():
    """Each group of three blocks at a counter of its own."""

    def body(v, work):
        total, least = cute.grid_allreduce((v, cutlass.Float64(v)), ("add", "min"), work, blocks=3)
        return [total, Int32(least), cute.grid_broadcast(v, work, 2, blocks=3)]

    x = np.random.default_rng(9).integers(-40, 40, 9 * 64).astype(np.int32)
    words = cute.grid_workspace(9, 2, groups=3)
    found, _ = cases.rows(
        body, x, 3, grid=(9, 1, 1), block=(64, 1, 1), cooperative=True, work=words, run=cases.OnEmulator(range(4))
    )
    for first in range(0, len(x), 192):
        group = x[first : first + 192]
        assert (found[:, first : first + 192] == np.array([[group.sum()], [group.min()], [group[128]]])).all()
    with pytest.raises(CompileError, match="there are no groups of 4 blocks in a grid of 9"):
        cases.rows(lambda v, work: [cute.grid_allreduce(v, "add", work, 4)], x, 1, grid=(9, 1, 1), block=(64, 1, 1),
                   cooperative=True, work=words)  # fmt: skip


def test_a_barrier_of_the_grid_needs_a_cooperative_launch():
    @cute.kernel
    def kernel(state: cute.Tensor):
        cute.grid_barrier(state)

    @cute.jit
    def launch(state: cute.Tensor):
        kernel(state).launch(grid=(4, 1, 1), block=(32, 1, 1))

    with pytest.raises(CompileError, match="grid_barrier in a launch that is not cooperative") as raised:
        cute.compile(launch, np.zeros(1, np.int32))
    assert "cooperative=True" in str(raised.value)
