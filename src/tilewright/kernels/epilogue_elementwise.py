"""The fused elementwise and reduction kernel of an epilogue: `accum` is a tensor that it loads like the others.

A block computes a tile, all loads of which it issues before it computes. Where rows are reduced, a block walks down
over several tiles, and keeps what it has of the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.tile import Place, ThreadGrid, Tile


@dataclass(frozen=True)
class ElementwisePlan:
    """What is computed, and how threads lie over it.

    Attributes:
        epilogue: the operations.
        grid: the threads of a block.
        walks: whether a block goes down over several tiles.
        resident: blocks that a multiprocessor shall hold at once, which bounds a thread's registers; 0: any number.
    """

    epilogue: Epilogue
    grid: ThreadGrid
    walks: bool = False
    resident: int = 0


def _step(tile: Tile, states: Any, epilogue: Epilogue) -> None:
    fetched = epilogue.begin_loop(tile, states)
    epilogue.end_loop(tile, states, epilogue.visit(tile, states, fetched))


@cute.kernel
def epilogue_elementwise_kernel(arguments: Any, extents: Any, tiles: Any, plan: cutlass.Constexpr) -> None:
    """Compute the epilogue on (M, N, L) = `extents`; a block walks over `tiles` tiles."""
    block, _, _ = cute.arch.block_idx()
    grid, epilogue = plan.grid, plan.epilogue
    m, n, _ = extents
    rows = tiles * grid.tile_m
    parts_m, parts_n = cute.ceil_div(m, rows), cute.ceil_div(n, grid.tile_n)
    part_n, rest = block % parts_n, block // parts_n
    part_m, batch = rest % parts_m, rest // parts_m
    kind = type(m)
    first, column = kind(part_m) * rows, kind(part_n) * grid.tile_n
    place = Place(first, column, batch, part_m, part_n, parts_m, parts_n)
    tile = Tile(grid, extents, place, plan.walks)
    states = epilogue.begin(tile, arguments)
    if cutlass.const_expr(plan.walks):
        last = cute.math.min(first + rows, m)
        for row in cutlass.range(first, last, grid.tile_m):
            _step(tile.at(row), states, epilogue)
    else:
        _step(tile, states, epilogue)
    epilogue.end(tile, states)


@cute.jit
def launch_epilogue_elementwise(arguments: Any, extents: Any, tiles: Any, plan: cutlass.Constexpr) -> None:
    """Launch the kernel and the second passes of its reductions.

    `arguments` are the epilogue's tensors (M, N, batch modes...), workspaces (kept, batch, parts), and numbers.
    """
    m, n, batch = extents
    given = plan.epilogue.grouped(arguments)
    blocks = cute.ceil_div(n, plan.grid.tile_n) * cute.ceil_div(m, tiles * plan.grid.tile_m) * batch
    options: dict[str, Any] = {"min_blocks_per_mp": plan.resident} if plan.resident else {}
    epilogue_elementwise_kernel(given, extents, tiles, plan).launch(
        grid=(blocks, 1, 1), block=(plan.grid.threads, 1, 1), **options
    )
    plan.epilogue.finish(given)
