"""Several GPUs of one host, from within a kernel: `put`, `get`, `signal` and `wait` on memory that all ranks share.

Every rank has a heap of the same layout. A `Node` knows where each rank's begins, so a pointer into one's own names the
same place in another's. Rules that the functions keep: flags have scope sys; a flag is written where its reader is, who
then waits on memory of its own; flags only grow, so none is reset; a wait has an end.

`signal` releases: what its thread, and by a barrier before it the block, has written is visible to who `wait`s for it.
`put` and `get` are plain accesses, ordered by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute

CLOCK_MHZ = 1700
"""Ticks of a multiprocessor's clock in a microsecond, about; time-outs are counted in ticks."""
COMPARISONS = ("ge", "eq", "gt")
SLOT_BYTES = 4
_RANK, _BLOCK, _SLOT, _SEEN = 56, 40, 16, 0


@dataclass(frozen=True)
class Node:
    """What a kernel knows of the ranks.

    Attributes:
        rank: this one's number.
        bases: the address at which each rank's heap begins.
        signals: the offset of the slots for `signal` and `wait` in a heap, in bytes.
        record: the address at which a wait that ends without success leaves word.
        timeout: for how many ticks of the clock a wait lasts at most.
    """

    rank: cute.Int32
    bases: Any
    signals: cute.Int64
    record: cute.Int64
    timeout: cute.Int64


@cute.jit
def base_of(node: Any, rank: Any) -> Any:
    """The address of a rank's heap."""
    found = node.bases[0]
    for number in cutlass.range_constexpr(1, len(node.bases)):
        found = node.bases[number] if rank == number else found
    return found


@cute.jit
def on_rank(node: Any, rank: Any, ptr: Any) -> Any:
    """The place in the heap of `rank` that `ptr`, a pointer into this rank's, has here."""
    here = ptr.toint() - base_of(node, node.rank)
    return cute.make_ptr(ptr.dtype, base_of(node, rank) + here, cute.AddressSpace.gmem, assumed_align=ptr.alignment)


@cute.jit
def put(node: Any, dst_rank: Any, ptr: Any, value: Any) -> None:
    """Write `value`, a number or 4, 8 or 16 bytes as a vector, where `ptr` names in the heap of `dst_rank`."""
    cute.arch.store(on_rank(node, dst_rank, ptr), value)


@cute.jit
def get(node: Any, src_rank: Any, ptr: Any) -> Any:
    """The number where `ptr` names in the heap of `src_rank`."""
    there = on_rank(node, src_rank, ptr)
    return cute.arch.load(there, there.dtype)


@cute.jit
def slot_ptr(node: Any, rank: Any, slot: Any) -> Any:
    """A slot of `rank`: a word of 32 bits."""
    place = base_of(node, rank) + node.signals + cute.Int64(slot) * SLOT_BYTES
    return cute.make_ptr(cute.Int32, place, cute.AddressSpace.gmem, assumed_align=SLOT_BYTES)


@cute.jit
def signal(node: Any, dst_rank: Any, slot: Any, value: Any) -> None:
    """Set a slot of `dst_rank` to `value`, and release what was written before, to all GPUs.

    One thread calls it; what other threads have written is released too where a barrier lies before.
    """
    cute.arch.store(slot_ptr(node, dst_rank, slot), cute.Int32(value), sem="release", scope="sys")


@cute.jit
def wait(node: Any, slot: Any, value: Any, cmp: cutlass.Constexpr = "ge") -> None:
    """Wait until a slot of this rank is at least `value` ("ge"), equal ("eq") or greater ("gt"), and acquire.

    Numbers are compared as they follow each other, so that a counter may go round. A kernel whose wait takes longer
    than `node.timeout` ends with a trap, and the record says which rank, block and slot it was.
    """
    place = slot_ptr(node, node.rank, slot)
    seen = cute.arch.load(place, cute.Int32, sem="acquire", scope="sys")
    if not _reached(seen, value, cmp):
        begin = cute.arch.clock64()
        while not _reached(seen, value, cmp):
            seen = cute.arch.load(place, cute.Int32, sem="acquire", scope="sys")
            expire(node, begin, slot, seen)


def _reached(seen: Any, value: Any, cmp: str) -> Any:
    if cmp not in COMPARISONS:
        raise cutlass.CompileError(f"wait has no cmp {cmp!r}", hint=f"one of {', '.join(COMPARISONS)}")
    ahead = seen - cute.Int32(value)
    return ahead == 0 if cmp == "eq" else ahead >= 0 if cmp == "ge" else ahead > 0


@cute.jit
def expire(node: Any, begin: Any, slot: Any, seen: Any) -> None:
    """End the kernel with a trap where more time than allowed has passed since the clock was at `begin`."""
    if cute.arch.clock64() - begin > node.timeout:
        block, _, _ = cute.arch.block_idx()
        word = (cute.Int64(node.rank + 1) << _RANK) | (cute.Int64(block & 0xFFFF) << _BLOCK)
        whole = node.signals // SLOT_BYTES + slot  # from the first slot of the heap
        word = word | (cute.Int64(whole & 0xFFFFFF) << _SLOT) | cute.Int64(seen & 0xFFFF)
        record = cute.make_ptr(cute.Int64, node.record, cute.AddressSpace.gmem, assumed_align=8)
        cute.arch.store(record, word, sem="relaxed", scope="sys")
        cute.arch.fence_acq_rel_sys()
        cute.arch.inline_ptx("trap;")


def read_record(word: int) -> tuple[int, int, int, int]:
    """(rank, block, slot from the heap's first, the low 16 bits of what was seen) of a record that is not 0."""
    word &= (1 << 64) - 1
    return (word >> _RANK) - 1, word >> _BLOCK & 0xFFFF, word >> _SLOT & 0xFFFFFF, word & 0xFFFF
