"""MLIR types by name, cached per context (`Type.parse` costs 20 µs)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.dtypes import TABLE
from tilewright.ir import mlir
from tilewright.ir.context import current

if TYPE_CHECKING:
    from mlir import ir

ELEMENT = {dtype.name: dtype.mlir for dtype in TABLE.values()}
"""The MLIR type of an element, by the short name of its number type."""


def parse(text: str) -> ir.Type:
    """The type written `text`."""
    return current().cached(("type", text), lambda: mlir.ir.Type.parse(text))


def element(dtype: str) -> ir.Type:
    """The MLIR type of a short dtype name."""
    return parse(ELEMENT[dtype])


def ptr(dtype: str, space: str, align: int) -> ir.Type:
    """`!cute.ptr`; align in bytes."""
    return parse(f'!cute.ptr<{ELEMENT[dtype]}, "{space}", {align} : i32>')


def tensor(dtype: str, space: str, layout: str, align: int) -> ir.Type:
    """`!cute.tensor`; layout in CuTe notation with `?` leaves."""
    return parse(f'!cute.tensor<{ELEMENT[dtype]}, "{space}", "{layout}", {align} : i32>')


def tensor_map(dtype: str, box: Sequence[int], swizzle: int) -> ir.Type:
    """`!cute.tensor_map`; extents of the box from the contiguous mode on, the swizzle in bytes (0: none)."""
    return parse(f'!cute.tensor_map<{ELEMENT[dtype]}, "{",".join(map(str, box))}", {swizzle} : i32>')


def is_tensor_map(type_: ir.Type) -> bool:
    """True of the type of a tensor map."""
    return bool(current().cached(("is_tensor_map", type_), lambda: str(type_).startswith("!cute.tensor_map")))


def vector(count: int, dtype: str) -> ir.Type:
    """`vector<count x element>`."""
    return parse(f"vector<{count}x{ELEMENT[dtype]}>")


def tile(shape: Sequence[int], dtype: str) -> ir.Type:
    """`tensor<64x32xf32>`: a value that a block holds together."""
    return parse(f"tensor<{'x'.join(map(str, shape))}x{ELEMENT[dtype]}>")


def is_shaped(type_: ir.Type) -> bool:
    """True for vectors and tiles, whose arithmetic is element by element."""
    return isinstance(type_, mlir.ir.VectorType | mlir.ir.RankedTensorType)


def is_cute(type_: ir.Type) -> bool:
    """True for types of the `cute` dialect."""
    return bool(current().cached(("is_cute", type_), lambda: str(type_).startswith("!cute.")))
