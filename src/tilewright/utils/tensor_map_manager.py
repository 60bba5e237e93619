"""`TensorMapManager`: tensor maps in memory that a warp keeps up to date, such as one for all products of a group."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import arch
from tilewright.lang.control.generate import run_if
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Int64, as_numeric
from tilewright.lang.nvgpu.bulk_groups import cp_async_bulk_commit_group, cp_async_bulk_wait_group
from tilewright.lang.nvgpu.elect import one_thread_of_warp
from tilewright.lang.nvgpu.tma_descriptors import (
    MAP_BYTES,
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, pointer_at

_MAP_ALIGN = 64


class TensorMapUpdateMode(Enum):
    """Where maps are changed: in global memory, or in shared memory, from where they are copied to global memory."""

    GMEM = auto()
    SMEM = auto()


@dataclass(frozen=True)
class TensorMapManager:
    """How a kernel makes and changes the tensor maps that its copies take as `tma_desc_ptr=`.

    Each block has maps of its own in global memory, and with `TensorMapUpdateMode.SMEM` as many in shared memory. All
    threads may call the methods; the warp `warp_id` does the work.

        pointer = manager.get_tensormap_ptr(workspace[block, 0, None].iterator)
        manager.init_tensormap_from_atom(atom, shared if SMEM else pointer, warp_id)
        manager.fence_tensormap_initialization()
        for each tensor:
            manager.update_tensormap((tensor,), (atom,), (pointer,), warp_id, (shared,))
            manager.fence_tensormap_update(pointer)     # in the warp that copies
            cute.copy(atom, ..., tma_desc_ptr=pointer)
    """

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int = MAP_BYTES

    def get_tensormap_ptr(
        self, ptr: Any, address_space: AddressSpace = AddressSpace.gmem, *, loc: object = None, ip: object = None
    ) -> Pointer:
        """The pointer to a map in global memory, as one to `gmem` or `generic`; the map lies at a multiple of 64 bytes.

        Raises:
            CompileError: `ptr` is no pointer to global memory, or another space is asked for.
        """
        pointer = getattr(ptr, "iterator", ptr)
        spaces = (AddressSpace.gmem, AddressSpace.generic)
        if address_space not in spaces or not isinstance(pointer, Pointer) or pointer.memspace not in spaces:
            raise CompileError(
                "a tensor map that copies take lies in global memory",
                location=user_location(),
                values={"ptr": pointer, "address_space": address_space},
                hint="address_space=AddressSpace.gmem or generic",
            )
        return pointer_at(pointer.toint(), Int64, address_space, _MAP_ALIGN)

    def init_tensormap_from_atom(
        self, copy_atom: Any, dst_ptr: Any, warp_id: Any, *, loc: object = None, ip: object = None
    ) -> None:
        """Copy the map of an atom to memory; warp `warp_id` does it."""
        with run_if(_is_warp(warp_id)):
            with one_thread_of_warp():
                copy_tensormap(copy_atom, dst_ptr)
            arch.sync_warp()

    def fence_tensormap_initialization(self, *, loc: object = None, ip: object = None) -> None:
        """Order the copies of `init_tensormap_from_atom` to global memory with the changes that follow."""
        if self.tensormap_update_mode is TensorMapUpdateMode.GMEM:
            arch.fence_acq_rel_cta()

    def update_tensormap(
        self,
        tensor_gmem: tuple[Any, ...],
        tma_copy_atom: tuple[Any, ...],
        tensormap_gmem_ptr: tuple[Any, ...],
        warp_id: Any,
        tensormap_smem_ptr: tuple[Any, ...],
        *,
        loc: object = None,
        ip: object = None,
    ) -> None:
        """Make maps those of other tensors, and release them. It waits for the warp's stores, which may read the maps.

        Raises:
            CompileError: the tuples differ in length.
        """
        near = tensormap_smem_ptr if self.tensormap_update_mode is TensorMapUpdateMode.SMEM else tensormap_gmem_ptr
        if len({len(tensor_gmem), len(tma_copy_atom), len(tensormap_gmem_ptr), len(near)}) > 1:
            raise CompileError(
                "update_tensormap takes an atom and a pointer for each tensor",
                location=user_location(),
                values={"tensors": len(tensor_gmem), "atoms": len(tma_copy_atom), "pointers": len(near)},
            )
        with run_if(_is_warp(warp_id)):
            if near is not tensormap_gmem_ptr:
                self._change(tma_copy_atom, tensor_gmem, near)
            with one_thread_of_warp():
                cp_async_bulk_commit_group()
                cp_async_bulk_wait_group(0, read=True)
            arch.sync_warp()
            if near is tensormap_gmem_ptr:
                self._change(tma_copy_atom, tensor_gmem, near)
                fence_tma_desc_release()
            else:
                for far, shared in zip(tensormap_gmem_ptr, near, strict=True):
                    cp_fence_tma_desc_release(far, shared)

    @staticmethod
    def _change(atoms: tuple[Any, ...], tensors: tuple[Any, ...], pointers: tuple[Any, ...]) -> None:
        for atom, tensor, pointer in zip(atoms, tensors, pointers, strict=True):
            update_tma_descriptor(atom, tensor, pointer)
        arch.sync_warp()

    def fence_tensormap_update(self, tensormap_ptr: Any, *, loc: object = None, ip: object = None) -> None:
        """Acquire a changed map, in the warp that copies by it."""
        fence_tma_desc_acquire(tensormap_ptr)


def _is_warp(warp_id: Any) -> Boolean:
    return Boolean(arch.make_warp_uniform(arch.warp_idx()) == as_numeric(warp_id))
