"""What RMSNorm and LayerNorm share: device code over a tile of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.rows import Part, RowTile


def entered(tile: RowTile, x: Any, residual: Any, total: Any) -> list[Part]:
    """The thread's parts of x and residual, whose sum is written to `total`; residual and total may be None."""
    parts = [tile.load(tensor) for tensor in (x, residual) if tensor is not None]
    tile.landed()
    if total is not None:
        tile.store_each(total, parts, lambda _, *items: rows.tree(items, rows.add))
    return parts


def inverse_rms(tile: RowTile, parts: Sequence[Part], columns: Any, eps: Any) -> Any:
    """1 / sqrt(mean(x²) + eps) of the row x that is the sum of the parts."""

    def square(*items: Any) -> Any:
        item = rows.tree(items, rows.add)
        return item * item

    (squares,) = tile.sums([tile.folded(parts, square, rows.add, 0.0)])
    return inverse_root(squares, columns, eps)


def inverse_root(squares: Any, columns: Any, eps: Any) -> Any:
    """1 / sqrt(squares / columns + eps)."""
    kind = type(squares)
    return cute.math.rsqrt(squares / kind(columns) + kind(eps))


def moments(tile: RowTile, parts: Sequence[Part], columns: Any, eps: Any) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) of the row that is the sum of the parts.

    A warp sums its elements, then the squares of their distance from its own mean; the warps of a row exchange both.
    The squares of all are those of each about its mean, and count * (its mean - the row's mean)² (Chan, Golub and
    LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    """
    plan = tile.plan
    total = tile.folded(parts, lambda *items: rows.tree(items, rows.add), rows.add, 0.0)
    kind = type(total)
    total = cute.arch.warp_reduction_sum(total, threads_in_group=plan.lanes)
    count = kind(tile.warp_count())
    mean = total / count

    def square(*items: Any) -> Any:
        distance = rows.tree(items, rows.add) - mean
        return distance * distance

    squares = tile.folded(parts, square, rows.add, 0.0)
    squares = cute.arch.warp_reduction_sum(squares, threads_in_group=plan.lanes)
    if plan.partials == 1:
        return mean, inverse_root(squares, columns, eps)
    totals, counts, parts = tile.gathered([total, count, squares])
    row_mean = _sum(tile, totals) / kind(columns)
    about = [
        part + number * (sum_ / number - row_mean) * (sum_ / number - row_mean)
        for part, number, sum_ in zip(parts, counts, totals, strict=True)
    ]
    return row_mean, inverse_root(_sum(tile, about), columns, eps)


def _sum(tile: RowTile, parts: Sequence[Any]) -> Any:
    return cute.arch.warp_reduction_sum(rows.tree(parts, rows.add), threads_in_group=tile.plan.group)


def scaled(tile: RowTile, number: Any, vector: Any, weight: Any, bias: Any) -> Any:
    """The vector of access `number` times `weight` plus `bias`, tensors (columns) or None."""
    if weight is not None:
        vector = vector * tile.of_columns(weight, number, vector)
    return vector if bias is None else vector + tile.of_columns(bias, number, vector)


# Backward


@dataclass(frozen=True)
class Backward:
    """The tensors of a norm's backward; None for those that are not there.

    `weights` and `biases` (blocks * rows of a block, columns) take what a thread row saw of the gradients of weight and
    bias.
    """

    dx: Any
    weights: Any
    biases: Any
    grad: Any
    grad_total: Any
    x: Any
    weight: Any
    mean: Any
    rstd: Any

    def loaded(self, seat: RowTile) -> list[list[Any]]:
        """The thread's elements of x, grad and grad_total, as they are stored."""
        return [seat.load(tensor).vectors for tensor in (self.x, self.grad, self.grad_total) if tensor is not None]


def backward(tile: RowTile, tensors: Backward) -> None:
    """The gradients of a norm: a block goes through every `blocks`th group of rows, and loads the next one early.

    With n = (x - mean) * rstd and g = grad * weight, dx = rstd * (g - mean(g) - n * mean(g * n)); RMSNorm, whose `mean`
    is None, has no mean(g). `grad_total`, where given, is added to dx.
    """
    plan = tile.plan
    groups, blocks = cute.ceil_div(tile.rows, plan.rows), cute.arch.grid_dim()[0] // plan.cluster
    zero = cute.full(plan.vector, 0.0, rows.computing_type(tensors.x.element_type))
    sums = [[zero] * plan.count if part is not None else [] for part in (tensors.weights, tensors.biases)]
    tile.begin()
    sums = _through_rows(tile, groups, blocks, sums, tensors)
    own = tile.group * plan.rows + tile.place
    for part, total in zip((tensors.weights, tensors.biases), sums, strict=True):
        if part is not None:
            tile.store_at(part, own, total)


@cute.jit
def _through_rows(tile: Any, groups: Any, blocks: Any, sums: Any, tensors: cutlass.Constexpr[Backward]) -> Any:
    turn, last = cutlass.Int32(0), groups - 1
    vectors = tensors.loaded(tile)
    for group in cutlass.range(cutlass.Int64(tile.group), groups, cutlass.Int64(blocks)):
        following = tensors.loaded(tile.at(cute.math.min(group + blocks, last)))
        sums = _one_row(tile.at(group), turn, vectors, sums, tensors)
        vectors = following
        turn += 1
    return sums


def _one_row(seat: RowTile, turn: Any, vectors: Any, sums: Any, tensors: Backward) -> Any:
    dtype = tensors.x.element_type
    kind = rows.computing_type(dtype)
    values, slopes, *more = [[item.to(kind) for item in part] for part in vectors]
    slopes = seat.filled_rows(slopes, 0.0)
    factor, centre = tensors.rstd[seat.row].to(kind), None
    if tensors.mean is not None:
        centre = tensors.mean[seat.row].to(kind)
        values = [item - centre for item in values]
    normal = [item * factor for item in values]
    weights, biases = sums
    weights = [total + slope * item for total, slope, item in zip(weights, slopes, normal, strict=False)]
    biases = [total + slope for total, slope in zip(biases, slopes, strict=False)]
    weighted = [scaled(seat, number, item, tensors.weight, None) for number, item in enumerate(slopes)]
    wanted = [rows.tree(rows.elements([a * b for a, b in zip(weighted, normal, strict=True)]), rows.add)]
    if centre is not None:
        wanted.append(rows.tree(rows.elements(weighted), rows.add))
    along, *offset = [total / kind(seat.columns) for total in seat.sums(wanted, turn)]
    found = [slope - item * along for slope, item in zip(weighted, normal, strict=True)]
    for mean in offset:
        found = [item - mean for item in found]
    found = [item * factor for item in found]
    for item in more:
        found = [a + b for a, b in zip(found, item, strict=True)]
    seat.store_at(tensors.dx, seat.row, found, seat.inside)
    return [weights, biases]
