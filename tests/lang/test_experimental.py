"""The primitives of `cutlass.experimental` that public kernels use, and the markers of in-kernel tracing."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.cute.experimental import iket
from tilewright.experimental import primitives as prims

KIND = prims.ReductionKind
FOLDS = {
    KIND.ADD: np.add, KIND.AND: np.bitwise_and, KIND.OR: np.bitwise_or, KIND.XOR: np.bitwise_xor, KIND.MIN: np.minimum,
    KIND.MAX: np.maximum, KIND.UMIN: np.minimum, KIND.UMAX: np.maximum,
}  # fmt: skip


@pytest.mark.parametrize("kind", FOLDS)
def test_redux_sync_folds_a_warp(kind):
    def body(x: cute.Tensor):
        lane = cute.arch.lane_idx()
        x[lane] = prims.redux_sync(x[lane], kind, 0xFFFFFFFF)

    x = np.random.default_rng(1).integers(-(2**31), 2**31, 32).astype(np.int32)
    wide = x.view(np.uint32) if kind in (KIND.UMIN, KIND.UMAX) else x
    with np.errstate(over="ignore"):
        expected = FOLDS[kind].reduce(wide).astype(wide.dtype).view(np.int32)
    assert (on_device(body, x.copy()) == expected).all()


@pytest.mark.parametrize(("kind", "abs"), ((KIND.FMAX, False), (KIND.FMIN, False), (KIND.FMAX, True)))
def test_redux_sync_of_floats(kind, abs):
    def body(x: cute.Tensor):
        lane = cute.arch.lane_idx()
        x[lane] = prims.redux_sync(x[lane], kind, 0xFFFFFFFF, abs=abs)

    x = np.random.default_rng(2).standard_normal(32).astype(np.float32)
    fold = np.max if kind is KIND.FMAX else np.min
    assert (on_device(body, x.copy()) == fold(np.abs(x) if abs else x)).all()


def test_bits_are_moved_permuted_and_packed():
    def body(x: cute.Tensor, out: cute.Tensor):
        out[0] = prims.mov_b32(cutlass.Float32(1.5), target_type=cutlass.Uint32)
        out[1] = prims.prmt(x[0], 0x4140, prims.PermuteMode.DEFAULT, hi=0)
        out[2] = prims.prmt(x[0], 0x7531, prims.PermuteMode.DEFAULT, hi=x[1])
        out[3] = prims.prmt(x[0], 1, prims.PermuteMode.RC8)
        out[4] = prims.convert_and_pack_integer(cutlass.Int32(70000), cutlass.Int32(-70000), cute.T.i16())
        out[5] = prims.convert_and_pack_integer(cutlass.Int32(-1), cutlass.Int32(70000), cute.T.i16(), is_signed=False)

    x, out = np.array([0xD3C2B1A0, 0x97867564], np.uint32), np.zeros(6, np.uint32)
    on_device(body, x, out, block=1)
    # Bytes of x[0], low first, are A0 B1 C2 D3, those of x[1] 64 75 86 97.
    assert [f"{word:08X}" for word in out] == ["3FC00000", "00B100A0", "9775D3B1", "B1B1B1B1", "7FFF8000", "0000FFFF"]


def test_atomicrmw_gives_the_old_number():
    def body(x: cute.Tensor, old: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        old[thread] = prims.atomicrmw(prims.AtomicOp.INC, x.iterator.llvm_ptr, cutlass.Int32(9))

    x, old = np.zeros(1, np.int32), np.zeros(32, np.int32)
    on_device(body, x, old)
    assert sorted(old) == sorted(n % 10 for n in range(32)) and x[0] == 2


@cute.kernel
def exchange(x: cute.Tensor, out: cute.Tensor):
    """Block r of a cluster of 2 sends to the other: its barrier there says that the numbers have been written."""
    thread, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
    smem = cutlass.utils.SmemAllocator()
    got = smem.allocate_tensor(cutlass.Int32, cute.make_layout(32))
    barrier = smem.allocate_array(cutlass.Int64, 1, partition=cutlass.utils.SmemPartition.RESERVED)
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    there = prims.mapa(got.iterator.llvm_ptr, 1 - rank)
    assert there.memspace is cute.AddressSpace.dsmem and type(there.toint()) is cutlass.Int32
    (there.recast(cutlass.Int32) + thread).store(x[rank * 32 + thread])
    prims.fence_sync_restrict(prims.MemOrder.RELEASE)
    cute.arch.fence_acq_rel_cluster()
    prims.mbarrier_arrive(prims.mapa(barrier, 1 - rank), scope=prims.MemScope.CLUSTER)
    done = prims.mbarrier_wait_parity(
        barrier, 0, prims.MBarrierWait.TEST, scope=prims.MBarrierScope.CLUSTER, order=prims.MemOrder.ACQUIRE
    )
    while not done:
        done = prims.mbarrier_wait_parity(
            barrier, 0, prims.MBarrierWait.TRY, scope=prims.MBarrierScope.CLUSTER, order=prims.MemOrder.ACQUIRE
        )
    out[rank * 32 + thread] = got[thread]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def exchanged(x: cute.Tensor, out: cute.Tensor):
    exchange(x, out).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))


def test_blocks_of_a_cluster_meet_at_a_barrier():
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    compiled = cute.compile(exchanged, x, out, target="emu")
    compiled(x, out)
    assert out.tolist() == [*range(32, 64), *range(32)]
    text = compiled.stages["ptx"]
    assert "mbarrier.arrive.release.cluster.shared::cluster.b64 _," in text
    assert "mbarrier.test_wait.parity.acquire.cluster.shared.b64" in text
    assert "st.shared::cluster" in text


def test_a_local_arrival_gives_the_state_of_the_phase():
    def body(out: cute.Tensor):
        barrier = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        if cute.arch.thread_idx()[0] == 0:
            cute.arch.mbarrier_init(barrier, 64)
        cute.arch.sync_threads()
        state = prims.mbarrier_arrive(barrier, count=2)
        out[cute.arch.thread_idx()[0]] = cutlass.Int32(state != 0)
        prims.griddepcontrol(prims.GridDepAction.WAIT)
        prims.griddepcontrol(prims.GridDepAction.LAUNCH_DEPENDENTS)
        while not prims.mbarrier_wait_parity(barrier, 0):
            pass

    on_device(body, np.zeros(32, np.int32))


@pytest.mark.parametrize(
    ("call", "message"),
    (
        (lambda x: prims.mov_b32(cutlass.Int64(1), target_type=cutlass.Uint32), "mov_b32 is between types of 32 bits"),
        (lambda x: prims.convert_and_pack_integer(x[0], x[0], cute.T.i32()), "packs two numbers of 16 bits"),
        (lambda x: prims.mapa(x.iterator, 0), "mapa takes a pointer to shared memory"),
        (lambda x: prims.fence_sync_restrict(prims.MemOrder.ACQ_REL), "fence_sync_restrict has no order"),
        (lambda x: iket.mark(3), "iket.mark takes the name of the event, not 3"),
        (lambda x: iket.range_push(""), "iket.range_push takes the name"),
    ),
)
def test_wrong_uses_are_refused(call, message):
    def body(x: cute.Tensor):
        call(x)

    with pytest.raises(CompileError, match=message):
        on_device(body, np.zeros(4, np.int32))


def test_markers_compile_to_nothing():
    @cute.kernel
    def marked(x: cute.Tensor, marks: cutlass.Constexpr):
        if cutlass.const_expr(marks):
            iket.mark("begin", cute.arch.thread_idx()[0] * 0)
            iket.range_push("all")
            token = iket.range_start("store")
        x[cute.arch.thread_idx()[0]] = 1
        if cutlass.const_expr(marks):
            iket.range_end(token)
            iket.range_pop()

    @cute.jit
    def launch(x: cute.Tensor, marks: cutlass.Constexpr):
        marked(x, marks).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.zeros(32, np.float32)
    texts = [cute.compile(launch, x, marks, target="emu").stages["ptx"] for marks in (True, False)]
    marked_code, plain_code = ([line for line in text.splitlines() if ".loc" not in line] for text in texts)
    assert marked_code == plain_code
