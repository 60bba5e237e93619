from __future__ import annotations

import pytest

from tests.tenstorrent.programs import context, gemm_module
from tilewright import PassError
from tilewright.tenstorrent import Partition, PrimFunc


def parts(blocks, grid):
    func = Partition(PrimFunc("f").with_attr("tt.grid", blocks), None, context(core_grid=grid))
    return func.attrs["tt.work_partition"]["cores"]


@pytest.mark.parametrize("blocks", [(1, 1, 1), (5, 1, 1), (3, 7, 2), (64, 1, 1), (65, 3, 1)])
@pytest.mark.parametrize("grid", ["1x1", "4x1", "3x2", "8x8"])
def test_parts_cover_all_blocks_and_are_disjoint(blocks, grid):
    found = parts(blocks, grid)
    covered = [block for part in found for block in range(part["start"], part["start"] + part["count"])]
    assert covered == list(range(blocks[0] * blocks[1] * blocks[2]))
    columns, rows = map(int, grid.split("x"))
    assert sorted(tuple(part["core"]) for part in found) == [(x, y) for x in range(columns) for y in range(rows)]
    counts = [part["count"] for part in found]
    assert max(counts) - min(counts) <= 1


def test_five_tiles_on_four_cores_and_idle_cores():
    assert [part["count"] for part in parts((5, 1, 1), "4x1")] == [2, 1, 1, 1]
    assert [part["count"] for part in parts((2, 1, 1), "4x1")] == [1, 1, 0, 0]


def test_the_grid_of_a_launch():
    (func,) = Partition(gemm_module(128)).prim_funcs
    assert func.attrs["tt.work_partition"]["grid"] == (2, 2, 1) and func.attrs["tt.core_grid"] == (8, 8)


def test_what_it_refuses():
    with pytest.raises(PassError, match="f has no grid"):
        Partition(PrimFunc("f"), None, None)
    with pytest.raises(PassError, match="9x1 cores, wormhole_b0 has 8x8"):
        parts((1, 1, 1), "9x1")
