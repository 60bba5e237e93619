"""Tensor maps in memory, which a kernel changes: one map for many tensors (sm_90a).

A map of 128 bytes is copied from an atom to memory, and its address, extents and strides are replaced there. The copy
engine reads maps through a proxy of its own: the thread that changed one releases it, and each thread that copies by it
acquires it (PTX ISA 9.0, "tensormap.replace", "tensormap.cp_fenceproxy", "membar/fence").
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Int64, as_numeric
from tilewright.lang.nvgpu.elect import one_thread_of_warp
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.nvgpu.tma import TmaAtom
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout.inttuple import flat

MAP_BYTES = 128
_GLOBAL = (AddressSpace.gmem, AddressSpace.generic)
_SHARED = AddressSpace.smem


def copy_tensormap(tma_atom: Any, dst_ptr: Any, *, loc: object = None, ip: object = None) -> None:
    """Copy the tensor map of an atom to 128 bytes of global or shared memory. The thread that is there does it.

    Raises:
        CompileError: `tma_atom` is none of make_tiled_tma_atom, or `dst_ptr` points elsewhere.
    """
    trace.device("copy_tensormap")
    map_, pointer = _map_of(tma_atom, "copy_tensormap"), _pointer(dst_ptr, *_GLOBAL, _SHARED)
    words = build.i32(min(pointer.alignment, 16))
    build.cute("tensor_map_copy", (), ((map_,), (pointer.value,)), align=words)


def update_tma_descriptor(
    tma_atom: Any, gmem_tensor: Any, tma_desc_ptr: Any, *, loc: object = None, ip: object = None
) -> None:
    """Make the tensor map in memory, a copy of the atom's, one of `gmem_tensor`: its address, extents and strides.

    The tensor has the modes of the one that the atom was made of; box, swizzle and element type stay. One thread of the
    warp does it.

    Raises:
        CompileError: the tensor differs in its modes or its element type.
    """
    trace.device("update_tma_descriptor")
    _map_of(tma_atom, "update_tma_descriptor")
    _check_tensor(tma_atom, gmem_tensor)
    pointer = _pointer(tma_desc_ptr, *_GLOBAL, _SHARED)
    space = "shared::cta" if pointer.memspace is _SHARED else "global"
    at = Int64(as_numeric(pointer.toint()))
    shape, stride = flat(gmem_tensor.layout.shape), flat(gmem_tensor.layout.stride)
    extents = [Int32(as_numeric(shape[leaf])) for leaf in tma_atom.leaves]
    steps = [Int64(as_numeric(stride[leaf])) * (tma_atom.value_type.width // 8) for leaf in tma_atom.leaves[1:]]
    address = Int64(gmem_tensor.iterator.toint())
    with one_thread_of_warp():
        _replace("global_address", space, at, address)
        for mode, extent in enumerate(extents):
            _replace("global_dim", space, at, extent, mode)
        for mode, step in enumerate(steps):
            _replace("global_stride", space, at, step, mode)


def _replace(field: str, space: str, at: Int64, value: Int32 | Int64, ordinal: int | None = None) -> None:
    place = "" if ordinal is None else f"{ordinal}, "
    text = f"tensormap.replace.tile.{field}.{space}.b1024.b{value.width} [$0], {place}$1;"
    instruction(text, (at, value), feature="tensormap.replace")


def _check_tensor(atom: TmaAtom, tensor: Any) -> None:
    if not isinstance(tensor, Tensor) or tensor.is_coordinates or tensor.memspace not in _GLOBAL:
        raise CompileError(
            "update_tma_descriptor takes a tensor in global memory", location=user_location(3), values={"got": tensor}
        )
    count = len(flat(tensor.layout.shape))
    if tensor.element_type.width != atom.value_type.width or count != atom.modes:
        raise CompileError(
            "the tensor is not like the one of the atom",
            location=user_location(3),
            values={"tensor": tensor, "modes of the atom's": atom.modes, "element type": atom.value_type},
            hint="as many modes in the same order, elements of the same width",
        )


def cp_fence_tma_desc_release(
    tma_desc_global_ptr: Any, tma_desc_shared_ptr: Any, *, loc: object = None, ip: object = None
) -> None:
    """Copy a tensor map from shared to global memory and release it, so that others may acquire it. A warp calls it."""
    trace.device("cp_fence_tma_desc_release")
    far = Int64(as_numeric(_pointer(tma_desc_global_ptr, *_GLOBAL).toint()))
    near = Int64(as_numeric(_pointer(tma_desc_shared_ptr, _SHARED).toint()))
    text = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;"
    instruction(text, (far, near), feature="tensormap.cp_fenceproxy")


def fence_tma_desc_release(*, loc: object = None, ip: object = None) -> None:
    """Release the tensor maps that this thread changed in global memory, so that others may acquire them."""
    trace.device("fence_tma_desc_release")
    instruction("fence.proxy.tensormap::generic.release.gpu;", feature="fence.proxy.tensormap")


def fence_tma_desc_acquire(tma_desc_ptr: Any, *, loc: object = None, ip: object = None) -> None:
    """Acquire a tensor map in global memory that was changed: before copies by it, in the threads that start them."""
    trace.device("fence_tma_desc_acquire")
    at = Int64(as_numeric(_pointer(tma_desc_ptr, *_GLOBAL).toint()))
    instruction("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", (at,), feature="fence.proxy.tensormap")


def _map_of(atom: Any, what: str) -> Any:
    if not isinstance(atom, TmaAtom):
        raise CompileError(f"{what} takes a TMA atom, not {type(atom).__name__}", location=user_location(3))
    return atom.map


def _pointer(pointer: Any, *spaces: AddressSpace) -> Pointer:
    pointer = getattr(pointer, "iterator", pointer)
    if not isinstance(pointer, Pointer) or pointer.memspace not in spaces:
        raise CompileError(
            f"a tensor map in memory is told by a pointer to {' or '.join(map(str, spaces))}",
            location=user_location(3),
            values={"got": pointer},
            hint="128 bytes at a multiple of 64, such as 16 Int64 of a tensor",
        )
    return pointer
