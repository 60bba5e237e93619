"""What kernels for Hopper ask beside copies and products: masks, layouts of the output, groups, one-warp assembly."""

import importlib

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.test_tma_pipelines import Gemm
from tilewright import CompileError, Float16, Float32, Int8, Int32, pipeline
from tilewright.cute.nvgpu import cpasync
from tilewright.targets.nvidia.lowering.collective_asm import mark_collective
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.utils import sm90

arch = cute.arch
ROWS, COLUMNS = cutlass.utils.LayoutEnum.ROW_MAJOR, cutlass.utils.LayoutEnum.COL_MAJOR


@cute.kernel
def masks(out: cute.Tensor, blocks: cutlass.Constexpr):
    """The blocks along each mode with which each of a cluster shares a tile."""
    if arch.thread_idx()[0] == 0:
        rank = arch.block_idx_in_cluster()
        coord = blocks.get_flat_coord(rank)
        for mode in cutlass.range_constexpr(2):
            out[rank, mode] = Int32(cute.make_layout_image_mask(blocks, coord, mode))


def test_masks_of_coordinates_known_at_run_time():
    blocks = cute.make_layout((2, 4))

    @cute.jit
    def host(out: cute.Tensor):
        masks(out, blocks).launch(grid=(2, 4, 1), block=32, cluster=(2, 4, 1))

    out = np.zeros((8, 2), np.int32)
    cute.compile(host, out)(out)
    for rank in range(8):
        same_column = [other for other in range(8) if other // 2 == rank // 2]
        same_row = [other for other in range(8) if other % 2 == rank % 2]
        assert out[rank].tolist() == [sum(1 << other for other in found) for found in (same_column, same_row)]
    assert cpasync.create_tma_multicast_mask(cute.make_layout((1, 2, 4, 1)), (0, 1, 2, 0), 2) == 0b10101010


def test_a_mask_holds_sixteen_blocks():
    @cute.kernel
    def kernel():
        cute.make_layout_image_mask(cute.make_layout((2, 16)), (arch.lane_idx(), 0), 1)

    @cute.jit
    def host():
        kernel().launch(grid=1, block=32)

    with pytest.raises(CompileError, match="a mask of a cluster of 32 blocks"):
        cute.compile(host)


def test_layouts_of_the_output():
    """Every element of all stages has a place of its own, and rows (or columns) are contiguous in 16 bytes."""
    for order, tile in ((ROWS, (64, 32)), (COLUMNS, (32, 64))):
        for shape in (None, (*tile, 2, 3)):
            layout = sm90.make_smem_layout_epi(Float16, order, tile, 2, shape)
            outer = layout.outer
            places = {int(outer(n)) for n in range(cute.size(outer))}
            assert len(places) == cute.size(outer) == cute.cosize(outer) == 64 * 32 * 2 * (3 if shape else 1)
            first = [(0, n) if order is ROWS else (n, 0) for n in range(8)]
            assert [int(outer((*at, 0, *(0,) * (len(outer.shape) - 3)))) for at in first] == list(range(8))


@pytest.mark.parametrize(
    ("tile", "dtype", "cooperative", "expected"),
    (
        ((128, 256, 64), Float16, True, (128, 32)), ((128, 128, 64), Float16, False, (64, 32)),
        ((64, 128, 128), Int8, False, (64, 64)), ((64, 8, 64), Float32, False, (64, 8)),
    ),
)  # fmt: skip
def test_tiles_of_the_output(tile, dtype, cooperative, expected):
    assert sm90.compute_tile_shape_or_override(tile, dtype, is_cooperative=cooperative) == expected
    assert sm90.compute_tile_shape_or_override(tile, dtype, epi_tile_override=(8, 8)) == (8, 8)


def test_small_rules():
    assert pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 / 32).size == 4
    with pytest.raises(CompileError, match=r"a group of 4\.5"):
        pipeline.CooperativeGroup(pipeline.Agent.Thread, 4.5)
    assert Float16.is_same_kind(Float32) and Int8.is_same_kind(Int32) and not Int8.is_same_kind(Float16)
    tile = cute.local_tile(cute.make_layout((8, 6, 5), stride=(1, 8, 48)), (4, 2, 3), (1, 2, None, 4), (1, None, 1))
    assert cute.size(tile) == 4 * 3 * 2 and tile.shape == (4, 3, 2)


def test_assembly_that_a_warp_runs_together_is_convergent():
    text = (
        '  call void asm sideeffect "wgmma.fence.sync.aligned;", "~{memory}"(), !dbg !5\n'
        '  %1 = call i32 asm sideeffect "elect.sync _|p, -1;", "=r"()\n'
        '  call void asm sideeffect "barrier.cluster.arrive;", "r"(i32 ptrtoint (ptr @x to i32)), !dbg !7\n'
        '  call void asm sideeffect "st.global.b32 [$0], $1;", "l,r"(i64 %a, i32 %b), !dbg !8\n'
    )
    marked = mark_collective(text).splitlines()
    assert marked[0].endswith('"~{memory}"() convergent, !dbg !5') and marked[1].endswith("() convergent")
    assert marked[2].endswith("to i32)) convergent, !dbg !7") and "convergent" not in marked[3]
    assert mark_collective("; nothing\n") == "; nothing\n"


def test_numbers_of_the_language_in_mlir_s_dialects():
    importlib.import_module("tilewright.dropin")
    math = importlib.import_module("cutlass._mlir.dialects.math")

    @cute.jit
    def host(out: cute.Tensor):
        out[0] = Float32(1.0) + math.log(Float32(out[1]))

    out = np.array([0, 8], np.float32)
    cute.compile(host, out)(out)
    np.testing.assert_allclose(out[0], 1 + np.log(8), rtol=1e-6)


def test_the_assembler_makes_no_product_wait_for_the_one_before():
    """Its warnings about serialised wgmma would be in the log; no register is spilled."""
    arrays = [np.zeros((128, 128), dtype) for dtype in (np.float16, np.float16, np.float32)]
    arguments = [cute.runtime.from_dlpack(x, assumed_align=16) for x in arrays]
    ptx = cute.compile(Gemm(2, (2, 1), (64, 128, 64)), *arguments).stages["ptx"]
    log = assemble(ptx, "sm_90a", extra=["-v"], use_ptxas=True).log
    assert "0 bytes spill stores" in log
    assert "wgmma" not in log and "warning" not in log and "C75" not in log
