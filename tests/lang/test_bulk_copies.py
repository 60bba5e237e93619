"""Bulk copies without a tensor map: loads, stores, reductions and the primitives of them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.cute.nvgpu import cpasync
from tilewright.experimental import primitives as prims

L = cute.make_layout
THREADS = 64


@cute.kernel
def there_and_back_kernel(x: cute.Tensor, y: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    shared = smem.allocate_tensor(x.element_type, L(cute.size(x)), 128)
    barrier = smem.allocate_array(cutlass.Int64, 1)
    thread = cute.arch.thread_idx()[0]
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), x.element_type)
    if thread == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, cute.size(x) * x.element_type.width // 8)
        cute.copy(load, x, shared, mbar_ptr=barrier)
    cute.arch.mbarrier_wait(barrier, 0)
    for i in range(thread, cute.size(x), THREADS):
        shared[i] = shared[i] + shared[i]
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    if thread == 0:
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), x.element_type), shared, y)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def there_and_back(x: cute.Tensor, y: cute.Tensor):
    there_and_back_kernel(x, y).launch(grid=1, block=THREADS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.uint8])
def test_consecutive_bytes_there_and_back(dtype):
    x = np.random.default_rng(1).integers(0, 60, 256).astype(dtype)
    y = np.zeros_like(x)
    there_and_back(cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(y))
    assert (y == x + x).all()


FOLDS = {"ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "XOR": np.bitwise_xor}
KINDS = [(np.float32, "F32", "ADD"), (np.float16, "F16", "ADD"), (np.float16, "F16", "MAX"), (np.int32, "S32", "MIN"),
         (np.uint32, "U32", "MAX"), (np.int32, "B32", "AND"), (np.int64, "B64", "XOR")]  # fmt: skip


@pytest.mark.parametrize(("dtype", "kind", "op"), KINDS)
def test_numbers_are_folded_into_global_memory(dtype, kind, op):
    def body(x: cute.Tensor, y: cute.Tensor):
        smem = cutlass.utils.SmemAllocator()
        shared = smem.allocate_tensor(x.element_type, L(32), 16)
        thread = cute.arch.thread_idx()[0]
        shared[thread] = x[thread]
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        if thread == 0:
            prims.cp_reduce_async_bulk_global_shared_cta(
                y, shared, 32 * x.element_type.width // 8, op=prims.CpReduceOp[op], type=prims.CpReduceType[kind]
            )
            prims.cp_async_bulk_commit_group()
            prims.cp_async_bulk_wait_group(0)

    random = np.random.default_rng(2)
    x, y = (random.integers(-100 if np.dtype(dtype).kind != "u" else 0, 100, 32).astype(dtype) for _ in range(2))
    expected = FOLDS[op](y, x)
    on_device(body, x, y, block=32)
    assert (y == expected).all()


def test_a_block_reads_what_another_copied_to_it():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        smem = cutlass.utils.SmemAllocator()
        shared = smem.allocate_tensor(cutlass.Int32, L(32), 16)
        barrier = smem.allocate_array(cutlass.Int64, 1)
        thread, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
        if thread == 0:
            prims.mbarrier_init(barrier, 1)
        prims.fence_mbarrier_init()
        prims.barrier_cluster_arrive_relaxed()
        prims.barrier_cluster_wait()
        if thread == 0:
            prims.mbarrier_arrive_expect_tx(barrier, 128)
            peer = 1 - rank
            prims.cp_async_bulk_shared_cluster_global(
                prims.mapa(shared, peer), x.iterator + 32 * peer, prims.mapa(barrier, peer), 128
            )
        while not prims.mbarrier_try_wait_parity(barrier, 0, time_limit=1000):
            pass
        y[32 * rank + thread] = shared[thread]
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=2, block=32, cluster=2)

    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    run(cute.runtime.from_dlpack(x, assumed_align=16), y)
    assert (y == x).all()


def test_what_a_bulk_copy_refuses():
    def copied(source: cute.Layout, target: cute.Layout, **options):
        def body(x: cute.Tensor):
            shared = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, target, 128)
            atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), x.element_type)
            barrier = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
            given = {"mbar_ptr": barrier} | options
            cute.copy(atom, cute.make_tensor(x.iterator, source), shared, **given)

        return lambda: on_device(body, np.zeros(64, np.float32), block=1)

    def folded(kind):
        def body(x: cute.Tensor):
            shared = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, L(32), 128)
            prims.cp_reduce_async_bulk_global_shared_cta(
                x, shared, 128, op=prims.CpReduceOp.MIN, type=prims.CpReduceType[kind]
            )

        return lambda: on_device(body, np.zeros(64, np.float32), block=1)

    cases = [
        (copied(L(32), L(16)), "takes as many bytes on both sides"),
        (copied(L(32, stride=2), L(32)), "takes consecutive elements, and the source has none"),
        (copied(L(3), L(3)), r"a bulk copy of 12 bytes[\s\S]*a multiple of 16 bytes"),
        (copied(L(32), L(32), mbar_ptr=None), "a bulk copy to shared memory needs tma_bar_ptr="),
        (copied(L(32), L(32), wrong=1), "a bulk copy has no option 'wrong'"),
        (folded("F32"), r"has no min of f32[\s\S]*min takes bf16, f16, s32, s64, u32, u64"),
    ]
    for run, text in cases:
        with pytest.raises(CompileError, match=text):
            run()


def test_places_of_bulk_copies():
    def body(x: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, L(32), 128)
        prims.cp_async_bulk_global_shared_cta(shared, shared, 128)

    with pytest.raises(CompileError, match="cp_async_bulk_global_shared_cta takes a pointer to gmem or generic"):
        on_device(body, np.zeros(64, np.float32), block=1)
