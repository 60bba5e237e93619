"""The kernel of one-shot collectives: each rank sends slices to the others, waits for theirs, and combines what came.

It is `all_reduce` (one-shot), `reduce_scatter`, `all_gather`, `all_to_all` and `broadcast`, which differ in what goes
to whom and whether it combines or stands side by side. Each byte crosses a link once, as a write.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import exchanging
from tilewright.kernels.exchanging import ARRIVED, THREADS


@cute.kernel
def exchange_kernel(
    x: cute.Tensor, out: cute.Tensor, node: Any, length: cute.Int32, x_step: cute.Int64, out_step: cute.Int64,
    root: cute.Int32, plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """Slices of `length` elements, which begin `x_step` apart in x and `out_step` in out."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    epoch = exchanging.epoch_here(node, block, plan)
    part = exchanging.part_of(block, length, plan)
    if cutlass.const_expr(plan.sends != "root") or node.rank == root:
        for k in cutlass.range_constexpr(1, plan.world):
            other = (node.rank + k) % plan.world  # each begins with another, so that no link is crowded
            number = other if cutlass.const_expr(plan.sends == "slices") else 0
            source = exchanging.vectors_at(exchanging.slice_of(x, number, x_step, plan), length, plan)
            there = exchanging.arrivals(node, other, node.rank, epoch, plan)
            exchanging.copy_part(source, exchanging.vectors_at(there, length, plan), part, length, plan, True)
    exchanging.raise_flags(node, ARRIVED, epoch, block, thread, plan)
    exchanging.await_flags(node, ARRIVED, epoch, block, thread, plan)
    own = node.rank if cutlass.const_expr(plan.sends == "slices") else 0
    mine = exchanging.vectors_at(exchanging.slice_of(x, own, x_step, plan), length, plan)
    if cutlass.const_expr(plan.op != ""):
        target = exchanging.vectors_at(out.iterator.toint(), length, plan)
        exchanging.combine_part(mine, (target,), node, epoch, part, length, plan)
    elif cutlass.const_expr(plan.sends == "root"):
        if node.rank != root:
            sent = exchanging.vectors_at(exchanging.arrivals(node, node.rank, root, epoch, plan), length, plan)
            target = exchanging.vectors_at(out.iterator.toint(), length, plan)
            exchanging.copy_part(sent, target, part, length, plan, False)
        elif out.iterator.toint() != x.iterator.toint():
            target = exchanging.vectors_at(out.iterator.toint(), length, plan)
            exchanging.copy_part(mine, target, part, length, plan, False)
    else:
        for rank in cutlass.range_constexpr(plan.world):
            target = exchanging.vectors_at(exchanging.slice_of(out, rank, out_step, plan), length, plan)
            if node.rank == rank:
                exchanging.copy_part(mine, target, part, length, plan, False)
            else:
                sent = exchanging.vectors_at(exchanging.arrivals(node, node.rank, rank, epoch, plan), length, plan)
                exchanging.copy_part(sent, target, part, length, plan, False)
    exchanging.next_epoch(node, epoch, block, thread, plan)


@cute.jit
def launch_exchange(
    x: cute.Tensor, out: cute.Tensor, node: Any, blocks: cute.Int32, length: cute.Int32, x_step: cute.Int64,
    out_step: cute.Int64, root: cute.Int32, plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """A grid of so many blocks."""
    exchange_kernel(x, out, node, length, x_step, out_step, root, plan).launch(
        grid=(blocks, 1, 1), block=(THREADS, 1, 1)
    )
