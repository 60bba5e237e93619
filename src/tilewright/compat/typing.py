"""`cutlass.base_dsl.typing`."""

from typing import TYPE_CHECKING

from tilewright.arguments.objects import get_c_pointers, get_mlir_types
from tilewright.base.later import INTERNAL as _INTERNAL
from tilewright.base.later import missing as _missing
from tilewright.lang.mlir_types import T
from tilewright.lang.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
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
    NumericMeta,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    as_numeric,
)
from tilewright.lang.parameters import Constexpr
from tilewright.lang.pointer import AddressSpace, Pointer
from tilewright.lang.tensor_ssa import TensorSSA as Vector
from tilewright.lang.values import extract_mlir_values, new_from_mlir_values

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
