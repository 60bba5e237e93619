"""What kernels share in which the ranks of a node exchange slices of tensors.

A rank writes into the others' heaps, raises flags there, waits for theirs on memory of its own, and combines what has
come. Block b of every rank exchanges the same part of each slice with block b of the others. The number of a call, its
epoch, stands in the heap, a copy for each block, so that a captured graph of calls counts on when it is replayed.

What is written for epoch e lies in half e % 2 of a region. A rank that has finished epoch e - 1 has heard from all
others in that epoch, so all of them have finished epoch e - 2, and no one reads what it overwrites. Calls with flags
and calls with lines have regions of their own and count by themselves: lines order no other memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.lib.comm import node as nodes

THREADS = 512
UNROLL = 4
ARRIVED, PUBLISHED, LINES = range(3)
"""Kinds of flags: a rank's slices are there; its result is; its lines are, whose slots have a number only."""
KINDS = 3
OPS = ("sum", "prod", "min", "max")


@dataclass(frozen=True)
class Regions:
    """Where things lie in each rank's heap, as offsets in bytes.

    Attributes:
        blocks: the most blocks of a grid.
        epochs: `blocks` words that count the calls with flags, and as many for those with lines.
        arrivals: two halves with a part of `part` bytes for each rank.
        results: a part of `part` bytes for each rank.
        lines: two halves with a part of `line_part` bytes for each rank, of words that carry their own flags.
    """

    blocks: int
    epochs: int
    arrivals: int
    results: int
    part: int
    lines: int
    line_part: int


@dataclass(frozen=True)
class ExchangePlan:
    """What a kernel is compiled for.

    Attributes:
        dtype: the type of elements.
        op: how elements of all ranks combine, one of `OPS`; "" where they stand side by side.
        sends: "all": each rank's whole input goes to all; "slices": slice r of it to rank r; "root": that of `root`.
        world: the number of ranks.
        vector: elements of an access.
        unit: elements to which tensors are aligned, fewer than the vector only in lines.
        regions: where things lie.
    """

    dtype: type[cute.Numeric]
    op: str
    sends: str
    world: int
    vector: int
    unit: int
    regions: Regions

    @property
    def accumulator(self) -> type[cute.Numeric]:
        """The type in which elements combine: float32 for halves."""
        return cute.Float32 if self.dtype.is_float and self.dtype.width < 32 else self.dtype


def slot_of(kind: int, block: Any, source: Any, plan: Any) -> Any:
    """The flag that rank `source` raises for a block."""
    return (kind * plan.regions.blocks + block) * plan.world + source


@cute.jit
def epoch_here(node: Any, block: Any, plan: cutlass.Constexpr, lines: cutlass.Constexpr = False) -> cute.Int32:
    """The number of this call, among those with flags or those with lines."""
    return cute.arch.load(_epoch(node, block, plan, lines), cute.Int32) + 1


@cute.jit
def next_epoch(
    node: Any, epoch: Any, block: Any, thread: Any, plan: cutlass.Constexpr, lines: cutlass.Constexpr = False
) -> None:
    """Count the call, for this block and those that the grid does not have; all threads of the block have begun."""
    grid, _, _ = cute.arch.grid_dim()
    for number in range(block + thread * grid, plan.regions.blocks, grid * THREADS):
        cute.arch.store(_epoch(node, number, plan, lines), epoch)


def _epoch(node: Any, block: Any, plan: Any, lines: bool) -> Any:
    first = plan.regions.epochs + (4 * plan.regions.blocks if lines else 0)
    here = nodes.base_of(node, node.rank) + first + cute.Int64(block) * 4
    return cute.make_ptr(cute.Int32, here, cute.AddressSpace.gmem, assumed_align=4)


@cute.jit
def arrivals(node: Any, rank: Any, source: Any, epoch: Any, plan: cutlass.Constexpr) -> cute.Int64:
    """The address in `rank`'s heap of what `source` sends in an epoch."""
    place = cute.Int64((epoch & 1) * plan.world + source) * plan.regions.part
    return nodes.base_of(node, rank) + plan.regions.arrivals + place


@cute.jit
def results(node: Any, rank: Any, source: Any, plan: cutlass.Constexpr) -> cute.Int64:
    """The address in `rank`'s heap of the result that `source` publishes."""
    return nodes.base_of(node, rank) + plan.regions.results + cute.Int64(source) * plan.regions.part


@cute.jit
def vectors_at(address: Any, length: Any, plan: cutlass.Constexpr) -> cute.Tensor:
    """Memory at an address as (vector, vectors)."""
    bytes_ = plan.unit * plan.dtype.width // 8
    ptr = cute.make_ptr(plan.dtype, address, cute.AddressSpace.gmem, assumed_align=bytes_)
    shape = (plan.vector, cute.ceil_div(length, plan.vector))
    return cute.make_tensor(ptr, cute.make_layout(shape, stride=(1, plan.vector)))


@cute.jit
def slice_of(tensor: cute.Tensor, number: Any, step: Any, plan: cutlass.Constexpr) -> cute.Int64:
    """The address of slice `number` of a tensor, whose slices begin `step` elements apart."""
    return tensor.iterator.toint() + cute.Int64(number) * step * (plan.dtype.width // 8)


@cute.jit
def load_vector(held: Any, source: cute.Tensor, at: Any, length: Any, plan: cutlass.Constexpr) -> None:
    """`held` = vector `at` of a slice of `length` elements; zeros behind its end."""
    if (at + 1) * plan.vector <= length:
        cute.autovec_copy(source[None, at], held)
    else:
        for k in cutlass.range_constexpr(plan.vector):
            held[k] = plan.dtype(0)
            if at * plan.vector + k < length:
                held[k] = source[k, at]


@cute.jit
def store_vector(held: Any, out: cute.Tensor, at: Any, length: Any, plan: cutlass.Constexpr) -> None:
    """Vector `at` of a slice of `length` elements = `held`."""
    if (at + 1) * plan.vector <= length:
        cute.autovec_copy(held, out[None, at])
    else:
        for k in cutlass.range_constexpr(plan.vector):
            if at * plan.vector + k < length:
                out[k, at] = held[k]


@cute.jit
def copy_part(
    source: cute.Tensor, out: cute.Tensor, part: Any, length: Any, plan: cutlass.Constexpr, padded: cutlass.Constexpr
) -> None:
    """Vectors `part` = (first, end) of a slice of `length` elements, by all threads of the block.

    `padded`: out has whole vectors.
    """
    thread, _, _ = cute.arch.thread_idx()
    first, end = part
    held = cute.make_rmem_tensor((plan.vector, UNROLL), plan.dtype)
    for group in range(first + thread, end, THREADS * UNROLL):
        for u in cutlass.range_constexpr(UNROLL):
            if group + u * THREADS < end:
                load_vector(held[None, u], source, group + u * THREADS, length, plan)
        for u in cutlass.range_constexpr(UNROLL):
            at = group + u * THREADS
            if at < end:
                if cutlass.const_expr(padded):
                    cute.autovec_copy(held[None, u], out[None, at])
                else:
                    store_vector(held[None, u], out, at, length, plan)


@cute.jit
def combine_part(
    x: cute.Tensor, out: Any, node: Any, epoch: Any, part: Any, length: Any, plan: cutlass.Constexpr
) -> None:
    """Vectors `part` of a slice: what all ranks sent and this rank has in `x`, combined in the order of ranks.

    `out` are tensors that each get the result: the first has `length` elements, others whole vectors.
    """
    thread, _, _ = cute.arch.thread_idx()
    first, end = part
    own = x.iterator.toint()
    for at in range(first + thread, end, THREADS):
        held = cute.make_rmem_tensor((plan.vector, plan.world), plan.dtype)
        for rank in cutlass.range_constexpr(plan.world):
            sent = arrivals(node, node.rank, rank, epoch, plan)
            if (at + 1) * plan.vector <= length:
                source = vectors_at(own if node.rank == rank else sent, length, plan)
                cute.autovec_copy(source[None, at], held[None, rank])
            elif node.rank == rank:
                load_vector(held[None, rank], x, at, length, plan)
            else:
                cute.autovec_copy(vectors_at(sent, length, plan)[None, at], held[None, rank])
        total = held[None, 0].load().to(plan.accumulator)
        for rank in cutlass.range_constexpr(1, plan.world):
            total = combined(total, held[None, rank].load().to(plan.accumulator), plan.op)
        result = cute.make_rmem_tensor((plan.vector,), plan.dtype)
        result.store(total.to(plan.dtype))
        store_vector(result, out[0], at, length, plan)
        for tensor in out[1:]:
            cute.autovec_copy(result, tensor[None, at])


def combined(a: Any, b: Any, op: str) -> Any:
    """Two vectors combined element by element; NaN stays, as in NumPy."""
    if op == "sum":
        return a + b
    if op == "prod":
        return a * b
    better = a > b if op == "max" else a < b
    if a.dtype.is_float:
        better = better | (a != a)
    return cute.where(better, a, b)


@cute.jit
def part_of(block: Any, length: Any, plan: cutlass.Constexpr) -> Any:
    """(first, end) of the vectors of a slice that a block has."""
    grid, _, _ = cute.arch.grid_dim()
    vectors = cute.ceil_div(length, plan.vector)
    each = cute.ceil_div(vectors, grid)
    first = min(block * each, vectors)
    return first, min(first + each, vectors)


@cute.jit
def raise_flags(
    node: Any, kind: cutlass.Constexpr, epoch: Any, block: Any, thread: Any, plan: cutlass.Constexpr
) -> None:
    """Tell all other ranks, a thread each, that what this block has written for them is there."""
    cute.arch.sync_threads()
    if thread < plan.world and thread != node.rank:
        nodes.signal(node, thread, slot_of(kind, block, node.rank, plan), epoch)


@cute.jit
def await_flags(
    node: Any, kind: cutlass.Constexpr, epoch: Any, block: Any, thread: Any, plan: cutlass.Constexpr
) -> None:
    """Wait for the flags of all other ranks, a thread each."""
    if thread < plan.world and thread != node.rank:
        nodes.wait(node, slot_of(kind, block, thread, plan), epoch)
    cute.arch.sync_threads()
