"""An epilogue behind the products of a block: its hooks, on what `mma.sync` left in registers.

The sums go through shared memory, a strip of rows at a time, so that each thread gets vectors of rows, as
`lowering.tile` describes them, and memory is read and written in whole vectors:

    registers of mma.sync --> strip of (m, n) in shared memory --> vectors of rows --> begin_loop, visit, end_loop

A strip has the rows of one instruction of each warp along M. An epilogue walks over the strips of its tile, as the
fused elementwise kernel walks over tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_plans import GemmPlan
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.tile import Place, ThreadGrid, Tile

_LINE_BYTES = 256
_VECTOR_BITS = 128


@dataclass(frozen=True)
class Fused:
    """An epilogue and the threads of a block as it sees them: their tile is a strip."""

    epilogue: Epilogue
    grid: ThreadGrid


def grid_of(plan: GemmPlan, vector: int) -> ThreadGrid:
    """The threads of a plan's blocks over a strip, in vectors of `vector` elements, which divides the extent of N."""
    width = min(plan.tile[1] // vector, plan.threads)
    height = plan.threads // width
    return ThreadGrid(height, width, vector, plan.strip // height, plan.tile[1] // (vector * width))


def strip_layout(rows: int, n: int, width: int) -> cute.ComposedLayout:
    """A strip (rows, n) of sums of `width` bits in shared memory.

    In lines of 256 bytes, vectors of 16 bytes change places by the half of the line and, twice as far, by the row: four
    rows at a time meet different banks when lanes write pairs of sums, and so do the vectors of lanes that read a row.
    """
    vector = _VECTOR_BITS // width
    extent = min(n, _LINE_BYTES * 8 // width)
    lines = cute.make_layout((4, extent), stride=(extent, 1))
    swizzle = cute.make_swizzle(3, vector.bit_length() - 1, 3)
    return cute.tile_to_shape(cute.make_composed_layout(swizzle, 0, lines), (rows, n), (0, 1))


@cute.jit
def run_epilogue(
    sums: cute.Tensor, mine: Any, extents: Any, place: Any, arguments: Any, memory: cute.Pointer,
    plan: cutlass.Constexpr, fused: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Run the epilogue on the fragment `sums` of the tile at `place` (m, n, l) of the problem `extents` (M, N, L)."""
    epilogue, grid = fused.epilogue, fused.grid
    m, n, _ = plan.tile
    row, column, batch = place
    parts = cute.ceil_div(extents[0], m), cute.ceil_div(extents[1], n)
    whole = Tile(grid, extents, Place(row * m, column * n, batch, row, column, *parts), walks=True)
    states = epilogue.begin(whole, arguments)
    strip = cute.make_tensor(
        cute.recast_ptr(memory, dtype=sums.element_type), strip_layout(plan.strip, n, sums.element_type.width)
    )
    written = mine.partition_C(strip)
    for number in cutlass.range_constexpr(m // plan.strip):
        tile = whole.at(row * m + number * plan.strip)
        fetched = epilogue.begin_loop(tile, states)
        cute.autovec_copy(sums[None, number, None], written[None, 0, None])
        cute.arch.sync_threads()
        held = cute.make_rmem_tensor(grid.shape, sums.element_type)
        for r in cutlass.range_constexpr(grid.rows):
            for c in cutlass.range_constexpr(grid.columns):
                vector = tile.local_columns[c] // grid.vector
                cute.autovec_copy(
                    cute.local_tile(strip[tile.local_rows[r], None], (grid.vector,), (vector,)), held[None, c, r]
                )
        step = tile.step(tile.row_range, tile.column_range, held.load())
        epilogue.end_loop(step, states, epilogue.visit(step, states, fetched))
        cute.arch.sync_threads()
    epilogue.end(whole, states)
