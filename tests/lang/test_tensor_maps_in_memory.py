"""Tensor maps that a kernel keeps in memory and changes, on the emulator with all checks."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.hopper.maps import aligned_maps
from tilewright import CompileError, Float16, Float32, Int32, Int64
from tilewright.cute.nvgpu import cpasync
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.utils import LayoutEnum, TensorMapManager, TensorMapUpdateMode, sm90

arch = cute.arch
TILE = (16, 64)
GMEM, SMEM = TensorMapUpdateMode.GMEM, TensorMapUpdateMode.SMEM
SIZES = ((40, 72), (16, 64), (7, 136))


@cute.kernel
def moves(load: cute.CopyAtom, source: cute.Tensor, store: cute.CopyAtom, target: cute.Tensor, tables: cute.Tensor,
          maps: cute.Tensor, layout: cutlass.Constexpr, mode: cutlass.Constexpr):  # fmt: skip
    """Matrices of a group, given by addresses and sizes in `tables`, tile by tile from one place to another."""
    block, warp = arch.block_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(Float16, layout.outer, 1024, layout.inner)
    full = smem.allocate_array(Int64, 1)
    room = cute.recast_ptr(smem.allocate(2 * 128, 128), dtype=Int64)
    manager = TensorMapManager(mode)
    far = [manager.get_tensormap_ptr(maps[block, number, None].iterator) for number in range(2)]
    near = [room, room + 16] if cutlass.const_expr(mode is SMEM) else far
    for atom, place in zip((load, store), near, strict=True):
        manager.init_tensormap_from_atom(atom, place, 0)
    manager.fence_tensormap_initialization()
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(full, 1)
            arch.mbarrier_init_fence()
    arch.sync_threads()
    rows, columns = Int32(tables[block, 2]), Int32(tables[block, 3])
    ends = [
        cute.make_ptr(Float16, tables[block, number], cute.AddressSpace.gmem, assumed_align=16) for number in (0, 1)
    ]
    stride = cute.assume(columns, divby=8)
    whole = [cute.make_tensor(end, cute.make_layout((rows, columns), stride=(stride, 1))) for end in ends]
    manager.update_tensormap(tuple(whole), (load, store), tuple(far), 0, tuple(near))
    single = cute.make_layout(1)
    groups = [cute.group_modes(part, 0, 2) for part in (tile, cute.local_tile(source, TILE, (None, None)))]
    inside, outside = cpasync.tma_partition(load, 0, single, *groups)
    _, away = cpasync.tma_partition(
        store, 0, single, groups[0], cute.group_modes(cute.local_tile(target, TILE, (None, None)), 0, 2)
    )
    if warp == 0:
        for pointer in far:
            manager.fence_tensormap_update(pointer)
        across = cute.ceil_div(columns, TILE[1])
        for number in cutlass.range(cute.ceil_div(rows, TILE[0]) * across):
            at = number // across, number % across
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, TILE[0] * TILE[1] * 2)
            cute.copy(load, outside[(None, *at)], inside, tma_bar_ptr=full, tma_desc_ptr=far[0])
            arch.mbarrier_wait(full, number & 1)
            cute.copy(store, inside, away[(None, *at)], tma_desc_ptr=far[1])
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def launch(like: cute.Tensor, tables: cute.Tensor, maps: cute.Tensor, mode: cutlass.Constexpr):
    layout = cute.slice_(sm90.make_smem_layout_epi(Float16, LayoutEnum.ROW_MAJOR, TILE, 1), (None, None, 0))
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), like, layout, TILE)
    store, target = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), like, layout, TILE)
    moves(load, source, store, target, tables, maps, layout, mode).launch(grid=len(SIZES), block=64)


@pytest.mark.parametrize("mode", TensorMapUpdateMode)
def test_a_group_of_matrices_by_one_map_a_block(mode):
    rng = np.random.default_rng(0)
    memory = np.zeros((2, 8192), np.float16)
    tables, wanted, start = [], [], 0
    for rows, columns in SIZES:
        count = -(-rows * columns // 64) * 64
        memory[0, start : start + rows * columns] = rng.integers(-99, 99, rows * columns)
        wanted.append((start, rows * columns))
        tables.append([memory[side, start:].ctypes.data for side in range(2)] + [rows, columns])
        start += count
    maps = aligned_maps(2 * len(SIZES)).reshape(len(SIZES), 2, 16)
    compiled = cute.compile(launch, memory[0].reshape(-1, 64), np.array(tables), maps, mode, target="emu")
    like = memory.reshape(-1, 64)  # all of the memory, so that the launch knows it
    compiled(like, np.array(tables), maps)
    for first, count in wanted:
        np.testing.assert_array_equal(memory[1, first : first + count], memory[0, first : first + count])
    assert np.count_nonzero(memory[1]) == np.count_nonzero(memory[0])
    assert assemble(compiled.stages["ptx"], "sm_90a").data


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda load, x, p, s: cpasync.copy_tensormap(x, p), "copy_tensormap takes a TMA atom, not Tensor"),
        (lambda load, x, p, s: cpasync.copy_tensormap(load, 3), "a tensor map in memory is told by a pointer to gmem"),
        (lambda load, x, p, s: cpasync.update_tma_descriptor(p, x, p), "update_tma_descriptor takes a TMA atom"),
        (lambda load, x, p, s: cpasync.update_tma_descriptor(load, p, p), "takes a tensor in global memory"),
        (lambda load, x, p, s: cpasync.update_tma_descriptor(load, x[0, None], p), "is not like the one of the atom"),
        (
            lambda load, x, p, s: cpasync.update_tma_descriptor(
                load, cute.make_tensor(cute.recast_ptr(x.iterator, dtype=Float32), x.layout), p
            ),
            "elements of the same width",
        ),
        (lambda load, x, p, s: cpasync.cp_fence_tma_desc_release(p, p), "told by a pointer to smem"),
        (lambda load, x, p, s: cpasync.fence_tma_desc_acquire(s), "told by a pointer to gmem or generic"),
        (lambda load, x, p, s: TensorMapManager(SMEM).get_tensormap_ptr(s), "lies in global memory"),
        (
            lambda load, x, p, s: TensorMapManager(SMEM).get_tensormap_ptr(p, cute.AddressSpace.smem),
            "address_space=AddressSpace.gmem or generic",
        ),
        (
            lambda load, x, p, s: TensorMapManager(GMEM).update_tensormap((x,), (load,), (), 0, ()),
            "update_tensormap takes an atom and a pointer for each tensor",
        ),
    ],
)  # fmt: skip
def test_wrong_uses_are_refused(use, message):
    @cute.kernel
    def kernel(load: cute.CopyAtom, x: cute.Tensor, maps: cute.Tensor):
        use(load, x, maps.iterator, cutlass.utils.SmemAllocator().allocate_array(Int64, 16))

    @cute.jit
    def host(x: cute.Tensor, maps: cute.Tensor):
        layout = cute.slice_(sm90.make_smem_layout_epi(Float16, LayoutEnum.ROW_MAJOR, TILE, 1), (None, None, 0))
        load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, TILE)
        kernel(load, x, maps).launch(grid=1, block=32)

    with pytest.raises(CompileError) as caught:
        cute.compile(host, np.zeros((16, 64), np.float16), np.zeros(16, np.int64), target="emu")
    assert message in str(caught.value) and caught.value.location.file == __file__


def test_older_chips_have_none():
    @cute.kernel
    def kernel(maps: cute.Tensor):
        cpasync.fence_tma_desc_acquire(maps.iterator)

    @cute.jit
    def host(maps: cute.Tensor):
        kernel(maps).launch(grid=1, block=32)

    with pytest.raises(CompileError, match="sm_90"):
        cute.compile(host, np.zeros(16, np.int64), options="--gpu-arch sm_80").stages["ptx"]
