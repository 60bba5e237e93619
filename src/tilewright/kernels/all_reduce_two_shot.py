"""The two-shot all-reduce: each rank combines one slice of all ranks' tensors and sends the result to the others.

Each rank sends, as writes, 2 (n - 1) / n of the tensor for n ranks, where the one-shot kernel sends n - 1 times it.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import exchanging
from tilewright.kernels.exchanging import ARRIVED, PUBLISHED, THREADS


@cute.kernel
def two_shot_kernel(
    x: cute.Tensor, out: cute.Tensor, node: Any, slice_length: cute.Int32, count: cute.Int32, plan: cutlass.Constexpr
) -> None:
    """x and out have `count` elements, in slices of `slice_length`, a multiple of the vector; the last may be shorter,
    or have nothing. out may be x."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    epoch = exchanging.epoch_here(node, block, plan)
    part = exchanging.part_of(block, slice_length, plan)
    for k in cutlass.range_constexpr(1, plan.world):
        other = (node.rank + k) % plan.world
        there = exchanging.arrivals(node, other, node.rank, epoch, plan)
        _copy_slice(x, other, exchanging.vectors_at(there, slice_length, plan), None, part, slice_length, count, plan)
    exchanging.raise_flags(node, ARRIVED, epoch, block, thread, plan)
    exchanging.await_flags(node, ARRIVED, epoch, block, thread, plan)
    mine = exchanging.vectors_at(exchanging.slice_of(x, node.rank, slice_length, plan), slice_length, plan)
    targets = [exchanging.vectors_at(exchanging.slice_of(out, node.rank, slice_length, plan), slice_length, plan)]
    for k in cutlass.range_constexpr(1, plan.world):
        published = exchanging.results(node, (node.rank + k) % plan.world, node.rank, plan)
        targets.append(exchanging.vectors_at(published, slice_length, plan))
    have, own_part = _within(node.rank, part, slice_length, count, plan)
    exchanging.combine_part(mine, tuple(targets), node, epoch, own_part, have, plan)
    exchanging.raise_flags(node, PUBLISHED, epoch, block, thread, plan)
    exchanging.await_flags(node, PUBLISHED, epoch, block, thread, plan)
    for k in cutlass.range_constexpr(1, plan.world):
        other = (node.rank + k) % plan.world
        came = exchanging.vectors_at(exchanging.results(node, node.rank, other, plan), slice_length, plan)
        _copy_slice(out, other, None, came, part, slice_length, count, plan)
    exchanging.next_epoch(node, epoch, block, thread, plan)


@cute.jit
def _within(number: Any, part: Any, slice_length: Any, count: Any, plan: cutlass.Constexpr) -> Any:
    """(elements that slice `number` has, `part` without vectors behind them)."""
    left = cute.Int64(count) - cute.Int64(number) * slice_length
    have = cute.Int32(max(min(left, cute.Int64(slice_length)), cute.Int64(0)))
    return have, (part[0], min(part[1], cute.ceil_div(have, plan.vector)))


@cute.jit
def _copy_slice(
    tensor: cute.Tensor, number: Any, to: Any, source: Any, part: Any, slice_length: Any, count: Any,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Part of slice `number` of a tensor: to `to`, which has whole vectors, or from `source`."""
    have, some = _within(number, part, slice_length, count, plan)
    slice_ = exchanging.vectors_at(exchanging.slice_of(tensor, number, slice_length, plan), have, plan)
    if cutlass.const_expr(to is not None):
        exchanging.copy_part(slice_, to, some, have, plan, True)
    else:
        exchanging.copy_part(source, slice_, some, have, plan, False)


@cute.jit
def launch_two_shot(
    x: cute.Tensor, out: cute.Tensor, node: Any, blocks: cute.Int32, slice_length: cute.Int32, count: cute.Int32,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """A grid of so many blocks."""
    two_shot_kernel(x, out, node, slice_length, count, plan).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
