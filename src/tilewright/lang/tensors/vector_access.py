"""Vectors of consecutive elements at an address, and single elements of volatile memory: how pointers read and write
them. `Pointer` has these as methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.implicit_conversion import as_element, check_elements
from tilewright.lang.numbers.numeric import Boolean, Numeric
from tilewright.lang.tensors.element_limits import check_unrolled
from tilewright.lang.tensors.tensor_ssa import TensorSSA, full

if TYPE_CHECKING:
    from mlir import ir


class Place(Protocol):
    """What the accesses ask of a pointer."""

    dtype: type[Numeric]
    memspace: Any
    alignment: int

    @property
    def value(self) -> ir.Value: ...

    @property
    def llvm_ptr(self) -> ir.Value: ...


def load_vector(pointer: Place, count: int) -> TensorSSA:
    """The `count` elements from `pointer` on."""
    _check_count(pointer, count)
    type_ = types.vector(count, pointer.dtype.facts.name)
    value = build.cute("load_tensor", (type_,), ((_row(pointer, count),),)).results[0]
    return TensorSSA(value, (count,), pointer.dtype)


def store_vector(pointer: Place, vector: TensorSSA) -> None:
    """Write the elements of `vector`, in colexicographic order, from `pointer` on."""
    check_elements(vector.dtype, pointer.dtype)
    converted = vector.to(pointer.dtype)
    build.cute("store_tensor", (), ((converted.value,), (_row(pointer, vector.size),)))


def fill_vector(pointer: Place, value: Any, count: int) -> None:
    """Write one number to the `count` elements from `pointer` on."""
    _check_count(pointer, count)
    build.cute("fill", (), ((as_element(value, pointer.dtype).ir_value(),), (_row(pointer, count),)))


def masked_load(pointer: Place, mask: Any, default: Any) -> TensorSSA:
    """The elements from `pointer` on where `mask` is true, `default` elsewhere, where nothing is read."""
    truths = _mask(mask)
    rest = full(truths.shape, default, pointer.dtype)
    attributes = {"alignment": build.i32(pointer.alignment)}
    operands = (pointer.llvm_ptr, truths.value, rest.value)
    return TensorSSA(
        build.value("llvm.intr.masked.load", rest.value.type, operands, attributes), truths.shape, pointer.dtype
    )


def masked_store(pointer: Place, vector: Any, mask: Any) -> None:
    """Write the elements of `vector` where `mask` is true from `pointer` on, and nothing elsewhere."""
    truths = _mask(mask)
    values = vector if isinstance(vector, TensorSSA) else full(truths.shape, vector, pointer.dtype)
    if values.size != truths.size:
        raise CompileError(
            "masked_store takes one truth value for each element",
            location=user_location(2),
            values={"elements": values.size, "mask": truths.size},
        )
    check_elements(values.dtype, pointer.dtype)
    operands = (values.to(pointer.dtype).value, pointer.llvm_ptr, truths.value)
    build.emit("llvm.intr.masked.store", (), operands, {"alignment": build.i32(pointer.alignment)})


def load_volatile(pointer: Place) -> Numeric:
    """The element at `pointer`, read anew each time."""
    value = build.value("llvm.load", pointer.dtype.mlir_type, (pointer.llvm_ptr,), _volatile())
    return pointer.dtype.from_ir(value)


def store_volatile(pointer: Place, value: Any) -> None:
    """Write the element at `pointer`, each time it is said."""
    build.emit("llvm.store", (), (as_element(value, pointer.dtype).ir_value(), pointer.llvm_ptr), _volatile())


def _volatile() -> dict[str, ir.Attribute]:
    return {"volatile_": build.attribute("unit")}


def _mask(mask: Any) -> TensorSSA:
    found = mask if isinstance(mask, TensorSSA) else mask.load() if hasattr(mask, "load") else None
    if not isinstance(found, TensorSSA) or found.dtype is not Boolean:
        raise CompileError(
            "a mask is a vector of Booleans",
            location=user_location(3),
            values={"got": mask},
            hint="cutlass.Vector.from_elements(truths, cutlass.Boolean), or a register tensor of Boolean",
        )
    return found


def _check_count(pointer: Place, count: Any) -> None:
    if not isinstance(count, int) or count < 1:
        raise CompileError(
            "the number of elements of a vector is known while compiling, and at least 1",
            location=user_location(3),
            values={"count": count},
        )
    check_unrolled(count, "a vector", pointer)


def _row(pointer: Place, count: int) -> ir.Value:
    """The elements as a tensor of one mode."""
    type_ = types.tensor(pointer.dtype.facts.name, str(pointer.memspace), f"{count}:1", pointer.alignment)
    return build.cute("make_tensor", (type_,), ((pointer.value,), (), ())).results[0]
