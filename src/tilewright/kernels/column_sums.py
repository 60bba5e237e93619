"""Sums of columns: the second pass of gradients that blocks have summed over their rows."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int64, utils
from tilewright.kernels import rows
from tilewright.kernels.launching import COLUMNS, ROWS, RowKernel
from tilewright.kernels.plans import WARP, RowPlan

_WARPS = 32


@cute.kernel
def column_sums_kernel(out: cute.Tensor, parts: cute.Tensor) -> None:
    """Warp w of a block sums rows w, w + 32, ... of 32 columns; then one warp the sums of all."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    count, columns = parts.shape
    column = Int64(cute.arch.block_idx()[0]) * WARP + lane
    inside = column < columns
    kind = parts.element_type
    shared = utils.SmemAllocator().allocate_tensor(kind, cute.make_layout((_WARPS, WARP), stride=(WARP + 1, 1)))
    total = kind(0.0)
    read = cute.math.min(column, columns - 1)  # no branch, so that several loads are under way
    for row in cutlass.range(Int64(warp), count, _WARPS, unroll=8):
        total += parts[row, read]
    shared[warp, lane] = total
    cute.arch.sync_threads()
    if warp == 0 and inside:
        out[column] = rows.tree([shared[number, lane] for number in range(_WARPS)], rows.add).to(out.element_type)


@cute.jit
def launch_column_sums(out: cute.Tensor, parts: cute.Tensor, plan: cutlass.Constexpr[RowPlan]) -> None:
    """Launch on parts (rows, N) and out (N)."""
    blocks = cute.ceil_div(parts.shape[1], WARP)
    column_sums_kernel(out, parts).launch(grid=(blocks, 1, 1), block=(_WARPS * WARP, 1, 1))


def _plan(*_: Any, **__: Any) -> RowPlan:
    return RowPlan(0, WARP, 1, 1, 1)


column_sums = RowKernel(launch_column_sums, (COLUMNS, ROWS), _plan)
