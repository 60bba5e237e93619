"""`cute.typing`: the types of the language."""

from tilewright.lang.calls.annotations import Coord, IntTuple, Shape, Stride, Tile, Tiler, XTuple
from tilewright.lang.mlir_types import T
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Integer,
    Numeric,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
)
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout

Int = int

__all__ = [
    "AddressSpace", "BFloat16", "Boolean", "ComposedLayout", "Coord", "Float", "Float16", "Float32", "Float64",
    "Float8E4M3", "Float8E4M3B11FNUZ", "Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU", "Int", "Int128", "Int16", "Int32",
    "Int4", "Int64", "Int8", "IntTuple", "Integer", "Layout", "Numeric", "Pointer", "Shape", "Stride", "T", "TFloat32",
    "Tensor", "Tile", "Tiler", "Uint128", "Uint16", "Uint32", "Uint4", "Uint64", "Uint8", "XTuple",
]  # fmt: skip
