"""`utils.block_copy`: tiles by TMA without `tma_partition`, for one block and shared in a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int16, utils
from tilewright.base.errors import CompileError
from tilewright.cute.nvgpu import cpasync

L = cute.make_layout
TILE = (16, 64)


def storage():
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(Int16, L(TILE, stride=(64, 1)), 1024, swizzle=cute.make_swizzle(3, 4, 3))
    return tile, smem.allocate_array(cutlass.Int64, 1)


def atom_of(op, tensor: cute.Tensor, by_coordinates: bool = False):
    layout = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, L(TILE, stride=(64, 1)))
    tile = cute.composition(cute.make_identity_layout(tensor.shape), TILE) if by_coordinates else TILE
    return cpasync.make_tiled_tma_atom(op, tensor, layout, tile)


@cute.kernel
def there_and_back_kernel(
    load: cute.CopyAtom, x: cute.Tensor, store: cute.CopyAtom, y: cute.Tensor, multicast: cutlass.Constexpr
):
    tile, barrier = storage()
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    if thread == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, 16 * 64 * 2)
    along = block[0] if cutlass.const_expr(multicast is None or multicast["multicast_dim"] == "M") else block[1]
    options = {} if cutlass.const_expr(multicast is None) else {"tma_multicast": multicast}
    if cute.arch.warp_idx() == 0:
        utils.block_copy(load, cute.local_tile(x, TILE, (along, 0)), tile, tma_bar_ptr=barrier, **options)
    cute.arch.mbarrier_wait(barrier, 0)
    for i in cutlass.range_constexpr(0, 16, 2):
        tile[i + thread // 32, thread % 32] = tile[i + thread // 32, thread % 32] + Int16(1)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    if cute.arch.warp_idx() == 0:
        utils.block_copy(store, tile, cute.local_tile(y, TILE, (block[0], block[1])))
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("dim", [None, "M", "N"])
@pytest.mark.parametrize("by_coordinates", [False, True])
def test_tiles_for_one_block_and_for_a_cluster(shape, dim, by_coordinates):
    """Block (m, n) of the cluster takes tile m, or n, that the blocks of its group share, and stores it in its own."""
    multicast = None if dim is None else {"cluster_shape": shape, "multicast_dim": dim}

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        load, tiles = atom_of(cpasync.CopyBulkTensorTileG2SOp(), x, by_coordinates)
        store, results = atom_of(cpasync.CopyBulkTensorTileS2GOp(), y)
        there_and_back_kernel(load, tiles, store, results, multicast).launch(
            grid=(*shape, 1), block=64, cluster=(*shape, 1)
        )

    x = np.arange(32 * 64, dtype=np.int16).reshape(32, 64)
    y = np.zeros((32, 128), np.int16)
    run(*(cute.runtime.from_dlpack(array, assumed_align=16) for array in (x, y)))
    bumped = x.copy()
    bumped[:, :32] += 1
    for m in range(shape[0]):
        for n in range(shape[1]):
            taken = n if dim == "N" else m
            expected = bumped[16 * taken : 16 * taken + 16]
            assert (y[16 * m : 16 * m + 16, 64 * n : 64 * n + 64] == expected).all(), (m, n)


def test_what_block_copy_refuses():
    def of(multicast, op=cpasync.CopyBulkTensorTileG2SOp):
        @cute.kernel
        def kernel(atom: cute.CopyAtom, x: cute.Tensor):
            tile, barrier = storage()
            far = cute.local_tile(x, TILE, (0, 0))
            if cutlass.const_expr(op is cpasync.CopyBulkTensorTileG2SOp):
                utils.block_copy(atom, far, tile, tma_bar_ptr=barrier, tma_multicast=multicast)
            else:
                utils.block_copy(atom, tile, far, tma_multicast=multicast)

        @cute.jit
        def run(x: cute.Tensor):
            atom, tiles = atom_of(op(), x)
            kernel(atom, tiles).launch(grid=2, block=32, cluster=2)

        run(cute.runtime.from_dlpack(np.zeros((32, 64), np.int16), assumed_align=16))

    def no_atom():
        @cute.kernel
        def kernel(x: cute.Tensor):
            utils.block_copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int16), x, x)

        cute.jit(lambda x: kernel(x).launch(grid=1, block=32))(np.zeros((32, 64), np.int16))

    cases = [
        (no_atom, "block_copy takes a TMA atom, not CopyAtom"),
        (lambda: of({"cluster_shape": (2, 1), "multicast_dim": "K"}), "multicast_dim M or N"),
        (lambda: of({"cluster_shape": (2, 1), "multicast_dim": "N", "use_2cta_mma_inst": True}), "need sm_100"),
        (
            lambda: of({"cluster_shape": (2, 1), "multicast_dim": "N"}, cpasync.CopyBulkTensorTileS2GOp),
            "block_copy shares loads in the cluster, not stores",
        ),
    ]
    for run, text in cases:
        with pytest.raises(CompileError, match=text):
            run()
