"""Distributed shared memory of a cluster, and vectors with cache hints, on the emulator."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, EmulationError, Float16, Float32, Float64, Int32, Int64
from tilewright.compat.dialects import dialect

BLOCKS = 4
arch = cute.arch
nvvm = dialect("nvvm")


@cute.kernel
def reads_neighbours(out: cute.Tensor):
    """Block b writes 10 * b, and reads what its neighbour wrote."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(Int32, 32)
    shared[thread] = block * 10 + thread
    arch.cluster_arrive()
    arch.cluster_wait()
    neighbour = (arch.block_idx_in_cluster() + 1) % BLOCKS
    out[block * 32 + thread] = arch.map_dsmem_ptr(shared.iterator + thread, neighbour).load()
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def launch_neighbours(out: cute.Tensor):
    reads_neighbours(out).launch(grid=(2 * BLOCKS, 1, 1), block=(32, 1, 1), cluster=(BLOCKS, 1, 1))


def test_map_dsmem_ptr_reads_another_block():
    out = np.zeros(64 * BLOCKS, np.int32)
    cute.compile(launch_neighbours, out)(out)
    block, thread = np.divmod(np.arange(64 * BLOCKS), 32)
    cluster, rank = np.divmod(block, BLOCKS)
    np.testing.assert_array_equal(out, (cluster * BLOCKS + (rank + 1) % BLOCKS) * 10 + thread)


@cute.kernel
def sends_to_all(x: cute.Tensor, out: cute.Tensor, waits: cutlass.Constexpr):
    """Thread t < BLOCKS of each block sends a number to block t, which adds up what it got."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    allocator = cutlass.utils.SmemAllocator()
    got = allocator.allocate_tensor(x.element_type, BLOCKS)
    barrier = allocator.allocate_array(Int64, 1)
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(barrier, BLOCKS * x.element_type.width // 8)
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
    if thread < BLOCKS:
        arch.store_async_dsmem(got.iterator + block, x[block], barrier, thread)
    if cutlass.const_expr(waits):
        arch.mbarrier_wait(barrier, 0)
    if thread == 0:
        out[block] = got[0] + got[1] + got[2] + got[3]


@cute.jit
def launch_sends(x: cute.Tensor, out: cute.Tensor, waits: cutlass.Constexpr):
    sends_to_all(x, out, waits).launch(grid=(BLOCKS, 1, 1), block=(32, 1, 1), cluster=(BLOCKS, 1, 1))


@pytest.mark.parametrize("dtype", (np.float32, np.int32, np.float64, np.int64))
def test_store_async_dsmem_counts_at_the_barrier_of_its_block(dtype):
    x, out = np.array([1, 20, 300, 4000], dtype), np.zeros(BLOCKS, dtype)
    cute.compile(launch_sends, x, out, True)(x, out)
    np.testing.assert_array_equal(out, [4321] * BLOCKS)


def test_what_is_not_waited_for_is_reported():
    x, out = np.ones(BLOCKS, np.float32), np.zeros(BLOCKS, np.float32)
    with pytest.raises(EmulationError, match="got"):
        cute.compile(launch_sends, x, out, False)(x, out)


def compiles(body, arch_name="sm_90a"):
    @cute.kernel
    def kernel(x: cute.Tensor):
        body(x)

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return cute.compile(launch, np.zeros(64, np.float32), options=f"--gpu-arch {arch_name}")


@cute.kernel
def adds_up(out: cute.Tensor):
    """Each block of a cluster adds its number to the sum of block 0, in that block's memory."""
    thread, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    total = cutlass.utils.SmemAllocator().allocate_tensor(Int32, 1)
    if rank == 0 and thread == 0:
        total[0] = 0
    arch.cluster_arrive()
    arch.cluster_wait()
    if thread == 0:
        nvvm.red(
            op=nvvm.ReductionOp.ADD, type_=nvvm.ReductionType.S32, a=arch.mapa(total.iterator, Int32(0)),
            b=Int32(rank + 1).ir_value(), mem_order=nvvm.MemOrderKind.RELAXED, mem_scope=nvvm.MemScopeKind.CLUSTER,
            shared_space=nvvm.SharedSpace.shared_cluster,
        )  # fmt: skip
    arch.cluster_arrive()
    arch.cluster_wait()
    if rank == 0 and thread == 0:
        out[arch.cluster_idx()[0]] = total[0]


@cute.jit
def launch_adds(out: cute.Tensor):
    adds_up(out).launch(grid=(2 * BLOCKS, 1, 1), block=(32, 1, 1), cluster=(BLOCKS, 1, 1))


def test_reductions_into_another_block():
    out = np.zeros(2, np.int32)
    cute.compile(launch_adds, out)(out)
    assert out.tolist() == [BLOCKS * (BLOCKS + 1) // 2] * 2


def test_errors_of_distributed_memory():
    with pytest.raises(CompileError, match="map_dsmem_ptr takes a pointer to shared memory"):
        compiles(lambda x: arch.map_dsmem_ptr(x.iterator, 0))
    with pytest.raises(CompileError, match="store_async_dsmem takes a pointer to shared memory"):
        compiles(lambda x: arch.store_async_dsmem(x.iterator, 1.0, x.iterator, 0))

    def sends_half(x):
        got = cutlass.utils.SmemAllocator().allocate_array(Float16, 8)
        arch.store_async_dsmem(got, Float16(1.0), got, 0)

    with pytest.raises(CompileError, match="store_async_dsmem of 16 bits"):
        compiles(sends_half)

    def maps(x):
        x[0] = arch.map_dsmem_ptr(cutlass.utils.SmemAllocator().allocate_array(Float32, 4), 1).load()

    with pytest.raises(CompileError, match="sm_80"):
        compiles(maps, "sm_80")


@pytest.mark.parametrize(("dtype", "count"), ((Float32, 4), (Float32, 2), (Float16, 8), (Float16, 4), (Float64, 2)))
def test_vectors_with_an_eviction_priority(dtype, count):
    """`arch.load` of a vector type, and both with a hint for the L1 cache."""

    @cute.kernel
    def doubles(x: cute.Tensor, out: cute.Tensor):
        place = arch.thread_idx()[0] * count
        kind = cute.T.vector(count, dtype.mlir_type)
        vector = arch.load(x.iterator + place, kind, level1_eviction_priority="no_allocate")
        arch.store(out.iterator + place, vector + vector, level1_eviction_priority="evict_first")

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        doubles(x, out).launch(grid=(1, 1, 1), block=(16, 1, 1))

    x = np.random.default_rng(0).standard_normal(16 * count).astype(f"f{dtype.width // 8}")
    out = np.zeros_like(x)
    compiled = cute.compile(launch, x, out)
    compiled(x, out)
    np.testing.assert_array_equal(out, x + x)
    words = count * dtype.width // 32
    assert f"ld.global.L1::no_allocate.v{words}.b32" in compiled.stages["ptx"]
    assert f"st.global.L1::evict_first.v{words}.b32" in compiled.stages["ptx"]


def test_errors_of_cache_hints():
    with pytest.raises(CompileError, match=r"arch\.load has no level1_eviction_priority 'often'") as raised:
        compiles(lambda x: arch.load(x.iterator, level1_eviction_priority="often"))
    assert "no_allocate" in str(raised.value)
    with pytest.raises(CompileError, match=r"arch\.store with a cop and a level1_eviction_priority"):
        compiles(lambda x: arch.store(x.iterator, 1.0, cop="cs", level1_eviction_priority="evict_first"))
    with pytest.raises(CompileError, match="another size than 8 or 16 bytes"):
        compiles(lambda x: arch.load(x.iterator, cute.T.vector(8, cute.T.f32())))
