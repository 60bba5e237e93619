"""Softmax of rows: one read and one write of each, whatever its length.

A warp takes the maximum of what its threads hold, and the sum of exp(x - maximum); then all warps of the row exchange
both numbers at once. With m the greatest maximum, a warp's sum counts exp(its maximum - m) times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.launching import RESULT, ROWS, RowKernel
from tilewright.kernels.rows import RowTile

_LEAST = {cute.Float32: -3.4028234663852886e38, cute.Float64: -1.7976931348623157e308}


@cute.kernel
def softmax_online_kernel(out: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr) -> None:
    tile = RowTile(plan, x.shape)
    part = tile.load(x)
    base, total, _ = softmax_sums(tile, tile.filled(part.vectors(x.element_type), -math.inf))
    factor = rows.reciprocal(total)
    tile.store(out, [rows.exp(item - base) * factor for item in part.vectors(x.element_type)])


def softmax_sums(tile: RowTile, held: list[Any], sums: Sequence[Any] = ()) -> tuple[Any, Any, list[Any]]:
    """For the row of which a thread holds `held`: its maximum m, the sum of exp(x - m), and the sums of `sums`.

    A maximum of -inf counts as the least finite number, so that exp(-inf - m) is 0.
    """
    lanes, group = tile.plan.lanes, tile.plan.group
    own = rows.tree(rows.elements(held), cute.arch.fmax)
    own = cute.arch.warp_reduction_max(own, threads_in_group=lanes)
    base = _finite(own)
    parts = [rows.tree(rows.elements([rows.exp(item - base) for item in held]), rows.add), *sums]
    total, *rest = [cute.arch.warp_reduction_sum(part, threads_in_group=lanes) for part in parts]
    if tile.plan.partials == 1:
        return base, total, rest
    maxima, totals, *others = tile.gathered([own, total, *rest])
    base = _finite(cute.arch.warp_reduction_max(rows.tree(maxima, cute.arch.fmax), threads_in_group=group))
    scaled = [part * rows.exp_of_number(top - base) for top, part in zip(maxima, totals, strict=True)]
    total, *rest = [
        cute.arch.warp_reduction_sum(rows.tree(part, rows.add), threads_in_group=group) for part in (scaled, *others)
    ]
    return base, total, rest


def _finite(number: Any) -> Any:
    return cute.arch.fmax(number, type(number)(_LEAST[type(number)]))


@cute.kernel
def softmax_online_backward_kernel(dx: cute.Tensor, grad: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr):
    tile = RowTile(plan, y.shape)
    slopes, results = tile.load(grad), tile.load(y)
    pairs = zip(slopes.vectors(y.element_type), results.vectors(y.element_type), strict=True)
    products = tile.filled([slope * result for slope, result in pairs], 0.0)
    (inner,) = tile.sums([rows.tree(rows.elements(products), rows.add)])
    pairs = zip(slopes.vectors(y.element_type), results.vectors(y.element_type), strict=True)
    tile.store(dx, [result * (slope - inner) for slope, result in pairs])


@cute.jit
def launch_softmax_online(out: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr):
    softmax_online_kernel(out, x, plan).launch(**rows.grid_of(plan, x))


@cute.jit
def launch_softmax_online_backward(dx: cute.Tensor, grad: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr):
    softmax_online_backward_kernel(dx, grad, y, plan).launch(**rows.grid_of(plan, y))


softmax_online = RowKernel(launch_softmax_online, (RESULT, ROWS))
softmax_online_backward = RowKernel(launch_softmax_online_backward, (RESULT, ROWS, ROWS))
