"""Pass Name: partition
Purpose: Divide the blocks of the launch among cores.

Input Expectations:
- tt.grid: the extents of the launch

Output Guarantees:
- tt.work_partition: the grid, how many blocks there are, and for each core its place, its first block and how many
- The parts are disjoint and cover all blocks; they differ by one block at most; idle cores have count 0
- tt.core_grid: columns and rows of cores

Example:
    Before: # tt.grid = (5, 1, 1), on --core-grid 4x1
    After:  # tt.work_partition = {'total': 5, 'cores': [{'core': [0, 0], 'start': 0, 'count': 2}, ...]}

Testing:
    pytest tests/tenstorrent/test_partition.py
"""

from __future__ import annotations

import math
from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import PrimFunc


@func_pass(opt_level=0)
def Partition(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
    """Give each core a run of consecutive blocks."""
    if "tt.grid" not in func.attrs:
        raise PassError(f"{func.name} has no grid", hint='it is launched, or has the attribute "tt.grid"')
    grid, (columns, rows) = tuple(func.attrs["tt.grid"]), ctx.core_grid
    most = ctx.core.grid
    if columns > most[0] or rows > most[1]:
        raise PassError(
            f"{columns}x{rows} cores, {ctx.core.name} has {most[0]}x{most[1]}", hint=f"--core-grid {most[0]}x{most[1]}"
        )
    total, cores = math.prod(grid), columns * rows
    few, more = divmod(total, cores)
    counts = [few + (number < more) for number in range(cores)]
    starts = [sum(counts[:number]) for number in range(cores)]
    parts = [
        {"core": [number % columns, number // columns], "start": start, "count": count}
        for number, (start, count) in enumerate(zip(starts, counts, strict=True))
    ]
    return func.with_attr({
        "tt.core_grid": [columns, rows],
        "tt.work_partition": {"grid": list(grid), "total": total, "cores": parts},
    })  # fmt: skip


known(Partition)
