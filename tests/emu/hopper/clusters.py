"""Clusters: tiles that go to several blocks, memory of other blocks, stores and copies into it."""

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.hopper.faults import Case, slip
from tilewright import Float16, Float32, Int16, Int32, Int64
from tilewright.cute.nvgpu import cpasync
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
ROWS = LayoutEnum.ROW_MAJOR
TILE, STAGES, TILES, BLOCKS = (16, 64), 2, 4, 2
BYTES = 16 * 64 * 2


def _meet():
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def multicast_kernel(load: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr,
                     slip: cutlass.Constexpr):  # fmt: skip
    """Warp 2 of each block copies half of every tile to both; 64 threads of each block add the tiles up."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    tiles = cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)
    full = cutlass.utils.SmemAllocator().allocate_array(Int64, 2 * STAGES)
    empty = full + STAGES
    if thread == 0:
        for stage in cutlass.range_constexpr(STAGES):
            arch.mbarrier_init(full + stage, 1)
            arch.mbarrier_init(empty + stage, 2 if slip == "empty count" else 4)  # multicast: init
        if cutlass.const_expr(slip != "init fence"):
            arch.mbarrier_init_fence()
    if cutlass.const_expr(slip == "block sync"):
        arch.sync_threads()
    else:
        arch.cluster_arrive_relaxed()
        arch.cluster_wait()
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tiles, cute.local_tile(source, TILE, (None, 0)))]
    part = 0 if slip == "same part" else rank
    inside, outside = cpasync.tma_partition(load, part, cute.make_layout(BLOCKS), *groups)
    if warp == 2:
        for step in cutlass.range(TILES):
            stage, phase = step % STAGES, (step // STAGES) & 1
            arch.mbarrier_wait(empty + stage, phase ^ 1)  # multicast: acquire
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(
                    full + stage, BYTES // 2 if slip == "half the bytes" else BYTES
                )  # multicast: expect
            mask = {"other mask": Int16(1), "three blocks": Int16(7)}.get(slip, Int16(3))
            if cutlass.const_expr(slip == "own mask"):
                mask = Int16(Int32(1) << rank)
            cute.copy(
                load, outside[None, step], inside[None, stage], tma_bar_ptr=full + stage, mcast_mask=mask
            )  # multicast: copy
    else:
        total = Float32(0)
        for step in cutlass.range(TILES):
            stage, phase = step % STAGES, (step // STAGES) & 1
            if cutlass.const_expr(slip != "wait"):
                arch.mbarrier_wait(full + stage, phase)  # multicast: wait
            for row in cutlass.range_constexpr(TILE[0]):
                total += Float32(tiles[row, thread, stage])  # multicast: read
            arch.sync_warp()
            if arch.lane_idx() < BLOCKS:
                if cutlass.const_expr(slip == "own empty"):
                    arch.mbarrier_arrive(empty + stage)  # multicast: release
                elif cutlass.const_expr(slip == "one releases"):
                    if rank == 0:
                        arch.mbarrier_arrive(empty + stage, arch.lane_idx())
                else:
                    arch.mbarrier_arrive(empty + stage, arch.lane_idx())  # multicast: release
        out[thread, rank] = total  # multicast: result
    if cutlass.const_expr(slip != "early exit"):
        _meet()


@cute.jit
def multicast(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout_epi(Float16, ROWS, TILE, STAGES)
    one = cute.slice_(layout, (None, None, 0))
    op = cpasync.CopyBulkTensorTileG2SMulticastOp()
    load, source = cpasync.make_tiled_tma_atom(op, a, one, TILE, num_multicast=BLOCKS)
    multicast_kernel(load, source, out, layout, slip).launch(grid=BLOCKS, block=96, cluster=(BLOCKS, 1, 1))


def _rows():
    a = np.random.default_rng(3).integers(-8, 9, (TILES * TILE[0], TILE[1])).astype(np.float16)
    return [a, np.zeros((64, BLOCKS), np.float32)], {1: np.repeat(a.astype(np.float32).sum(axis=0)[:, None], BLOCKS, 1)}


MULTICAST = Case("multicast", "blocks of a cluster copy halves of tiles to each other", multicast, _rows, (
    slip("init fence", "no fence after `mbarrier_init`, a relaxed arrival at the cluster's barrier", "acquire", "race"),
    slip("block sync", "`sync_threads` instead of the cluster's barrier after `mbarrier_init`", "init copy", "race"),
    slip("own mask", "the multicast mask names the own block alone", "acquire", "deadlock"),
    slip("other mask", "the multicast mask names block 0 alone", "wait", "deadlock"),
    slip("three blocks", "the multicast mask names a block that the cluster does not have", "copy", "cluster"),
    slip("half the bytes", "only the bytes of the own half are expected", "read", "race"),
    slip("same part", "both blocks copy the same half", "copy", "race"),
    slip("empty count", "\"empty\" does not count the other block's readers", "wait", "deadlock"),
    slip("own empty", "buffers are released to the own block alone", "copy", "race"),
    slip("one releases", "one of two blocks releases", "wait", "deadlock"),
    slip("wait", "no wait for \"full\"", "result", "uninitialised"),
    slip("early exit", "blocks end while the other one still tells them", "release", "race"),
))  # fmt: skip


@cute.kernel
def neighbour_kernel(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    """Each block reads what its neighbour has, and writes what the neighbour then reads."""
    thread, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    held = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((64, 2)), 16)
    other = 2 if slip == "rank" else 1 - rank
    there = cute.make_tensor(arch.map_dsmem_ptr(held.iterator, other), held.layout)  # neighbour: map
    held[thread, 0] = a[thread, rank]  # neighbour: write
    if cutlass.const_expr(slip == "block meeting"):
        arch.sync_threads()
    elif cutlass.const_expr(slip == "relaxed"):
        arch.cluster_arrive_relaxed()
        arch.cluster_wait()
    elif cutlass.const_expr(slip == "no arrival"):
        arch.cluster_wait()  # neighbour: wait
    elif cutlass.const_expr(slip != "no meeting"):
        _meet()
    there[thread, 1] = there[63 - thread, 0] + 1  # neighbour: there
    if cutlass.const_expr(slip == "second meeting"):
        arch.sync_threads()
    elif cutlass.const_expr(slip != "no second meeting"):
        _meet()
    out[thread, rank] = held[63 - thread, 1]  # neighbour: here
    if cutlass.const_expr(slip != "early exit"):
        _meet()
    elif rank == 1:
        there[thread, 0] = Float32(0)  # neighbour: last


@cute.jit
def neighbour(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    neighbour_kernel(a, out, slip).launch(grid=2, block=64, cluster=(2, 1, 1))


def _columns():
    a = np.arange(128, dtype=np.float32).reshape(64, 2)
    return [a, np.zeros_like(a)], {1: a + 1}


NEIGHBOUR = Case("neighbour", "`map_dsmem_ptr`: reads and writes of the neighbour's memory", neighbour, _columns, (
    slip("no meeting", "no cluster barrier before the neighbour's memory is read", "there write", "race"),
    slip("block meeting", "`sync_threads` instead of the cluster's barrier", "there write", "race"),
    slip("relaxed", "the arrival at the cluster's barrier is relaxed", "there", "race"),
    slip("no arrival", "`cluster_wait` without an arrival", "wait", "barrier"),
    slip("rank", "a block that the cluster does not have", "map", "cluster"),
    slip("no second meeting", "no cluster barrier before what the neighbour wrote is read", "here", "race"),
    slip("second meeting", "`sync_threads` before what the neighbour wrote is read", "here", "race"),
    slip("early exit", "a block ends while the other one writes to it", "last", "race"),
))  # fmt: skip


@cute.kernel
def sent_kernel(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    """Each thread sends a number to the neighbour, whose mbarrier counts the bytes."""
    thread, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    held = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(64), 16)
    told = cutlass.utils.SmemAllocator().allocate_array(Int64, 2)
    if thread == 0:
        arch.mbarrier_init(told, 1)
        arch.mbarrier_init(told + 1, 1)
        arch.mbarrier_init_fence()
        count = {"few bytes": 128, "many bytes": 512}.get(slip, 256)
        if cutlass.const_expr(slip != "no expectation"):
            arch.mbarrier_arrive_and_expect_tx(told, count)
    if cutlass.const_expr(slip != "no meeting"):
        _meet()
    barrier = told + 1 if slip == "other barrier" else told
    arch.store_async_dsmem(held.iterator + thread, a[thread, rank], barrier, 1 - rank)  # sent: send
    if cutlass.const_expr(slip != "wait"):
        arch.mbarrier_wait(told, 1 if slip == "phase" else 0)  # sent: wait
    out[thread, rank] = held[63 - thread]  # sent: read
    if cutlass.const_expr(slip != "early exit"):
        _meet()


@cute.jit
def sent(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    sent_kernel(a, out, slip).launch(grid=2, block=64, cluster=(2, 1, 1))


def _exchanged():
    a = np.arange(128, dtype=np.float32).reshape(64, 2)
    return [a, np.zeros_like(a)], {1: a[::-1, ::-1]}


SENT = Case("sent", "`store_async_dsmem`: numbers sent to a neighbour", sent, _exchanged, (
    slip("no meeting", "no cluster barrier after `mbarrier_init`", "send", "mbarrier race"),
    slip("few bytes", "half the bytes are expected", "wait", "deadlock"),
    slip("many bytes", "twice the bytes are expected", "wait", "deadlock"),
    slip("no expectation", "no `expect_tx`", "wait", "deadlock"),
    slip("other barrier", "another barrier is told than is waited for", "wait", "deadlock"),
    slip("wait", "no wait", "read", "race"),
    slip("phase", "the wait has the other parity", "wait", "deadlock"),
))  # fmt: skip

CASES = (MULTICAST, NEIGHBOUR, SENT)
