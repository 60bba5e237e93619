"""RMSNorm of rows, with a residual: one read and one write of each."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import norms, rows
from tilewright.kernels.launching import COLUMNS, NUMBERS, RESULT, ROWS, SCALAR, RowKernel
from tilewright.kernels.rows import RowTile


@cute.kernel
def rmsnorm_kernel(
    out: cute.Tensor, total: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any, eps: cute.Float64,
    plan: cutlass.Constexpr,
):  # fmt: skip
    tile = RowTile(plan, x.shape)
    held = norms.entered(tile, x, residual, total)
    factor = norms.inverse_rms(tile, held, tile.columns, eps)
    if cutlass.const_expr(rstd is not None):
        tile.store_number(rstd, factor)
    tile.store(out, norms.scaled(tile, [item * factor for item in held], weight, bias, x.element_type))


@cute.jit
def launch_rmsnorm(
    out: cute.Tensor, total: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any, eps: cute.Float64,
    plan: cutlass.Constexpr,
):  # fmt: skip
    rmsnorm_kernel(out, total, rstd, x, weight, bias, residual, eps, plan).launch(**rows.grid_of(plan, x))


rmsnorm = RowKernel(launch_rmsnorm, (RESULT, RESULT, NUMBERS, ROWS, COLUMNS, COLUMNS, ROWS, SCALAR))
