"""What operations on memory take: pointers in several forms, numbers and vectors, orders and scopes.

`sem` and `scope` are those of PTX ISA 9.0, "Memory Consistency Model".
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import mlir
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, from_mlir_type
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, pointer_at
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "cluster", "gpu", "sys")
_LLVM_SPACES = {1: AddressSpace.gmem, 3: AddressSpace.smem, 7: AddressSpace.dsmem}


def as_vector(val: Any) -> TensorSSA | None:
    """A TensorSSA, or an MLIR vector as one; None for anything else."""
    if isinstance(val, TensorSSA):
        return val
    if isinstance(val, mlir.ir.Value) and isinstance(val.type, mlir.ir.VectorType):
        return TensorSSA(val, (val.type.shape[0],), from_mlir_type(val.type.element_type))
    return None


def check_order(sem: Any, scope: Any, name: str, orders: tuple[str, ...] = ORDERS) -> None:
    """Refuse an order or a scope that an operation does not have."""
    for what, given, known in (("sem", sem, orders), ("scope", scope, SCOPES)):
        if given is not None and given not in known:
            raise CompileError(
                f"{name} has no {what} {given!r}",
                location=user_location(3),
                hint=f"{what} is one of {', '.join(known)}",
            )


def stored_type(ptr: Any) -> type[Numeric] | None:
    """The type of the numbers that a Pointer or tensor points to; None where it does not say."""
    ptr = ptr.iterator if isinstance(ptr, Tensor) else ptr
    return ptr.dtype if isinstance(ptr, Pointer) else None


def as_pointer(ptr: Any, cls: type[Numeric]) -> Pointer:
    """A pointer to numbers of type `cls`: of a Pointer, a tensor, or an MLIR value of type `!llvm.ptr`.

    Raises:
        CompileError: it is none of these, or points to registers.
    """
    ptr = ptr.iterator if isinstance(ptr, Tensor) else ptr
    if isinstance(ptr, mlir.ir.Value) and str(ptr.type).startswith("!llvm.ptr"):
        digits = "".join(char for char in str(ptr.type) if char.isdigit())
        return pointer_at(ptr, cls, _LLVM_SPACES.get(int(digits or 0), AddressSpace.generic), max(cls.width // 8, 1))
    if not isinstance(ptr, Pointer):
        raise CompileError(
            f"expected a pointer, got {type(ptr).__name__}",
            location=user_location(3),
            hint="`tensor.iterator + offset` points to an element",
        )
    if ptr.memspace is AddressSpace.rmem:
        raise CompileError(
            "memory that no other thread sees",
            location=user_location(3),
            values={"pointer": ptr},
            hint="read and write registers with plain operators",
        )
    return ptr.recast(cls) if ptr.dtype is not cls else ptr
