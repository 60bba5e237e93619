"""What the primitives take for a place in memory: a Pointer, a tensor or array, an MLIR value of type `!llvm.ptr`."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.accesses import as_pointer
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int64
from tilewright.lang.tensors.pointer import AddressSpace, Pointer


def pointer_of(place: Any) -> Pointer:
    """A pointer to the place.

    Raises:
        CompileError: it is none of these.
    """
    found = getattr(place, "iterator", place)
    return found if isinstance(found, Pointer) else as_pointer(found, Int64)


def shared_place(place: Any, what: str, *spaces: AddressSpace) -> Pointer:
    """A pointer to shared memory, or to one of `spaces`.

    Raises:
        CompileError: it lies elsewhere.
    """
    pointer = pointer_of(place)
    if pointer.memspace not in (AddressSpace.smem, *spaces):
        raise CompileError(
            f"{what} takes a pointer to shared memory", location=user_location(), values={"got": pointer}
        )
    return pointer
