"""Distributed shared memory: what other blocks of the cluster have in theirs (sm_90 and up)."""

from __future__ import annotations

from typing import Any

from tilewright.lang.instructions import instruction, shared_address
from tilewright.lang.numeric import Int32, Int64, as_numeric
from tilewright.lang.pointer import AddressSpace, Pointer, pointer_at


def map_dsmem_ptr(smem_ptr: Any, cta_rank_in_cluster: Any, *, loc: object = None, ip: object = None) -> Pointer:
    """The place that `smem_ptr` names, in block `cta_rank_in_cluster` of the cluster: a generic pointer.

    The other block must have begun (`cluster_arrive` and `cluster_wait` once before), and may not end before the last
    access. What is written there is visible to it after a barrier of the cluster.

    Raises:
        CompileError: `smem_ptr` does not point to shared memory, or the chip has no clusters.
    """
    shared_address(smem_ptr, "map_dsmem_ptr")
    pointer = getattr(smem_ptr, "iterator", smem_ptr)
    own = pointer._cast(pointer.dtype, AddressSpace.generic, pointer.alignment).toint()
    rank = Int32(as_numeric(cta_rank_in_cluster))
    mapped = instruction("mapa.u64 $0, $1, $2;", (own, rank), result=Int64, feature="mapa", pure=True)
    return pointer_at(mapped, pointer.dtype, AddressSpace.generic, pointer.alignment)
