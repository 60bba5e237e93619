"""Tiles in steps, accumulators handed over, and the folds over threads: a small kernel with an epilogue."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute import Float32, Int32
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.computes import Compute
from tilewright.lib.epilogue.lowering.folds import Fold
from tilewright.lib.epilogue.lowering.loads import Accumulator, TensorLoad
from tilewright.lib.epilogue.lowering.op import View
from tilewright.lib.epilogue.lowering.reductions import DIRECT, ReductionStore
from tilewright.lib.epilogue.lowering.stores import TensorStore
from tilewright.lib.epilogue.lowering.tile import Place, ThreadGrid, Tile

FULL, ROW = View(Float32, None, 1, (), 1), View(Float32, 0, 1, (), 1)
EPILOGUE = Epilogue(
    (
        Accumulator("accum", ()),
        TensorLoad("row", (), ROW),
        Compute("sum", ("accum", "row"), "plus", Float32),
        TensorStore("D", ("sum",), FULL),
        ReductionStore("rows", ("sum",), ROW, Fold("sum", Float32), True, False, (), DIRECT),
        ReductionStore("columns", ("sum",), View(Float32, None, 0), Fold("max", Float32), False, True, (), DIRECT),
        ReductionStore("total", ("sum",), View(Float32, 0, 0), Fold("min", Float32), True, True, (), DIRECT),
    )
)


@dataclass(frozen=True)
class Plan:
    grid: ThreadGrid
    rows: int
    columns: int


@cute.kernel
def one_tile(arguments: Any, m: Int32, n: Int32, plan: cutlass.Constexpr):
    grid = plan.grid
    tile = Tile(grid, (m, n, 1), Place(0, 0, 0))
    states = EPILOGUE.begin(tile, arguments)
    fetched = []
    for r in cutlass.range_constexpr(0, grid.rows, plan.rows):
        for c in cutlass.range_constexpr(0, grid.columns, plan.columns):
            rows, columns = range(r, r + plan.rows), range(c, c + plan.columns)
            numbers = [
                Float32(tile.rows[row] * 100 + tile.columns[column] + k)
                for row in rows for column in columns for k in range(grid.vector)
            ]  # fmt: skip
            step = tile.step(rows, columns, None)
            step.accumulator = cute.TensorSSA.from_elements(numbers).reshape(step.shape)
            fetched.append((step, EPILOGUE.begin_loop(step, states)))  # all loads stand before the first visit
    for step, found in fetched:
        EPILOGUE.end_loop(step, states, EPILOGUE.visit(step, states, found))
    EPILOGUE.end(tile, states)


@cute.jit
def launch(arguments: Any, m: Int32, n: Int32, plan: cutlass.Constexpr):
    one_tile(arguments, m, n, plan).launch(grid=(1, 1, 1), block=(plan.grid.threads, 1, 1))


@pytest.mark.parametrize(("rows", "columns"), [(4, 2), (1, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("threads", [(4, 8), (2, 64), (64, 1)])
def test_steps_of_a_tile_give_what_the_whole_gives(threads, rows, columns):
    plan = Plan(ThreadGrid(*threads, 2, 4, 2), rows, columns)
    m, n = max(plan.grid.tile_m - 1, 1), plan.grid.tile_n - 2
    row = np.arange(n, dtype=np.float32) % 7
    D, sums = np.zeros((m, n), np.float32), np.zeros((1, n), np.float32)
    most, least = np.zeros((m, 1), np.float32), np.zeros((1, 1), np.float32)
    seen = [
        np.broadcast_to(row, (m, n)), D, np.lib.stride_tricks.as_strided(sums, (m, n), (0, 4)),
        np.lib.stride_tricks.as_strided(most, (m, n), (4, 0)), np.lib.stride_tricks.as_strided(least, (m, n), (0, 0)),
    ]  # fmt: skip
    extents = cute.sym_int64(), cute.sym_int64()
    fakes = tuple(view.fake(extents) for view in EPILOGUE.views)
    kernel = cute.compile(launch, fakes, Int32(1), Int32(1), plan, target="emu")
    kernel(tuple(seen), m, n)
    expected = np.arange(m)[:, None] * 100 + np.arange(n) + row
    np.testing.assert_array_equal(D, expected)
    np.testing.assert_array_equal(sums[0], expected.sum(0))
    np.testing.assert_array_equal(most[:, 0], expected.max(1))
    assert least.item() == expected.min()


def test_shared_memory_is_what_warps_exchange():
    grid = ThreadGrid(2, 64, 4, 3)
    assert EPILOGUE.smem_bytes(grid) == 4 * (2 * 256 + 2 * 6 + 4 * 1) + 0
    assert EPILOGUE.smem_bytes(ThreadGrid(1, 32, 4)) == 0


def test_lanes_and_warps_of_a_grid():
    grid = ThreadGrid(8, 16, 4)
    assert (grid.lanes_n, grid.lanes_m, grid.warps_n, grid.warps_m) == ((1, 2, 4, 8), (16,), 1, 4)
    wide = ThreadGrid(2, 128, 4)
    assert (wide.lanes_n, wide.lanes_m, wide.warps_n, wide.warps_m) == ((1, 2, 4, 8, 16), (), 4, 2)
