"""Products of warpgroups: a warp that copies and a warpgroup that multiplies; two that take turns; A in registers."""

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.hopper.faults import Case, slip
from tilewright import Float16, Float32, Int64, pipeline
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
ROWS = LayoutEnum.ROW_MAJOR
M, N, K, STAGES, STEPS = 64, 32, 64, 2, 4
BYTES = (M + N) * K * 2
WARPS = pipeline.CooperativeGroup(pipeline.Agent.Thread, 4)
ONE = pipeline.CooperativeGroup(pipeline.Agent.Thread)


def _shared(layout):
    return cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)


def _parts(copy, tile, source):
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tile, source)]
    return cpasync.tma_partition(copy, 0, cute.make_layout(1), *groups)


def _layouts():
    tile = (M, N, K)
    return sm90.make_smem_layout_a(ROWS, tile, Float16, STAGES), sm90.make_smem_layout_b(ROWS, tile, Float16, STAGES)


def _mma():
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(Float16, Float32, (M, N, 16)))


@cute.kernel
def gemm_kernel(load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
                mma: cute.TiledMma, la: cutlass.Constexpr, lb: cutlass.Constexpr, slip: cutlass.Constexpr):  # fmt: skip
    """Warpgroup 1 copies, 0 multiplies and gets the registers that the others give up."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    sa, sb = _shared(la), _shared(lb)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES, producer_group=ONE,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8) if slip == "consumers" else WARPS,
        tx_count=BYTES // 2 if slip == "bytes" else BYTES,
        barrier_storage=cutlass.utils.SmemAllocator().allocate_array(Int64, 2 * STAGES),
    )  # fmt: skip
    to_a, from_a = _parts(load_a, sa, cute.local_tile(a, (M, K), (0, None)))
    to_b, from_b = _parts(load_b, sb, cute.local_tile(b, (N, K), (0, None)))
    if warp >= 4:
        if cutlass.const_expr(slip == "part of the registers"):
            if warp == 4 or warp >= 8:
                arch.setmaxregister_decrease(40)  # gemm: decrease
        elif cutlass.const_expr(slip != "no registers"):
            arch.setmaxregister_decrease(40)
        if warp == 4:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for step in cutlass.range(STEPS):
                if cutlass.const_expr(slip != "acquire"):
                    pipe.producer_acquire(state)  # gemm: acquire
                barrier = pipe.producer_get_barrier(state)
                cute.copy(load_a, from_a[None, step], to_a[None, state.index], tma_bar_ptr=barrier)  # gemm: copy
                if cutlass.const_expr(slip != "no B"):
                    cute.copy(load_b, from_b[None, step], to_b[None, state.index], tma_bar_ptr=barrier)  # gemm: copy
                if cutlass.const_expr(slip != "producer state"):
                    state.advance()
            if cutlass.const_expr(slip != "producer state"):
                pipe.producer_tail(state)  # gemm: tail
    else:
        arch.setmaxregister_increase(232)  # gemm: increase
        part = mma.get_slice(thread)
        left, right = mma.make_fragment_A(part.partition_A(sa)), mma.make_fragment_B(part.partition_B(sb))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((M, N)), Float32)
        mma.set(warpgroup.Field.ACCUMULATE, slip == "never cleared")
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for _ in cutlass.range(STEPS):
            if cutlass.const_expr(slip != "wait"):
                pipe.consumer_wait(state)  # gemm: wait
            if cutlass.const_expr(slip == "scaled in place"):
                sa[thread % M, 0, state.index] = Float16(1)
                pipeline.NamedBarrier(1, 128).arrive_and_wait()
            if cutlass.const_expr(slip != "wgmma fence"):
                warpgroup.fence()
            for k in cutlass.range_constexpr(cute.size(left, mode=[2])):
                place = (None, None, k, state.index)
                cute.gemm(mma, sums, left[place], right[place], sums)  # gemm: product
                mma.set(warpgroup.Field.ACCUMULATE, True)
            if cutlass.const_expr(slip != "no commit"):
                warpgroup.commit_group()
            if cutlass.const_expr(slip == "early release"):
                pipe.consumer_release(state)
            warpgroup.wait_group(1 if slip == "one group left" else 0)
            if cutlass.const_expr(slip not in ("early release", "no release")):
                pipe.consumer_release(state)
            if cutlass.const_expr(slip != "consumer state"):
                state.advance()
        for n in cutlass.range_constexpr(cute.size(sums)):
            part.partition_C(c)[n] = sums[n]  # gemm: result


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, slip: cutlass.Constexpr):
    la, lb = _layouts()
    op = cpasync.CopyBulkTensorTileG2SOp()
    narrow = sm90.make_smem_layout_epi(Float16, ROWS, (M, K // 2), 1)
    taken = cute.slice_(la, (None, None, 0))
    if cutlass.const_expr(slip == "swizzle"):
        taken = cute.tile_to_shape(cute.slice_(narrow, (None, None, 0)), (M, K), (0, 1))
    load_a, at_a = cpasync.make_tiled_tma_atom(op, a, taken, (M, K))
    load_b, at_b = cpasync.make_tiled_tma_atom(op, b, cute.slice_(lb, (None, None, 0)), (N, K))
    gemm_kernel(load_a, at_a, load_b, at_b, c, _mma(), la, lb, slip).launch(grid=1, block=384)


def _operands():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (rows, K * STEPS)).astype(np.float16) for rows in (M, N))
    return [a, b, np.zeros((M, N), np.float32)], {2: a.astype(np.float64) @ b.astype(np.float64).T}


GEMM = Case("gemm", "a warp copies, a warpgroup multiplies, `PipelineTmaAsync`, `setmaxregister`", gemm, _operands, (
    slip("consumers", "the pipeline expects eight warps to release, and four do", "wait", "deadlock"),
    slip("bytes", "`tx_count` of half a stage", "wait", "deadlock"),
    slip("acquire", "no `producer_acquire`", "copy", "race"),
    slip("no B", "the copy of B is left out", "wait", "deadlock"),
    slip("producer state", "the producer's state does not advance", "acquire copy", "mbarrier race"),
    slip("consumer state", "the consumer's state does not advance", "acquire", "deadlock"),
    slip("wait", "no `consumer_wait`", "product", "race"),
    slip("early release", "`consumer_release` before `wait_group`", "copy", "race"),
    slip("no release", "no `consumer_release`", "wait", "deadlock"),
    slip("wgmma fence", "no `warpgroup.fence`", "product", "wgmma"),
    slip("scaled in place", "a tile is changed by threads without a proxy fence", "product", "race"),
    slip("never cleared", "the first product adds to registers that no one wrote", "result", "uninitialised"),
    slip("no commit", "no `commit_group`", "product result", words="may be under way"),
    slip("one group left", "`wait_group(1)` before the sums are used", "product result", words="may be under way"),
    slip("part of the registers", "one warp of a warpgroup gives up registers", "decrease", "diverged"),
    slip("no registers", "registers are asked for that no one gives up", "increase", "deadlock"),
    slip("swizzle", "the copy and the product have different swizzles", "copy", words="swizzle"),
))  # fmt: skip


@cute.kernel
def turns_kernel(a: cute.Tensor, c: cute.Tensor, slip: cutlass.Constexpr):
    """Two warpgroups put tiles of A through one buffer, by turns: fill it, and read it turned round."""
    thread, group = arch.thread_idx()[0] % 128, arch.make_warp_uniform(arch.thread_idx()[0] // 128)
    buffer = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(128), 16)
    order = pipeline.PipelineOrder.create(
        cutlass.utils.SmemAllocator().allocate_array(Int64, 2), 1, 2, 0 if slip == "same group" else group,
        pipeline.CooperativeGroup(pipeline.Agent.Thread, 256 if slip == "count" else 128),
    )  # fmt: skip
    team = pipeline.NamedBarrier(1 + group, 128)
    for step in cutlass.range(STEPS):
        if cutlass.const_expr(slip != "wait"):
            order.wait()  # turns: wait
        buffer[thread] = a[2 * step + group, thread]  # turns: write
        if cutlass.const_expr(slip == "early arrive"):
            order.arrive()
        if cutlass.const_expr(slip != "team"):
            team.arrive_and_wait()
        c[2 * step + group, thread] = buffer[127 - thread]  # turns: read
        if cutlass.const_expr(slip not in ("no arrive", "early arrive")):
            order.arrive()


@cute.jit
def turns(a: cute.Tensor, c: cute.Tensor, slip: cutlass.Constexpr):
    turns_kernel(a, c, slip).launch(grid=1, block=256)


def _lines():
    a = np.arange(2 * STEPS * 128, dtype=np.float32).reshape(-1, 128)
    return [a, np.zeros_like(a)], {1: a[:, ::-1]}


TURNS = Case("turns", "two warpgroups take turns at a buffer, `PipelineOrder`", turns, _lines, (
    slip("wait", "no `order.wait`", "write", "race"),
    slip("no arrive", "no `order.arrive`", "write", "race"),
    slip("early arrive", "`order.arrive` before the buffer is read", "write", "race"),
    slip("count", "the order expects 256 threads of a group, and 128 arrive", "wait", "deadlock"),
    slip("same group", "both warpgroups are group 0", "write", "race"),
    slip("team", "no barrier of the warpgroup between writing and reading", "read", "race"),
))  # fmt: skip


@cute.kernel
def held_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, layout: cutlass.Constexpr,
                slip: cutlass.Constexpr):  # fmt: skip
    """A comes from registers, B from shared memory, which threads fill."""
    thread = arch.thread_idx()[0]
    sb = _shared(layout)
    part = mma.get_slice(thread)
    for row in cutlass.range_constexpr(N):
        if thread < K:
            sb[row, thread] = b[row, thread]  # held: write
    if cutlass.const_expr(slip != "proxy fence"):
        arch.fence_proxy("async.shared", space="cta")
    if cutlass.const_expr(slip != "block barrier"):
        arch.sync_threads()
    right = mma.make_fragment_B(part.partition_B(sb))
    held = mma.make_fragment_A(part.partition_A(a))
    sums = cute.make_rmem_tensor(mma.partition_shape_C((M, N)), Float32)
    sums.fill(0.0)
    cute.autovec_copy(part.partition_A(a), held)
    if cutlass.const_expr(slip == "cleared behind"):
        warpgroup.fence()
        sums.fill(0.0)
    else:
        warpgroup.fence()
    for k in cutlass.range_constexpr(cute.size(held, mode=[2])):
        if cutlass.const_expr(slip == "half a warpgroup"):
            if thread < 64:
                cute.gemm(mma, sums, held[None, None, k], right[None, None, k], sums)  # held: product
        else:
            cute.gemm(mma, sums, held[None, None, k], right[None, None, k], sums)  # held: product
    warpgroup.commit_group()
    if cutlass.const_expr(slip == "tile overwritten"):
        sb[0, 0] = Float16(0)  # held: overwrite
    warpgroup.wait_group(0)
    cute.autovec_copy(sums, part.partition_C(c))


@cute.jit
def held(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout(Float16, ROWS, (N, K))
    op = warpgroup.MmaF16BF16Op(Float16, Float32, (M, N, 16), warpgroup.OperandSource.RMEM)
    held_kernel(a, b, c, cute.make_tiled_mma(op), layout, slip).launch(grid=1, block=128)


def _one_step():
    (a, b, c), _ = _operands()
    a, b = (np.ascontiguousarray(x[:, :K]) for x in (a, b))
    return [a, b, c], {2: a.astype(np.float64) @ b.astype(np.float64).T}


HELD = Case("held", "A from registers, B written by threads", held, _one_step, (
    slip("proxy fence", "no proxy fence behind the writes", "product", "race"),
    slip("block barrier", "no barrier behind the writes", "product", "race"),
    slip("cleared behind", "the sums are cleared behind `warpgroup.fence`", "product", words="without a fence"),
    slip("half a warpgroup", "half of the warpgroup multiplies", "product", "deadlock"),
    slip("tile overwritten", "a tile is overwritten before `wait_group`", "overwrite", "race"),
))  # fmt: skip

CASES = (GEMM, TURNS, HELD)
