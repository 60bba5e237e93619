"""Elements of vectors. LLVM's vector operations know no float of 8 bits or fewer: those pass as integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.context import current

if TYPE_CHECKING:
    from mlir import ir

_NARROW = ("f8E", "f6E", "f4E")


def _is_narrow(type_: ir.Type) -> bool:
    return bool(current().cached(("narrow", type_), lambda: str(type_).startswith(_NARROW)))


def is_vector(type_: ir.Type) -> bool:
    """True for vector types."""
    return isinstance(type_, mlir.ir.VectorType)


def like(value: ir.Value, dtype: str) -> ir.Type:
    """The type of `value`, a number or a vector, with elements of `dtype` (a short name)."""
    if not is_vector(value.type):
        return types.element(dtype)
    return types.vector(mlir.ir.VectorType(value.type).shape[0], dtype)


def machine_vector(type_: ir.Type) -> ir.Type:
    """The vector type that LLVM's operations take for `type_`: the same, or one of integers."""
    element = mlir.ir.VectorType(type_).element_type
    if not _is_narrow(element):
        return type_
    shape = "x".join(str(extent) for extent in mlir.ir.VectorType(type_).shape)
    return types.parse(f"vector<{shape}xi{element.width}>")


def cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The same bits as a type of the same shape and width."""
    return value if value.type == type_ else build.value("arith.bitcast", type_, (value,))


def extract(vector: ir.Value, index: int | ir.Value) -> ir.Value:
    """Element `index` of a vector."""
    element = vector.type.element_type
    machine = cast(vector, machine_vector(vector.type))
    position = build.constant(index, types.parse("i32")) if isinstance(index, int) else index
    found = build.value("llvm.extractelement", machine.type.element_type, (machine, position))
    return cast(found, element)


def insert(vector: ir.Value, value: ir.Value, index: int) -> ir.Value:
    """The vector with element `index` replaced."""
    machine = cast(vector, machine_vector(vector.type))
    position = build.constant(index, types.parse("i32"))
    operand = cast(value, machine.type.element_type)
    changed = build.value("llvm.insertelement", machine.type, (machine, operand, position))
    return cast(changed, vector.type)


def shuffle(vector: ir.Value, indices: Sequence[int]) -> ir.Value:
    """The elements at `indices`, as a vector."""
    element = vector.type.element_type
    machine = cast(vector, machine_vector(vector.type))
    result = types.parse(f"vector<{len(indices)}x{machine.type.element_type}>")
    attributes = {"mask": build.i32_array(list(indices))}
    found = build.value("llvm.shufflevector", result, (machine, machine), attributes)
    return cast(found, types.parse(f"vector<{len(indices)}x{element}>"))


def poison(type_: ir.Type) -> ir.Value:
    """A vector of any values, to insert into."""
    return cast(build.value("llvm.mlir.poison", machine_vector(type_)), type_)
