"""An epilogue behind the products of a block: its hooks, on what `mma.sync` or `wgmma` left in registers.

The sums go through shared memory, a strip of rows at a time, so that each thread gets vectors of rows, as
`lowering.tile` describes them, and memory is read and written in whole vectors:

    registers of a product --> strip of (m, n) in shared memory --> vectors of rows --> begin_loop, visit, end_loop

A strip has the rows of one instruction of each warp along M, or of some warps of a warpgroup. An epilogue walks over
the strips of its tile, as the fused elementwise kernel walks over tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_plans import GemmPlan
from tilewright.kernels.gemm_sm90_plans import Sm90Plan
from tilewright.kernels.gemm_split import Team
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.tile import Place, ThreadGrid, Tile

_LINE_BYTES = 256
_VECTOR_BITS = 128


@dataclass(frozen=True)
class Fused:
    """An epilogue and the threads of a block as it sees them: their tile is a strip."""

    epilogue: Epilogue
    grid: ThreadGrid


def grid_of(plan: GemmPlan | Sm90Plan, vector: int) -> ThreadGrid:
    """The threads of a plan's teams over a strip, in vectors of `vector` elements, which divides the extent of N."""
    columns = plan.share[1]
    width = min(1 << (columns // vector & -(columns // vector)).bit_length() - 1, plan.team)
    height = plan.team // width
    return ThreadGrid(height, width, vector, plan.strip // height, columns // (vector * width))


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


def strip_at(memory: cute.Pointer, dtype: Any, rows: int, n: int) -> cute.Tensor:
    """A strip (rows, n) of sums in shared memory."""
    return cute.make_tensor(cute.recast_ptr(memory, dtype=dtype), strip_layout(rows, n, dtype.width))


def repeated(strip: cute.Tensor, times: int) -> cute.Tensor:
    """A strip (rows, n) as (rows * times, n): the same memory again for further rows."""
    assert isinstance(strip.layout, cute.ComposedLayout)
    outer = strip.layout.outer
    shape, stride = ((outer.shape[0], times), outer.shape[1]), ((outer.stride[0], 0), outer.stride[1])
    layout = cute.make_composed_layout(strip.layout.inner, 0, cute.make_layout(shape, stride=stride))
    return cute.make_tensor(strip.iterator, layout)


class TeamTile(Tile):
    """A tile of one of the teams of a block: `team` of `teams`."""

    def __init__(self, grid: ThreadGrid, extents: Any, place: Place, team: Team, number: Any, teams: int) -> None:
        super().__init__(grid, extents, place, walks=True, thread=team.thread)
        self.team, self.number, self.teams = team, number, teams

    def shared(self, dtype: Any, count: int) -> Any:
        layout = cute.make_layout((count, self.teams))
        return cutlass.utils.SmemAllocator().allocate_tensor(dtype, layout)[None, self.number]

    def sync(self) -> None:
        self.team.sync()


@cute.jit
def run_epilogue(
    sums: cute.Tensor, write: Any, strip: cute.Tensor, tile: Any, arguments: Any, fused: cutlass.Constexpr,
    strips: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Run the epilogue on a team's `sums` of `tile`, of which `write(number)` puts one of `strips` into `strip`."""
    epilogue, grid = fused.epilogue, fused.grid
    states = epilogue.begin(tile, arguments)
    first = tile.place.m
    for number in cutlass.range_constexpr(strips):
        here = tile.at(first + number * grid.tile_m)
        fetched = epilogue.begin_loop(here, states)
        write(number)
        here.sync()
        held = cute.make_rmem_tensor(grid.shape, sums.element_type)
        for r in cutlass.range_constexpr(grid.rows):
            for c in cutlass.range_constexpr(grid.columns):
                vector = here.local_columns[c] // grid.vector
                cute.autovec_copy(
                    cute.local_tile(strip[here.local_rows[r], None], (grid.vector,), (vector,)), held[None, c, r]
                )
        step = here.step(here.row_range, here.column_range, held.load())
        epilogue.end_loop(step, states, epilogue.visit(step, states, fetched))
        here.sync()
    epilogue.end(tile, states)
