"""Cross entropy of rows of logits: one read of each row, and for the gradient one more and one write."""

from __future__ import annotations

import math
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.launching import CONSTANT, NUMBERS, RESULT, ROWS, SCALAR, RowKernel
from tilewright.kernels.plans import RowPlan, reading_plan
from tilewright.kernels.rows import RowTile
from tilewright.kernels.softmax_online import finite, over_row, softmax_sums
from tilewright.lib.comm.block import block_allreduce

_NAN = float("nan")
_TOTAL_THREADS = 1024
MOST_TOTALED = 1 << 16
"""Rows that `cross_entropy_total` is for: one block adds up their losses."""


@cute.kernel
def cross_entropy_kernel(
    loss: cute.Tensor, lse: Any, x: cute.Tensor, target: cute.Tensor, ignore_index: cute.Int64,
    smoothing: cute.Float64, smooths: cutlass.Constexpr[bool], plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Loss and log(sum(exp(x))) of a row; the latter where `lse` is there."""
    tile = RowTile(plan, x.shape)
    parts = [tile.load(x)] if plan.turns == 1 else []
    wanted = cute.Int64(target[tile.row])
    picked = _picked(x, tile.row, wanted)
    if cutlass.const_expr(plan.turns == 1):
        tile.landed()
        own = [tile.folded(parts, lambda item: item, rows.add, 0.0)] if smooths else []
        base, total, sums = softmax_sums(tile, parts[0], own)
    else:
        base, total, sums = _streamed(tile, x, smooths)
    logarithm = base + cute.math.log(total)
    value = logarithm - picked
    for all_ in sums:
        kind = type(logarithm)
        value += kind(smoothing) * (picked - all_ / kind(tile.columns))
    tile.store_number(loss, _unless(wanted == ignore_index, value))
    if cutlass.const_expr(lse is not None):
        tile.store_number(lse, logarithm)


@cute.jit
def _streamed(tile: cutlass.Constexpr[Any], x: cute.Tensor, smooths: cutlass.Constexpr[bool]) -> Any:
    """`softmax_sums` of a row that goes by in turns, none of which is held."""
    kind = rows.computing_type(x.element_type)
    top, total, plain = finite(kind(-math.inf)), kind(0.0), kind(0.0)
    for turn in cutlass.range(tile.plan.turns):
        here = tile.turn(turn)
        part = here.load(x)
        new = cute.arch.fmax(top, here.folded([part], lambda item: item, cute.arch.fmax, -math.inf))
        fresh = here.folded([part], lambda item: rows.exp(item - new), rows.add, 0.0)  # noqa: B023  (traced at once)
        total = total * rows.exp_of_number(top - new) + fresh
        if cutlass.const_expr(smooths):
            plain = plain + here.folded([part], lambda item: item, rows.add, 0.0)
        top = new
    own = cute.arch.warp_reduction_max(top, threads_in_group=tile.plan.lanes)
    total = total * rows.exp_of_number(top - own)
    return over_row(tile, own, [total, plain] if smooths else [total])


@cute.jit
def _picked(x: cute.Tensor, row: Any, wanted: Any) -> Any:
    """The logit of the target; NaN where it names no column."""
    picked = rows.computing_type(x.element_type)(_NAN)
    if wanted >= 0 and wanted < x.shape[1]:
        picked = x[row, wanted].to(rows.computing_type(x.element_type))
    return picked


@cute.jit
def _unless(condition: Any, value: Any) -> Any:
    return type(value)(0.0) if condition else value


@cute.kernel
def cross_entropy_total_kernel(
    total: cute.Tensor, count: Any, loss: cute.Tensor, target: cute.Tensor, ignore_index: cute.Int64,
    averages: cutlass.Constexpr[bool],
) -> None:  # fmt: skip
    """The sum of the losses, or their mean over rows that count; `count`, where it is there, has how many these are."""
    kind = loss.element_type
    thread = cute.arch.thread_idx()[0]
    own, counted = kind(0.0), cute.Int32(0)
    for row in cutlass.range(thread, loss.shape[0], _TOTAL_THREADS):
        own += loss[row]
        counted += cute.Int32(cute.Int64(target[row]) != ignore_index)
    whole, rows_counted = block_allreduce((own, counted))
    if thread == 0:
        total[0] = whole / kind(rows_counted) if cutlass.const_expr(averages) else whole
        if cutlass.const_expr(count is not None):
            count[0] = kind(rows_counted)


@cute.kernel
def cross_entropy_backward_kernel(
    dx: cute.Tensor, grad: cute.Tensor, x: cute.Tensor, target: cute.Tensor, lse: cute.Tensor,
    ignore_index: cute.Int64, smoothing: cute.Float64, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """The gradient of a row, of which each block may take a part alone."""
    tile = RowTile(plan, x.shape, exchanges=0)
    part = tile.load(x)
    wanted, kind = cute.Int64(target[tile.row]), rows.computing_type(x.element_type)
    slope = _unless(wanted == ignore_index, grad[tile.row].to(kind))
    logarithm = lse[tile.row].to(kind)
    spread = kind(smoothing) / kind(tile.columns) * slope
    hit = slope - kind(smoothing) * slope
    tile.landed()

    def gradient(number: Any, item: Any) -> Any:
        slopes = rows.exp(item - logarithm) * slope - spread
        return _less_at(slopes, wanted - tile.column(number), hit)

    tile.store_each(dx, [part], gradient)


def _less_at(vector: Any, place: Any, number: Any) -> Any:
    """The vector with `number` taken from its element `place`, if it has one."""
    items = [_chosen(place == index, item - number, item) for index, item in enumerate(vector)]
    return cute.TensorSSA.from_elements(items)


@cute.jit
def _chosen(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


@cute.jit
def launch_cross_entropy(
    loss: cute.Tensor, lse: Any, x: cute.Tensor, target: cute.Tensor, ignore_index: cute.Int64,
    smoothing: cute.Float64, smooths: cutlass.Constexpr[bool], plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch on x (rows, N) and numbers of rows."""
    kernel = cross_entropy_kernel(loss, lse, x, target, ignore_index, smoothing, smooths, plan)
    kernel.launch(**rows.grid_of(plan, x))


@cute.jit
def launch_cross_entropy_total(
    total: cute.Tensor, count: Any, loss: cute.Tensor, lse: Any, x: cute.Tensor, target: cute.Tensor,
    ignore_index: cute.Int64, smoothing: cute.Float64, smooths: cutlass.Constexpr[bool],
    averages: cutlass.Constexpr[bool], plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch on x (rows, N), numbers of rows, and single numbers: the losses, then what they come to."""
    launch_cross_entropy(loss, lse, x, target, ignore_index, smoothing, smooths, plan)
    totals = cross_entropy_total_kernel(total, count, loss, target, ignore_index, averages)
    totals.launch(grid=(1, 1, 1), block=(_TOTAL_THREADS, 1, 1))


@cute.jit
def launch_cross_entropy_backward(
    dx: cute.Tensor, grad: cute.Tensor, x: cute.Tensor, target: cute.Tensor, lse: cute.Tensor,
    ignore_index: cute.Int64, smoothing: cute.Float64, plan: cutlass.Constexpr[RowPlan],
) -> None:  # fmt: skip
    """Launch on x (rows, N) and numbers of rows."""
    kernel = cross_entropy_backward_kernel(dx, grad, x, target, lse, ignore_index, smoothing, plan)
    kernel.launch(**rows.grid_of(plan, x, exchanges=0))


cross_entropy = RowKernel(
    launch_cross_entropy, (NUMBERS, NUMBERS, ROWS, NUMBERS, SCALAR, SCALAR, CONSTANT), reading_plan
)
cross_entropy_backward = RowKernel(
    launch_cross_entropy_backward, (RESULT, NUMBERS, ROWS, NUMBERS, NUMBERS, SCALAR, SCALAR)
)
cross_entropy_total = RowKernel(
    launch_cross_entropy_total,
    (NUMBERS, NUMBERS, NUMBERS, NUMBERS, ROWS, NUMBERS, SCALAR, SCALAR, CONSTANT, CONSTANT),
    reading_plan,
    tuned_as="cross_entropy",
)
