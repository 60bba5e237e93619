"""Softmax of rows: one read and one write of each, whatever its length.

A warp takes the maximum of what its threads hold, and the sum of exp(x - maximum); then all warps of the row exchange
both numbers at once. With m the greatest maximum, a warp's sum counts exp(its maximum - m) times, and so do the powers
that its threads hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.launching import RESULT, ROWS, RowKernel
from tilewright.kernels.plans import RowPlan
from tilewright.kernels.rows import Part, RowTile

_LEAST = {cute.Float32: -3.4028234663852886e38, cute.Float64: -1.7976931348623157e308}


@cute.kernel
def softmax_online_kernel(out: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr[RowPlan]) -> None:
    """Softmax of a row by `plan.threads` threads of each of `plan.cluster` blocks."""
    tile = RowTile(plan, x.shape)
    part = tile.load(x)
    tile.landed()
    if cutlass.const_expr(plan.stages > 0):
        base, total, _ = softmax_sums(tile, part)
        factor = rows.reciprocal(total)
        tile.store_each(out, [part], lambda _, item: rows.exp(item - base) * factor)
    else:
        own = _warp_maximum(tile, part)
        base = finite(own)
        powers = tile.mapped(part, lambda item: rows.exp(item - base), 0.0)
        greatest, total, _ = over_row(tile, own, [tile.folded([powers], lambda item: item, rows.add, 0.0)])
        factor = rows.reciprocal(total)
        if cutlass.const_expr(plan.partials > 1):
            factor *= rows.exp_of_number(base - greatest)
        tile.store_each(out, [powers], lambda _, item: item * factor)


def _warp_maximum(tile: RowTile, part: Part) -> Any:
    own = tile.folded([part], lambda item: item, cute.arch.fmax, -math.inf)
    return cute.arch.warp_reduction_max(own, threads_in_group=tile.plan.lanes)


def softmax_sums(tile: RowTile, part: Part, sums: Sequence[Any] = ()) -> tuple[Any, Any, list[Any]]:
    """For the row of which a thread holds `part`: its maximum m, the sum of exp(x - m), and the sums of `sums`.

    A maximum of -inf counts as the least finite number, so that exp(-inf - m) is 0.
    """
    own = _warp_maximum(tile, part)
    base = finite(own)
    total = tile.folded([part], lambda item: rows.exp(item - base), rows.add, 0.0)
    return over_row(tile, own, [total, *sums])


def over_row(tile: RowTile, own: Any, parts: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
    """What `softmax_sums` gives, from a warp's maximum, and each thread's sum of exp(x - maximum) and other sums."""
    lanes, group = tile.plan.lanes, tile.plan.group
    total, *rest = [cute.arch.warp_reduction_sum(each, threads_in_group=lanes) for each in parts]
    if tile.plan.partials == 1:
        return finite(own), total, rest
    maxima, totals, *others = tile.gathered([own, total, *rest])
    greatest = finite(cute.arch.warp_reduction_max(rows.tree(maxima, cute.arch.fmax), threads_in_group=group))
    scaled = [each * rows.exp_of_number(top - greatest) for top, each in zip(maxima, totals, strict=True)]
    total, *rest = [
        cute.arch.warp_reduction_sum(rows.tree(each, rows.add), threads_in_group=group) for each in (scaled, *others)
    ]
    return greatest, total, rest


def finite(number: Any) -> Any:
    """The number, and the least finite one for -inf."""
    return cute.arch.fmax(number, type(number)(_LEAST[type(number)]))


@cute.kernel
def softmax_online_backward_kernel(
    dx: cute.Tensor, grad: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr[RowPlan]
) -> None:
    """dx = y * (grad - sum(grad * y)) of a row."""
    tile = RowTile(plan, y.shape)
    parts = [tile.load(grad), tile.load(y)]
    tile.landed()
    own = tile.folded(parts, lambda slope, result: slope * result, rows.add, 0.0)
    (inner,) = tile.sums([own])
    tile.store_each(dx, parts, lambda _, slope, result: result * (slope - inner))


@cute.jit
def launch_softmax_online(out: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr[RowPlan]) -> None:
    """Launch on (rows, N) tensors."""
    softmax_online_kernel(out, x, plan).launch(**rows.grid_of(plan, x))


@cute.jit
def launch_softmax_online_backward(
    dx: cute.Tensor, grad: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr[RowPlan]
) -> None:
    """Launch on (rows, N) tensors."""
    softmax_online_backward_kernel(dx, grad, y, plan).launch(**rows.grid_of(plan, y))


softmax_online = RowKernel(launch_softmax_online, (RESULT, ROWS))
softmax_online_backward = RowKernel(launch_softmax_online_backward, (RESULT, ROWS, ROWS))
