"""Distributed shared memory: what other blocks of the cluster have in theirs (sm_90 and up)."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu.instructions import instruction, shared_address
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, pointer_at


def map_dsmem_ptr(smem_ptr: Any, cta_rank_in_cluster: Any, *, loc: object = None, ip: object = None) -> Pointer:
    """The place that `smem_ptr` names, in block `cta_rank_in_cluster` of the cluster: a pointer to `dsmem`.

    The other block must have begun (`cluster_arrive` and `cluster_wait` once before), and may not end before the last
    access. What is written there is visible to it after a barrier of the cluster.

    Raises:
        CompileError: `smem_ptr` does not point to shared memory, or the chip has no clusters.
    """
    own = shared_address(smem_ptr, "map_dsmem_ptr")
    pointer = getattr(smem_ptr, "iterator", smem_ptr)
    rank = Int32(as_numeric(cta_rank_in_cluster))
    text = "mapa.shared::cluster.u32 $0, $1, $2;"
    mapped = instruction(text, (own, rank), result=Int32, feature="mapa", pure=True)
    return pointer_at(mapped, pointer.dtype, AddressSpace.dsmem, pointer.alignment)


def store_async_dsmem(
    smem_ptr: Any, value: Any, mbar_ptr: Any, cta_rank_in_cluster: Any, *, loc: object = None, ip: object = None
) -> None:
    """Write `value`, of 32 or 64 bits, where `smem_ptr` names in block `cta_rank_in_cluster` of the cluster.

    The write counts its bytes at the mbarrier which `mbar_ptr` names in that block, and is visible to those who wait
    for it there: `mbarrier_arrive_and_expect_tx`, then `mbarrier_wait`. That block must have made the barrier.

    Raises:
        CompileError: a pointer does not point to shared memory, `value` has another width, or the chip has no clusters.
    """
    at, barrier = (shared_address(pointer, "store_async_dsmem") for pointer in (smem_ptr, mbar_ptr))
    number = as_numeric(value)
    if number.width not in (32, 64):
        raise CompileError(
            f"store_async_dsmem of {number.width} bits", location=user_location(), hint="it writes 32 or 64 bits"
        )
    bits = number.bitcast(Uint32 if number.width == 32 else Uint64)
    text = (
        "{ .reg .b32 to, bar; mapa.shared::cluster.u32 to, $0, $2; mapa.shared::cluster.u32 bar, $1, $2; "
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b{number.width} [to], $3, [bar]; }}"
    )
    instruction(text, (at, barrier, Int32(as_numeric(cta_rank_in_cluster)), bits), feature="st.async")
