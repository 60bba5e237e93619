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
    mean = total / cute.arch.fmax(count, kind(1.0))

    def square(*items: Any) -> Any:
        distance = rows.tree(items, rows.add) - mean
        return distance * distance

    squares = tile.folded(parts, square, rows.add, 0.0)
    squares = cute.arch.warp_reduction_sum(squares, threads_in_group=plan.lanes)
    if plan.partials == 1:
        return mean, inverse_root(squares, columns, eps)
    totals, counts, parts = tile.gathered([total, count, squares])
    row_mean = _sum(tile, totals) / kind(columns)
    about = []
    for part, number, sum_ in zip(parts, counts, totals, strict=True):
        distance = sum_ / cute.arch.fmax(number, kind(1.0)) - row_mean
        about.append(part + number * distance * distance)
    return row_mean, inverse_root(_sum(tile, about), columns, eps)


def _sum(tile: RowTile, parts: Sequence[Any]) -> Any:
    return cute.arch.warp_reduction_sum(rows.tree(parts, rows.add), threads_in_group=tile.plan.group)


def scaled(tile: RowTile, number: Any, vector: Any, weight: Any, bias: Any) -> Any:
    """The vector of access `number` times `weight` plus `bias`, tensors (columns) or None."""
    with cute.fp_contract(False):  # an fma keeps weight and bias in registers at once: a block fewer fits
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

    def read(self) -> list[Any]:
        """The tensors of rows that are there: x, grad, grad_total."""
        return [tensor for tensor in (self.x, self.grad, self.grad_total) if tensor is not None]


def backward(tile: RowTile, tensors: Backward) -> None:
    """The gradients of a norm: a block goes through every `blocks`th group of rows, and loads the next ones early.

    With n = (x - mean) * rstd and g = grad * weight, dx = rstd * (g - mean(g) - n * mean(g * n)); RMSNorm, whose `mean`
    is None, has no mean(g). `grad_total`, where given, is added to dx.
    """
    plan = tile.plan
    groups, blocks = cute.ceil_div(tile.rows, plan.rows), cute.arch.grid_dim()[0] // plan.cluster
    zero = cute.full(plan.vector, 0.0, rows.computing_type(tensors.x.element_type))
    sums = [[zero] * plan.count if part is not None else [] for part in (tensors.weights, tensors.biases)]
    through = _through_ring if plan.stages else _through_registers
    tile.begin()
    sums = through(tile, groups, blocks, sums, tensors)
    own = tile.group * plan.rows + tile.place
    for part, total in zip((tensors.weights, tensors.biases), sums, strict=True):
        if part is not None:
            tile.store_at(part, own, total)


@cute.jit
def _through_ring(tile: Any, groups: Any, blocks: Any, sums: Any, tensors: cutlass.Constexpr[Backward]) -> Any:
    """The next `stages` groups wait in shared memory, each thread's part in places of its own."""
    turn, stages = cutlass.Int32(0), tile.plan.stages
    rings = [rows.Ring(tile.plan, tensor.element_type) for tensor in tensors.read()]
    for stage in cutlass.range_constexpr(stages):
        _fill(tile, rings, tensors, stage, cutlass.Int64(tile.group) + stage * blocks, groups)
    for group in cutlass.range(cutlass.Int64(tile.group), groups, cutlass.Int64(blocks)):
        cute.arch.cp_async_wait_group(stages - 1)
        stage = turn % stages
        sums = _one_row(tile.at(group), turn, [ring.part(stage) for ring in rings], sums, tensors)
        _fill(tile, rings, tensors, stage, group + stages * blocks, groups)
        turn += 1
    cute.arch.cp_async_wait_group(0)
    return sums


def _fill(tile: RowTile, rings: Sequence[Any], tensors: Backward, stage: Any, group: Any, groups: Any) -> None:
    """Begin to copy a group of rows; beyond the last group it is the last again, which no one reads."""
    seat = tile.at(cute.math.min(group, groups - 1))
    for ring, tensor in zip(rings, tensors.read(), strict=True):
        ring.fill(stage, seat.sources(tensor))
    cute.arch.cp_async_commit_group()


@cute.jit
def _through_registers(tile: Any, groups: Any, blocks: Any, sums: Any, tensors: cutlass.Constexpr[Backward]) -> Any:
    """The next group is loaded into registers."""
    turn, last = cutlass.Int32(0), groups - 1
    vectors = [tile.load(tensor).vectors for tensor in tensors.read()]
    for group in cutlass.range(cutlass.Int64(tile.group), groups, cutlass.Int64(blocks)):
        seat = tile.at(cute.math.min(group + blocks, last))
        following = [seat.load(tensor).vectors for tensor in tensors.read()]
        parts = [rows.Part(tensor.element_type, held) for tensor, held in zip(tensors.read(), vectors, strict=True)]
        sums = _one_row(tile.at(group), turn, parts, sums, tensors)
        vectors = following
        turn += 1
    return sums


def _one_row(seat: RowTile, turn: Any, parts: Sequence[Part], sums: Any, tensors: Backward) -> Any:
    kind = rows.computing_type(tensors.x.element_type)
    factor = tensors.rstd[seat.row].to(kind)
    centre = tensors.mean[seat.row].to(kind) if tensors.mean is not None else None

    def taken(number: Any, value: Any, slope: Any) -> tuple[Any, Any, Any]:
        """n, grad, grad * weight of an access."""
        normal = (value if centre is None else value - centre) * factor
        slope = seat.filled_row(number, slope, 0.0)
        return normal, slope, scaled(seat, number, slope, tensors.weight, None)

    weights, biases = ([*each] for each in sums)
    along, offset = [], []
    for number in range(seat.plan.count):
        normal, slope, weighted = taken(number, *[part.vector(number) for part in parts[:2]])
        weights[number : number + 1] = [total + slope * normal for total in weights[number : number + 1]]
        biases[number : number + 1] = [total + slope for total in biases[number : number + 1]]
        along.append(weighted * normal)
        offset.append(weighted)
    wanted = [along] if centre is None else [along, offset]
    own = [rows.tree(rows.elements([rows.tree(each, rows.add)]), rows.add) for each in wanted]
    means = [total / kind(seat.columns) for total in seat.sums(own, turn)]

    def gradient(number: Any, value: Any, slope: Any, *more: Any) -> Any:
        normal, _, weighted = taken(number, value, slope)
        found = weighted - normal * means[0]
        for mean in means[1:]:
            found = found - mean
        return rows.tree([found * factor, *more], rows.add)

    seat.store_unrolled(tensors.dx, parts, gradient)
    return [weights, biases]
