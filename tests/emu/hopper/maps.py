"""Tensor maps in memory: one warp changes a map and copies by it, tensor after tensor."""

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.hopper.faults import Case, slip
from tilewright import Float16, Int32, Int64
from tilewright.cute.nvgpu import cpasync
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
TILE, GROUPS = (8, 64), 3
BYTES = 8 * 64 * 2


@cute.kernel
def maps_kernel(load: cute.CopyAtom, source: cute.Tensor, many: cute.Tensor, maps: cute.Tensor, out: cute.Tensor,
                layout: cutlass.Constexpr, slip: cutlass.Constexpr):  # fmt: skip
    """Warp 0 copies the rows of each group, of which there are fewer and fewer; all threads take them from there."""
    thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(Float16, layout.outer, 1024, layout.inner)
    full = smem.allocate_array(Int64, 1)
    near = cute.recast_ptr(smem.allocate(128, 128), dtype=Int64)
    far = cute.make_ptr(Int64, maps.iterator.toint(), cute.AddressSpace.gmem, assumed_align=64)
    if slip == "alignment":
        far = far + 2
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(full, 1)
            arch.mbarrier_init_fence()
            cpasync.copy_tensormap(load, near)
    arch.sync_threads()
    groups = [cute.group_modes(t, 0, 2) for t in (tile, cute.local_tile(source, TILE, (0, 0)))]
    inside, outside = cpasync.tma_partition(load, 0, cute.make_layout(1), *groups)
    for group in range(GROUPS):
        rows = cute.make_layout((TILE[0] - group, Int32(TILE[1])), stride=(TILE[1], 1))
        whole = cute.make_tensor(many.iterator + group * TILE[0] * TILE[1], rows)
        if warp == (1 if slip == "other warp" else 0):
            if cutlass.const_expr(slip == "early acquire"):
                cpasync.fence_tma_desc_acquire(far)
            cpasync.update_tma_descriptor(load, whole, near)
            arch.sync_warp()
            if cutlass.const_expr(slip == "plain copy"):
                with arch.elect_one():
                    for word in range(16):
                        maps[0, word] = cute.make_tensor(near, cute.make_layout(16))[word]
                arch.sync_warp()
            else:
                cpasync.cp_fence_tma_desc_release(far, near)  # maps: release
        if warp == 0:
            if cutlass.const_expr(slip not in ("acquire", "early acquire")):
                cpasync.fence_tma_desc_acquire(far)
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, BYTES)
            cute.copy(load, outside, inside, tma_bar_ptr=full, tma_desc_ptr=far)  # maps: copy
        arch.mbarrier_wait(full, group & 1)
        for row in range(TILE[0]):
            out[group, row, thread] = tile[row, thread]
        arch.sync_threads()


@cute.jit
def maps(a: cute.Tensor, many: cute.Tensor, maps: cute.Tensor, out: cute.Tensor, slip: cutlass.Constexpr):
    layout = cute.slice_(sm90.make_smem_layout_epi(Float16, LayoutEnum.ROW_MAJOR, TILE, 1), (None, None, 0))
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, TILE)
    maps_kernel(load, source, many, maps, out, layout, slip).launch(grid=1, block=64)


def aligned_maps(count: int) -> np.ndarray:
    """Room for tensor maps, at a multiple of 128 bytes."""
    room = np.zeros((count + 1) * 16, np.int64)
    start = -room.ctypes.data % 128 // 8
    return room[start : start + count * 16].reshape(count, 16)


def _groups():
    many = np.arange(GROUPS * 8 * 64, dtype=np.float16).reshape(GROUPS, *TILE)
    wanted = many.copy()
    for group in range(GROUPS):
        wanted[group, TILE[0] - group :] = 0
    return [np.zeros(TILE, np.float16), many, aligned_maps(2), np.zeros_like(many)], {3: wanted}


MAPS = Case("maps", "a tensor map in memory, changed in shared memory and copied out", maps, _groups, (
    slip("acquire", "no `fence_tma_desc_acquire` before the copy", "copy", "race"),
    slip("early acquire", "the acquire stands before the change", "copy", "race"),
    slip("plain copy", "ordinary stores copy the map, and nothing releases it", "copy", "race"),
    slip("other warp", "another warp changes the map, without a barrier", "copy", "race"),
    slip("alignment", "the map lies at no multiple of 64 bytes", "release", "misaligned"),
))  # fmt: skip

CASES = (MAPS,)
