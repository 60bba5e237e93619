"""The all-reduce of least latency: every word carries its own flag, so data needs no flag behind it and no fence.

A rank writes its tensor into the heaps of all others, four bytes of data and the number of the call in each word of
eight, which memory reads and writes as one (PTX ISA 8.2). Who reads a word with the right number has its data. The idea
is Lamport's; the form is that of NCCL's protocol LL. It sends twice the bytes of the one-shot kernel, which is the
faster way as long as they are few.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import exchanging
from tilewright.kernels.exchanging import LINES, THREADS
from tilewright.lib.comm import node as nodes

PAYLOAD = 8
"""Bytes of data of a line: two words of eight bytes."""


@cute.kernel
def lamport_kernel(
    x: cute.Tensor, out: cute.Tensor, node: Any, length: cute.Int32, plan: cutlass.Constexpr
) -> None:  # fmt: skip
    """Line i of x, `plan.vector` elements, is a thread's. out may be x."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    grid, _, _ = cute.arch.grid_dim()
    epoch = exchanging.epoch_here(node, block, plan, True)
    source = exchanging.vectors_at(x.iterator.toint(), length, plan)
    target = exchanging.vectors_at(out.iterator.toint(), length, plan)
    lines = cute.ceil_div(length, plan.vector)
    for at in range(block * THREADS + thread, lines, grid * THREADS):
        own = cute.make_rmem_tensor((plan.vector,), plan.dtype)
        exchanging.load_vector(own, source, at, length, plan)
        words = own.load().bitcast(cute.Uint32)
        for k in cutlass.range_constexpr(1, plan.world):
            there = _line(node, (node.rank + k) % plan.world, node.rank, epoch, at, plan)
            _send(there, words[0], words[1], epoch)
        held = cute.make_rmem_tensor((2, plan.world), cute.Uint32)
        for rank in cutlass.range_constexpr(plan.world):
            if node.rank == rank:
                held[None, rank].store(words)
            else:
                _receive(held[None, rank], node, rank, epoch, block, at, plan)
        total = held[None, 0].load().bitcast(plan.dtype).to(plan.accumulator)
        for rank in cutlass.range_constexpr(1, plan.world):
            sent = held[None, rank].load().bitcast(plan.dtype).to(plan.accumulator)
            total = exchanging.combined(total, sent, plan.op)
        own.store(total.to(plan.dtype))
        exchanging.store_vector(own, target, at, length, plan)
    cute.arch.sync_threads()
    exchanging.next_epoch(node, epoch, block, thread, plan, True)


@cute.jit
def _line(node: Any, rank: Any, source: Any, epoch: Any, at: Any, plan: cutlass.Constexpr) -> Any:
    """The line in `rank`'s heap that `source` writes in an epoch."""
    part = cute.Int64((epoch & 1) * plan.world + source) * plan.regions.line_part
    place = nodes.base_of(node, rank) + plan.regions.lines + part + cute.Int64(at) * (2 * PAYLOAD)
    return cute.make_ptr(cute.Uint64, place, cute.AddressSpace.gmem, assumed_align=2 * PAYLOAD)


@cute.jit
def _send(line: Any, low: Any, high: Any, epoch: Any) -> None:
    flag = cute.Uint64(cute.Uint32(epoch)) << 32
    cute.arch.inline_ptx(
        "st.relaxed.sys.global.v2.b64 [{$r0}], {{$r1}, {$r2}};",
        read_only_args=(line, flag | cute.Uint64(low), flag | cute.Uint64(high)),
    )


@cute.jit
def _receive(
    held: Any, node: Any, rank: cutlass.Constexpr, epoch: Any, block: Any, at: Any, plan: cutlass.Constexpr
) -> None:
    """`held` = the two words of data that `rank` has sent, as soon as they are there."""
    line = _line(node, node.rank, rank, epoch, at, plan)
    low, high = cute.arch.load(line, sem="relaxed", scope="sys"), cute.arch.load(line + 1, sem="relaxed", scope="sys")
    if not _here(low, high, epoch):
        begin = cute.arch.clock64()
        while not _here(low, high, epoch):
            low = cute.arch.load(line, sem="relaxed", scope="sys")
            high = cute.arch.load(line + 1, sem="relaxed", scope="sys")
            nodes.expire(node, begin, exchanging.slot_of(LINES, block, rank, plan), epoch - 1)
    held[0] = cute.Uint32(low)
    held[1] = cute.Uint32(high)


def _here(low: Any, high: Any, epoch: Any) -> Any:
    number = cute.Uint64(cute.Uint32(epoch))
    return ((low >> 32) == number) & ((high >> 32) == number)


@cute.jit
def launch_lamport(
    x: cute.Tensor, out: cute.Tensor, node: Any, blocks: cute.Int32, length: cute.Int32, plan: cutlass.Constexpr
) -> None:
    """A grid of so many blocks."""
    lamport_kernel(x, out, node, length, plan).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
