"""The copy engine: buffers that it fills, buffers that it empties, both after each other."""

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.hopper.faults import Case, slip
from tilewright import Float16, Float32, Int64
from tilewright.cute.nvgpu import cpasync
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
ROWS = LayoutEnum.ROW_MAJOR
TILES, STAGES, TILE = 5, 2, (8, 64)
BYTES = 8 * 64 * 2


def _shared(layout):
    return cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)


def _whole(copy, tiles, source):
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tiles, source)]
    return cpasync.tma_partition(copy, 0, cute.make_layout(1), *groups)


@cute.kernel
def ring_kernel(load: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr,
                slip: cutlass.Constexpr):  # fmt: skip
    """Warp 2 copies tiles, 64 threads add each its column of them up."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    tiles = _shared(layout)
    full = cutlass.utils.SmemAllocator().allocate_array(Int64, 2 * STAGES)
    empty = full + STAGES
    inside, outside = _whole(load, tiles, cute.local_tile(source, TILE, (None, 0)))
    if thread == 0:
        for stage in cutlass.range_constexpr(STAGES):
            arch.mbarrier_init(full + stage, 2 if slip == "full count" else 1)
            arch.mbarrier_init(empty + stage, 65 if slip == "empty count" else 64)
        arch.mbarrier_init_fence()
    if cutlass.const_expr(slip != "init sync"):
        arch.sync_threads()
    if warp == 2:
        for step in cutlass.range(TILES):
            stage, phase = step % STAGES, (step // STAGES) & 1
            if cutlass.const_expr(slip == "empty phase"):
                arch.mbarrier_wait(empty + stage, phase)  # ring: acquire
            elif cutlass.const_expr(slip != "empty wait"):
                arch.mbarrier_wait(empty + stage, phase ^ 1)  # ring: acquire
            if cutlass.const_expr(slip == "all lanes"):
                arch.mbarrier_arrive_and_expect_tx(full + stage, BYTES)  # ring: expect
            else:
                with arch.elect_one():
                    if cutlass.const_expr(slip == "no bytes"):
                        arch.mbarrier_arrive(full + stage)
                    else:
                        told = {"too few bytes": BYTES // 2, "too many bytes": 2 * BYTES}.get(slip, BYTES)
                        arch.mbarrier_arrive_and_expect_tx(full + stage, told)  # ring: expect
            other = (stage + 1) % STAGES if cutlass.const_expr(slip == "other barrier") else stage
            cute.copy(load, outside[None, step], inside[None, stage], tma_bar_ptr=full + other)  # ring: copy
    else:
        total = Float32(0)
        for step in cutlass.range(TILES):
            stage, phase = step % STAGES, (step // STAGES) & 1
            if cutlass.const_expr(slip == "full phase"):
                arch.mbarrier_wait(full + stage, phase ^ 1)  # ring: wait
            elif cutlass.const_expr(slip == "one phase"):
                arch.mbarrier_wait(full + stage, step & 1)  # ring: wait
            elif cutlass.const_expr(slip != "full wait"):
                arch.mbarrier_wait(full + stage, phase)  # ring: wait
            if cutlass.const_expr(slip == "early release"):
                arch.mbarrier_arrive(empty + stage)  # ring: release
            read = (stage + 1) % STAGES if cutlass.const_expr(slip == "other stage") else stage
            for row in cutlass.range_constexpr(TILE[0]):
                total += Float32(tiles[row, thread, read])  # ring: read
            if cutlass.const_expr(slip == "half the warps"):
                if warp == 0:
                    arch.mbarrier_arrive(empty + stage)
            elif cutlass.const_expr(slip not in ("release", "early release")):
                arch.mbarrier_arrive(empty + stage)  # ring: release
        out[thread] = total  # ring: result


@cute.jit
def ring(a: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout_epi(Float16, ROWS, TILE, STAGES)
    one = cute.slice_(layout, (None, None, 0))
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, one, TILE)
    ring_kernel(load, source, out, layout, slip).launch(grid=1, block=96)


def _rows():
    a = np.random.default_rng(3).integers(-8, 9, (TILES * TILE[0], TILE[1])).astype(np.float16)
    return [a, np.zeros(64, np.float32)], {1: a.astype(np.float32).sum(axis=0)}


RING = Case("ring", "tensor copies fill a ring of buffers, mbarriers by hand", ring, _rows, (
    slip("init sync", "no `sync_threads` after `mbarrier_init`", "wait acquire", "mbarrier race"),
    slip("full count", "\"full\" expects two arrivals, and one comes", "acquire", "deadlock"),
    slip("empty count", "\"empty\" expects an arrival too many", "wait", "deadlock"),
    slip("too few bytes", "half the bytes are expected", "acquire", "deadlock"),
    slip("too many bytes", "twice the bytes are expected", "acquire", "deadlock"),
    slip("no bytes", "an arrival without `expect_tx`", "read", "race"),
    slip("all lanes", "32 lanes arrive where one is expected", "expect", "mbarrier"),
    slip("full wait", "no wait for \"full\"", "result", "uninitialised"),
    slip("full phase", "the wait for \"full\" has the other parity", "acquire", "deadlock"),
    slip("one phase", "the parity changes each step, not each round", "acquire", "deadlock"),
    slip("empty wait", "no wait for \"empty\"", "expect copy", "mbarrier race"),
    slip("empty phase", "the producer begins with parity 0", "acquire", "deadlock"),
    slip("release", "buffers are never released", "wait", "deadlock"),
    slip("half the warps", "one of two warps releases", "wait", "deadlock"),
    slip("early release", "a buffer is released before it is read", "copy", "race"),
    slip("other barrier", "the copy tells the barrier of another stage", "read", "race"),
    slip("other stage", "another stage is read than was waited for", "read", "race"),
))  # fmt: skip


@cute.kernel
def store_kernel(store: cute.CopyAtom, target: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr,
                 slip: cutlass.Constexpr):  # fmt: skip
    """64 threads fill buffers, which warp 0 copies to global memory; what the last copy wrote is read at the end."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    tiles = _shared(layout)
    inside, outside = _whole(store, tiles, cute.local_tile(target, TILE, (None, 0)))
    for step in cutlass.range_constexpr(TILES):
        buffer = step % STAGES
        for row in cutlass.range_constexpr(TILE[0]):
            tiles[row, thread, buffer] = Float16(step * 100 + row)  # store: write
        if cutlass.const_expr(slip not in ("fence", "late fence")):
            arch.fence_proxy("async.shared", space="cta")
        if cutlass.const_expr(slip != "write sync"):
            arch.sync_threads()
        if cutlass.const_expr(slip == "late fence"):
            if warp == 1:
                arch.fence_proxy("async.shared", space="cta")
        if warp == 0:
            cute.copy(store, inside[None, buffer], outside[None, step])  # store: copy
            if cutlass.const_expr(slip != "commit"):
                arch.cp_async_bulk_commit_group()
        if cutlass.const_expr(slip == "other warp waits"):
            if warp == 1:
                arch.cp_async_bulk_wait_group(STAGES - 1, read=True)
        elif warp == 0:
            arch.cp_async_bulk_wait_group(STAGES if slip == "reuse" else STAGES - 1, read=True)
        if cutlass.const_expr(slip != "wait sync"):
            arch.sync_threads()
    if warp == 0:
        if cutlass.const_expr(slip not in ("commit", "other warp waits")):
            arch.cp_async_bulk_wait_group(0, read=slip == "read only")
    arch.sync_threads()
    out[thread] = out[thread] + 1  # store: result


@cute.jit
def store(target: cute.Tensor, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout_epi(Float16, ROWS, TILE, STAGES)
    one = cute.slice_(layout, (None, None, 0))
    last = cute.local_tile(target, (1, TILE[1]), (TILES * TILE[0] - 1, 0))
    atom, places = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), target, one, TILE)
    store_kernel(atom, places, cute.make_tensor(last.iterator, cute.make_layout(64)), layout, slip).launch(
        grid=1, block=64
    )


def _filled():
    rows = np.arange(TILES * TILE[0])
    wanted = np.repeat(rows // 8 * 100 + rows % 8, 64).reshape(-1, 64).astype(np.float16)
    wanted[-1] += 1
    return [np.zeros_like(wanted)], {0: wanted}


STORE = Case("store", "tensor copies empty two buffers", store, _filled, (
    slip("fence", "no proxy fence after the writes", "copy", "race"),
    slip("late fence", "the proxy fence stands behind the barrier, in another warp", "copy", "race"),
    slip("write sync", "no barrier between the writes and the copy", "copy", "race uninitialised"),
    slip("commit", "the copies' groups are not committed", "write", "race"),
    slip("reuse", "`wait_group` leaves one group too many", "write", "race"),
    slip("wait sync", "no barrier behind the wait", "write", "race"),
    slip("other warp waits", "another warp waits than the one that copies", "write", "race"),
    slip("read only", "what was stored is read after `wait_group(read=True)`", "result", "race"),
))  # fmt: skip


@cute.kernel
def echo_kernel(load: cute.CopyAtom, source: cute.Tensor, store: cute.CopyAtom, target: cute.Tensor,
                layout: cutlass.Constexpr, slip: cutlass.Constexpr):  # fmt: skip
    """One warp copies tiles through one buffer, and the last one back from where it was stored."""
    tile = _shared(layout)
    full = cutlass.utils.SmemAllocator().allocate_array(Int64, 1)
    with arch.elect_one():
        arch.mbarrier_init(full, 1)
        arch.mbarrier_init_fence()
    arch.sync_warp()
    inside, outside = _whole(load, tile, cute.local_tile(source, TILE, (None, 0)))
    _, away = _whole(store, tile, cute.local_tile(target, TILE, (None, 0)))
    for step in cutlass.range(TILES):
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full, BYTES)
        cute.copy(load, outside[None, step], inside[None, 0], tma_bar_ptr=full)  # echo: load
        if cutlass.const_expr(slip != "load wait"):
            arch.mbarrier_wait(full, 0 if slip == "one parity" else step & 1)  # echo: wait
        cute.copy(store, inside[None, 0], away[None, step])  # echo: store
        arch.cp_async_bulk_commit_group()
        if cutlass.const_expr(slip == "last store wait"):
            if step < TILES - 1:
                arch.cp_async_bulk_wait_group(0, read=True)
        elif cutlass.const_expr(slip != "store wait"):
            arch.cp_async_bulk_wait_group(0, read=True)
    if cutlass.const_expr(slip == "read back"):
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full, BYTES)
        cute.copy(load, outside[None, TILES], inside[None, 0], tma_bar_ptr=full)  # echo: back
        arch.mbarrier_wait(full, TILES & 1)
    elif cutlass.const_expr(slip == "one load more"):
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full, BYTES)
        cute.copy(load, outside[None, 0], inside[None, 0], tma_bar_ptr=full)  # echo: more


@cute.jit
def echo(a: cute.Tensor, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout_epi(Float16, ROWS, TILE, 1)
    one = cute.slice_(layout, (None, None, 0))
    second = cute.domain_offset((TILES * TILE[0], 0), a)
    half = cute.make_tensor(second.iterator, cute.make_layout((TILES * TILE[0], TILE[1]), stride=(TILE[1], 1)))
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, one, TILE)
    store, target = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), half, one, TILE)
    echo_kernel(load, source, store, target, layout, slip).launch(grid=1, block=32)


def _halves():
    a = np.arange(TILES * TILE[0] * TILE[1], dtype=np.float16).reshape(-1, TILE[1])
    return [np.concatenate((a, np.zeros_like(a)))], {0: np.concatenate((a, a))}


ECHO = Case("echo", "tensor copies from and to global memory through one buffer", echo, _halves, (
    slip("load wait", "no wait between the load and the store", "store", "race"),
    slip("one parity", "the wait has the same parity in each step", "wait", "deadlock"),
    slip("store wait", "no `wait_group` before the buffer is filled again", "load", "race"),
    slip("last store wait", "the block ends while a copy reads its buffer", "store", "race"),
    slip("one load more", "the block ends while a copy writes its buffer", "more", "race"),
    slip("read back", "what was stored is loaded after `wait_group(read=True)`", "back", "race"),
))  # fmt: skip

CASES = (RING, STORE, ECHO)
