"""Copies, atomic operations and matrices in memory: the primitives of `cp.async`, bulk copies, `red`, `ldmatrix`."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.experimental.enums import (
    AtomicOp,
    CpReduceOp,
    CpReduceType,
    MemOrder,
    MemScope,
    MMALayout,
    ReductionOp,
    ReductionType,
)
from tilewright.experimental.places import pointer_of, shared_place
from tilewright.lang import atomics
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Uint32, as_numeric
from tilewright.lang.nvgpu import bulk_copies, bulk_groups, cpasync, distributed, plain_maps, vector_atomics
from tilewright.lang.nvgpu.instructions import instruction, instruction_words
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor_ssa import TensorSSA

cp_async_commit_group = cpasync.cp_async_commit_group
cp_async_wait_group = cpasync.cp_async_wait_group
cp_async_bulk_commit_group = bulk_groups.cp_async_bulk_commit_group
cp_async_bulk_wait_group = bulk_groups.cp_async_bulk_wait_group
_CP_ASYNC_BYTES = {"ca": (4, 8, 16), "cg": (16,)}


def mapa(ptr: Any, rank: Any, *, loc: object = None, ip: object = None) -> Pointer:
    """The place that `ptr` into shared memory names, in block `rank` of the cluster."""
    return distributed.map_dsmem_ptr(shared_place(ptr, "mapa"), rank)


def cp_async_shared_global(
    dst: Any, src: Any, size: int, modifier: str = "ca", *, cp_size: Any = None, loc: object = None, ip: object = None
) -> None:
    """Copy `size` bytes from global to shared memory by `cp.async`: 4, 8 or 16 through L1 (`ca`), 16 past it (`cg`).

    Of `cp_size` bytes, where it is given, the rest is zeros.

    Raises:
        CompileError: the modifier or the size is none of these.
    """
    name = str(getattr(modifier, "value", modifier)).lower()
    if size not in _CP_ASYNC_BYTES.get(name, ()):
        raise CompileError(
            f"cp.async.{name} of {size} bytes", location=user_location(), hint="ca copies 4, 8 or 16 bytes, cg 16"
        )
    given = [shared_place(dst, "cp_async_shared_global").toint(), _global_place(src, "cp_async_shared_global").toint()]
    given += [] if cp_size is None else [Int32(as_numeric(cp_size))]
    tail = "" if cp_size is None else ", $2"
    instruction(f"cp.async.{name}.shared.global [$0], [$1], {size}{tail};", given, feature="cp.async")


def cp_async_bulk_shared_cluster_global(
    dst: Any,
    src: Any,
    mbar: Any,
    size: Any,
    *,
    multicast_mask: Any = None,
    l2_cache_hint: Any = None,
    loc: object = None,
    ip: object = None,
) -> None:
    """Copy `size` bytes from global to shared memory of a block of the cluster; they count at `mbar` in that block."""
    to, barrier = pointer_of(dst), pointer_of(mbar)
    name = "cp_async_bulk_shared_cluster_global"
    bulk_copies.bulk_load(to, pointer_of(src), size, barrier, mask=multicast_mask, cache=l2_cache_hint, what=name)


def cp_async_bulk_global_shared_cta(
    dst: Any, src: Any, size: Any, *, l2_cache_hint: Any = None, loc: object = None, ip: object = None
) -> None:
    """Copy `size` bytes from shared to global memory, in this thread's bulk group."""
    name = "cp_async_bulk_global_shared_cta"
    bulk_copies.bulk_store(pointer_of(dst), pointer_of(src), size, cache=l2_cache_hint, what=name)


def cp_reduce_async_bulk_global_shared_cta(
    dst: Any,
    src: Any,
    size: Any,
    *,
    op: CpReduceOp,
    type: CpReduceType,
    noftz: bool = False,
    l2_cache_hint: Any = None,
    loc: object = None,
    ip: object = None,
) -> None:
    """Fold `size` bytes of numbers of a type in shared memory into global memory, in this thread's bulk group.

    Sums of 16-bit floats keep denormals, with or without `noftz`: PTX has no other.
    """
    name = "cp_reduce_async_bulk_global_shared_cta"
    places = pointer_of(dst), pointer_of(src)
    bulk_copies.bulk_reduce(*places, size, op.value, type.value, cache=l2_cache_hint, what=name)


def cp_async_bulk_prefetch(
    src: Any, size: Any, *, l2_cache_hint: Any = None, loc: object = None, ip: object = None
) -> None:
    """Ask for `size` bytes of global memory to be brought to the L2 cache."""
    bulk_copies.bulk_prefetch(pointer_of(src), size, cache=l2_cache_hint, what="cp_async_bulk_prefetch")


def cp_async_bulk_tensor_shared_cta_global(
    dst: Any, tensor_map: Any, coordinates: Any, mbar: Any, *, loc: object = None, ip: object = None
) -> None:
    """Copy the box at the coordinates, the contiguous mode first, to shared memory; its bytes count at `mbar`."""
    name = "cp_async_bulk_tensor_shared_cta_global"
    plain_maps.load_box(tensor_map, shared_place(dst, name), tuple(coordinates), shared_place(mbar, name))


def cp_async_bulk_tensor_global_shared_cta(
    tensor_map: Any, src: Any, coordinates: Any, *, loc: object = None, ip: object = None
) -> None:
    """Copy a box from shared memory to the coordinates, in this thread's bulk group."""
    name = "cp_async_bulk_tensor_global_shared_cta"
    plain_maps.store_box(tensor_map, shared_place(src, name), tuple(coordinates))


def prefetch_tensormap(tensor_map: Any, *, loc: object = None, ip: object = None) -> None:
    """Bring a tensor map near, before the first copy."""
    plain_maps.prefetch_map(tensor_map)


def atomicrmw(
    op: AtomicOp,
    ptr: Any,
    value: Any,
    *,
    order: MemOrder | None = None,
    scope: MemScope | None = None,
    loc: object = None,
    ip: object = None,
) -> Any:
    """Change the number at `ptr` in one step; gives what it was."""
    function = getattr(atomics, f"atomic_{op.value}")
    return function(
        ptr, value, sem=None if order is None else order.value, scope=None if scope is None else scope.value
    )


def red(
    op: ReductionOp,
    type: ReductionType,
    ptr: Any,
    value: Any,
    *,
    mem_order: MemOrder | None = None,
    mem_scope: MemScope | None = None,
    loc: object = None,
    ip: object = None,
) -> None:
    """Fold `value` into the number at `ptr` in one step, and give nothing back."""
    order, scope = (None if item is None else item.value for item in (mem_order, mem_scope))
    vector_atomics.red(pointer_of(ptr), value, op=op.value, dtype=type.value, sem=order, scope=scope)


def ldmatrix(ptr: Any, num: int, layout: MMALayout, *, loc: object = None, ip: object = None) -> TensorSSA:
    """One, two or four matrices of 8 by 8 elements of 16 bits from shared memory, in a word of each lane each.

    Lane i gives the place of row i; COL transposes the matrices (PTX ISA, ldmatrix).
    """
    _check_matrices("ldmatrix", num)
    at = shared_place(ptr, "ldmatrix").toint()
    results = ", ".join(f"${number}" for number in range(num))
    text = f"ldmatrix.sync.aligned.m8n8.x{num}{_transposed(layout)}.shared.b16 {{{results}}}, [${num}];"
    return TensorSSA.from_elements(instruction_words(text, (at,), num), Uint32)


def stmatrix(ptr: Any, sources: Any, layout: MMALayout, *, loc: object = None, ip: object = None) -> None:
    """Write one, two or four matrices of 8 by 8 elements of 16 bits to shared memory, from a word of each lane each."""
    words = [Uint32(as_numeric(item)) for item in (sources if isinstance(sources, (list, tuple)) else list(sources))]
    _check_matrices("stmatrix", len(words))
    at = shared_place(ptr, "stmatrix").toint()
    given = ", ".join(f"${number + 1}" for number in range(len(words)))
    text = f"stmatrix.sync.aligned.m8n8.x{len(words)}{_transposed(layout)}.shared.b16 [$0], {{{given}}};"
    instruction(text, (at, *map(Int32, words)), feature="stmatrix")


def _transposed(layout: MMALayout) -> str:
    return ".trans" if layout is MMALayout.COL else ""


def _check_matrices(what: str, count: Any) -> None:
    if count not in (1, 2, 4):
        raise CompileError(f"{what} of {count} matrices", location=user_location(), hint="it moves 1, 2 or 4")


def _global_place(place: Any, what: str) -> Pointer:
    pointer = pointer_of(place)
    if pointer.memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise CompileError(
            f"{what} takes a pointer to global memory", location=user_location(), values={"got": pointer}
        )
    return pointer
