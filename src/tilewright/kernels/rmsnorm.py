"""RMSNorm of rows, with a residual: one read and one write of each."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import norms, rows
from tilewright.kernels.launching import COLUMNS, NUMBERS, PARTS, RESULT, ROWS, SCALAR, RowKernel
from tilewright.kernels.partial_sums import SummingKernel
from tilewright.kernels.plans import RowPlan, gathering_plan
from tilewright.kernels.rows import RowTile


@cute.kernel
def rmsnorm_kernel(
    out: cute.Tensor, total: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any, eps: cute.Float64,
    plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """RMSNorm of x + residual; that sum to `total`, 1 / rms to `rstd`, where they are there."""
    tile = RowTile(plan, x.shape)
    parts = norms.entered(tile, x, residual, total)
    factor = norms.inverse_rms(tile, parts, tile.columns, eps)
    if cutlass.const_expr(rstd is not None):
        tile.store_number(rstd, factor)

    def normal(number: Any, *items: Any) -> Any:
        return norms.scaled(tile, number, rows.tree(items, rows.add) * factor, weight, bias)

    tile.store_each(out, parts, normal)


@cute.jit
def launch_rmsnorm(
    out: cute.Tensor, total: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any, eps: cute.Float64,
    plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch on (rows, N) tensors; weight and bias (N)."""
    rmsnorm_kernel(out, total, rstd, x, weight, bias, residual, eps, plan).launch(**rows.grid_of(plan, x))


rmsnorm = RowKernel(launch_rmsnorm, (RESULT, RESULT, NUMBERS, ROWS, COLUMNS, COLUMNS, ROWS, SCALAR))


@cute.kernel
def rmsnorm_backward_kernel(
    dx: cute.Tensor, weights: Any, biases: Any, grad: cute.Tensor, grad_total: Any, x: cute.Tensor, weight: Any,
    rstd: cute.Tensor, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """dx, and what the block saw of the gradients of weight and bias."""
    tile = RowTile(plan, x.shape, exchanges=2)
    norms.backward(tile, norms.Backward(dx, weights, biases, grad, grad_total, x, weight, None, rstd))


@cute.jit
def launch_rmsnorm_backward(
    dx: cute.Tensor, weights: Any, biases: Any, grad: cute.Tensor, grad_total: Any, x: cute.Tensor, weight: Any,
    rstd: cute.Tensor, blocks: cute.Int32, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch `blocks` blocks on (rows, N) tensors."""
    kernel = rmsnorm_backward_kernel(dx, weights, biases, grad, grad_total, x, weight, rstd, plan)
    kernel.launch(**rows.persistent_grid(plan, blocks))


_KINDS = (RESULT, PARTS, PARTS, ROWS, ROWS, ROWS, COLUMNS, NUMBERS, SCALAR)
_passes = SummingKernel(RowKernel(launch_rmsnorm_backward, _KINDS, gathering_plan))


def rmsnorm_backward(
    dx: Any, dweight: Any, dbias: Any, grad: Any, grad_total: Any, x: Any, weight: Any, rstd: Any, plan: Any = None
) -> None:
    """Write the gradients of x, weight and bias; see `norms.backward`. Tensors may be None but dx, grad, x and rstd."""
    _passes((dx,), (dweight, dbias), (grad, grad_total, x, weight, rstd), plan)
