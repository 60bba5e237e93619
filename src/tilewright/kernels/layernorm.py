"""LayerNorm of rows, with a residual: one read and one write of each."""

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
def layernorm_kernel(
    out: cute.Tensor, total: Any, mean: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any,
    eps: cute.Float64, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """LayerNorm of x + residual; that sum to `total`, the moments to `mean` and `rstd`, where they are there."""
    tile = RowTile(plan, x.shape)
    parts = norms.entered(tile, x, residual, total)
    centre, factor = norms.moments(tile, parts, tile.columns, eps)
    if cutlass.const_expr(mean is not None):
        tile.store_number(mean, centre)
        tile.store_number(rstd, factor)

    def normal(number: Any, *items: Any) -> Any:
        return norms.scaled(tile, number, (rows.tree(items, rows.add) - centre) * factor, weight, bias)

    tile.store_each(out, parts, normal)


@cute.jit
def launch_layernorm(
    out: cute.Tensor, total: Any, mean: Any, rstd: Any, x: cute.Tensor, weight: Any, bias: Any, residual: Any,
    eps: cute.Float64, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch on (rows, N) tensors; weight and bias (N)."""
    kernel = layernorm_kernel(out, total, mean, rstd, x, weight, bias, residual, eps, plan)
    kernel.launch(**rows.grid_of(plan, x))


layernorm = RowKernel(launch_layernorm, (RESULT, RESULT, NUMBERS, NUMBERS, ROWS, COLUMNS, COLUMNS, ROWS, SCALAR))


@cute.kernel
def layernorm_backward_kernel(
    dx: cute.Tensor, weights: Any, biases: Any, grad: cute.Tensor, grad_total: Any, x: cute.Tensor, weight: Any,
    mean: cute.Tensor, rstd: cute.Tensor, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """dx, and what the block saw of the gradients of weight and bias."""
    tile = RowTile(plan, x.shape, exchanges=2)
    norms.backward(tile, norms.Backward(dx, weights, biases, grad, grad_total, x, weight, mean, rstd))


@cute.jit
def launch_layernorm_backward(
    dx: cute.Tensor, weights: Any, biases: Any, grad: cute.Tensor, grad_total: Any, x: cute.Tensor, weight: Any,
    mean: cute.Tensor, rstd: cute.Tensor, blocks: cute.Int32, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch `blocks` blocks on (rows, N) tensors."""
    kernel = layernorm_backward_kernel(dx, weights, biases, grad, grad_total, x, weight, mean, rstd, plan)
    kernel.launch(**rows.persistent_grid(plan, blocks))


_KINDS = (RESULT, PARTS, PARTS, ROWS, ROWS, ROWS, COLUMNS, NUMBERS, NUMBERS, SCALAR)
_passes = SummingKernel(RowKernel(launch_layernorm_backward, _KINDS, gathering_plan))


def layernorm_backward(
    dx: Any, dweight: Any, dbias: Any, grad: Any, grad_total: Any, x: Any, weight: Any, mean: Any, rstd: Any,
    plan: Any = None,
) -> None:  # fmt: skip
    """Write the gradients of x, weight and bias; see `norms.backward`. Optional: dweight, dbias, grad_total, weight."""
    _passes((dx,), (dweight, dbias), (grad, grad_total, x, weight, mean, rstd), plan)
