"""What RMSNorm and LayerNorm share: device code over a tile of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.rows import Part, RowTile

EARLY_REGISTERS, KEPT_REGISTERS = 16, 8  # of weight and bias that a thread reads early, or keeps from row to row


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


class Affine:
    """What a norm multiplies with and adds: weight and bias, tensors (columns) that all rows share, or None.

    A long row's part of them is not in the L1 cache. They are read before the row's warps exchange what they have, so
    that the wait for both is one, where `most` registers suffice.
    """

    def __init__(self, tile: RowTile, weight: Any, bias: Any, most: int = EARLY_REGISTERS) -> None:
        self._tile, self._tensors = tile, (weight, bias)
        plan, given = tile.plan, [item for item in self._tensors if item is not None]
        bits = plan.vector * plan.count * sum(item.element_type.width for item in given)
        early = plan.cluster > 1 and not plan.stages and bits <= 32 * most
        self._held = [
            [tile.shared_vector(item, number) for number in range(plan.count)] if early and item is not None else None
            for item in self._tensors
        ]

    def __call__(self, number: Any, vector: Any) -> Any:
        """The vector of access `number` times weight plus bias."""
        with cute.fp_contract(False):  # an fma keeps weight and bias in registers at once: a block fewer fits
            weight, bias = (self._of(place, number, vector) for place in (0, 1))
            vector = vector if weight is None else vector * weight
            return vector if bias is None else vector + bias

    def _of(self, place: int, number: Any, like: Any) -> Any:
        if self._tensors[place] is None:
            return None
        held = self._held[place]
        found = self._tile.shared_vector(self._tensors[place], number) if held is None else held[number]
        return found.to(like.dtype)


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
    affine, numbers = Affine(tile, tensors.weight, None, KEPT_REGISTERS), _numbers(tile, tensors)
    for group in cutlass.range(cutlass.Int64(tile.group), groups, cutlass.Int64(blocks)):
        cute.arch.cp_async_wait_group(stages - 1)
        stage, ahead = turn % stages, _numbers(tile.at(cute.math.min(group + blocks, groups - 1)), tensors)
        parts = [ring.part(stage) for ring in rings]
        sums = _one_row(tile.at(group), turn, parts, numbers, sums, affine, tensors)
        _fill(tile, rings, tensors, stage, group + stages * blocks, groups)
        numbers = ahead
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
    affine, numbers = Affine(tile, tensors.weight, None, KEPT_REGISTERS), _numbers(tile, tensors)
    vectors = [tile.load(tensor).vectors for tensor in tensors.read()]
    for group in cutlass.range(cutlass.Int64(tile.group), groups, cutlass.Int64(blocks)):
        seat = tile.at(cute.math.min(group + blocks, last))
        following, ahead = [seat.load(tensor).vectors for tensor in tensors.read()], _numbers(seat, tensors)
        parts = [rows.Part(tensor.element_type, held) for tensor, held in zip(tensors.read(), vectors, strict=True)]
        sums = _one_row(tile.at(group), turn, parts, numbers, sums, affine, tensors)
        vectors, numbers = following, ahead
        turn += 1
    return sums


def _numbers(seat: RowTile, tensors: Backward) -> list[Any]:
    """What the forward pass kept of a row: rstd, and the mean where it is centred."""
    return [tensor[seat.row] for tensor in (tensors.rstd, tensors.mean) if tensor is not None]


def _one_row(
    seat: RowTile, turn: Any, parts: Sequence[Part], numbers: Sequence[Any], sums: Any, affine: Affine,
    tensors: Backward,
) -> Any:  # fmt: skip
    kind = rows.computing_type(tensors.x.element_type)
    factor, centre = (*[number.to(kind) for number in numbers], None)[:2]

    def taken(number: Any, value: Any, slope: Any) -> tuple[Any, Any, Any]:
        """n, grad, grad * weight of an access."""
        normal = (value if centre is None else value - centre) * factor
        slope = seat.filled_row(number, slope, 0.0)
        return normal, slope, affine(number, slope)

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
