# %% [markdown]
# # Pipelines
#
# This page teaches how to keep copies and arithmetic going at the same time: by several stages of `cp.async` that
# every thread issues for itself, and by a pipeline between warps that copy and warps that calculate.

# %%
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import pipeline
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

# %% [markdown]
# ## Stages of cp.async
#
# Shared memory holds `STAGES` tiles in a ring. Before the loop, the copies of the first `STAGES - 1` tiles are
# started. Each step waits until the oldest has arrived, starts the copy that will be needed `STAGES - 1` steps
# later, and works.
#
# ```text
# step            0         1         2         3
# copies under    1 2       2 3       3 4       4 5
# way of tile
# working on      0         1         2         3
# ```
#
# `cp_async_commit_group` closes a group of copies, `cp_async_wait_group(n)` waits until at most n groups are under
# way. A group is closed at every step, also where there is nothing left to copy, so that the count stays right.

# %%
THREADS, VECTOR, STAGES = 64, 4, 3
TILE = THREADS * VECTOR


@cute.kernel
def sums_kernel(x: cute.Tensor, out: cute.Tensor, fill: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    tiles = cute.local_tile(x, (TILE,), (None,))  # (TILE, steps)
    steps = cute.size(tiles, mode=[1])
    ring = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)))
    mine = fill.get_slice(thread)
    source, target = mine.partition_S(tiles), mine.partition_D(ring)

    for stage in cutlass.range_constexpr(STAGES - 1):
        if stage < steps:
            cute.copy(fill, source[None, None, stage], target[None, None, stage])
        cute.arch.cp_async_commit_group()

    total = cute.Float32(0.0)
    for step in cutlass.range(steps):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()  # the tile of this step is there, for all; that of the step before is free
        ahead = step + STAGES - 1
        if ahead < steps:
            cute.copy(fill, source[None, None, ahead], target[None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        total += ring[thread, step % STAGES] + ring[thread + TILE // 2, step % STAGES]
        total += ring[thread + TILE // 4, step % STAGES] + ring[thread + 3 * TILE // 4, step % STAGES]
    total = cute.allreduce(total, op="add", scope="block")
    if thread == 0:
        out[0] = total


@cute.jit
def sums(x: cute.Tensor, out: cute.Tensor):
    vector = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), cute.Float32, num_bits_per_copy=128
    )
    fill = cute.make_tiled_copy_tv(vector, cute.make_layout(THREADS), cute.make_layout(VECTOR))
    sums_kernel(x, out, fill).launch(grid=1, block=THREADS)


x = np.arange(7 * TILE, dtype=np.float32) % 97
out = np.zeros(1, np.float32)
sums(from_dlpack(x, assumed_align=16), from_dlpack(out))
print(out[0] == x.sum(dtype=np.float64))

# %% [markdown]
# ## A ring that is too short
#
# The barrier in the loop does two things. It makes each thread's copies visible to all others, and it keeps a stage
# from being overwritten while another thread still reads it, because a thread that passes it has finished the step
# before. With a single stage, that is one step too late. The emulator finds the mistake whatever the timing is:


# %%
@cute.kernel
def short_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    stage = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64))
    for step in cutlass.range_constexpr(3):
        stage[thread] = x[thread + 64 * step]
        cute.arch.sync_threads()
        y[thread + 64 * step] = stage[63 - thread]


@cute.jit
def short(x: cute.Tensor, y: cute.Tensor):
    short_kernel(x, y).launch(grid=1, block=64)


try:
    cute.compile(short, x[:192], np.zeros(192, np.float32), target="emu")(x[:192], np.zeros(192, np.float32))
except cutlass.EmulationError as error:
    print(str(error).splitlines()[0])
    print(error.hint)

# %% [markdown]
# ## Warps with different work
#
# In a `pipeline.PipelineAsync` some threads produce and others consume. Each stage has two mbarriers: *full*, on
# which consumers wait, and *empty*, on which producers wait. `make_participants` gives both sides an object that
# keeps count of stages and phases.


# %%
@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
    tiles: cute.struct.MemRange[cute.Float32, 32 * STAGES]


@cute.kernel
def specialised_kernel(x: cute.Tensor, y: cute.Tensor):
    warp = cute.arch.warp_idx()
    lane = cute.arch.lane_idx()
    storage = cutlass.utils.SmemAllocator().allocate(Storage)
    tiles = storage.tiles.get_tensor(cute.make_layout((32, STAGES)))
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    producer, consumer = pipeline.PipelineAsync.create(
        num_stages=STAGES, producer_group=group, consumer_group=group, barrier_storage=storage.barriers.data_ptr()
    ).make_participants()

    steps = cute.size(x) // 32
    if warp == 0:
        for step in cutlass.range(steps):
            handle = producer.acquire_and_advance()  # waits until the stage is empty
            tiles[lane, handle.index] = x[step * 32 + lane]
            handle.commit()
        producer.tail()  # waits until all was consumed
    if warp == 1:
        for step in cutlass.range(steps):
            handle = consumer.wait_and_advance()  # waits until the stage is full
            y[step * 32 + lane] = tiles[31 - lane, handle.index]
            handle.release()


@cute.jit
def specialised(x: cute.Tensor, y: cute.Tensor):
    specialised_kernel(x, y).launch(grid=1, block=64)


y = np.zeros(256, np.float32)
specialised(x[:256], y)
print(np.array_equal(y, x[:256].reshape(-1, 32)[:, ::-1].reshape(-1)))

# %% [markdown]
# ## Where to go on
#
# * [Hopper](../hopper.md) has `PipelineTmaAsync`, in which the copy engine is the producer.
# * [gemm](../kernels/gemm.md) shows the loop of the library's kernel, where `ldmatrix` runs a step ahead as well.
