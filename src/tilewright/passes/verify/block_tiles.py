"""Verifiers of tiles: the values of block-level code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.layout.views import outer_of
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, tensor
from tilewright.passes.verify.table import verifies

if TYPE_CHECKING:
    from mlir import ir

_KINDS = ("addf", "addi", "addu", "maxf", "maxi", "maxu")
_MATRIX = 2


@verifies("tile_load")
def _load(op: OpSummary) -> None:
    (source,), coord = op.groups
    _in_memory(op.results[0], tensor(source), coord)
    if not isinstance(op.attributes["pad"], mlir.ir.FloatAttr):
        raise Invalid("pad is a number", "write it as an f64 attribute", pad=op.attributes["pad"])


@verifies("tile_store")
def _store(op: OpSummary) -> None:
    (value,), (target,), coord = op.groups
    _in_memory(value, tensor(target), coord)


def _in_memory(type_: ir.Type, memory: Memory, coord: object) -> None:
    """A tile that is read or written: elements and rank are the tensor's."""
    element, shape = _tile(type_)
    if element != memory.element:
        raise Invalid("the tile's elements are of another type than the tensor's", tile=type_, tensor=memory.type)
    if memory.space not in ("gmem", "generic"):
        raise Invalid("tiles are read and written in global memory", tensor=memory.type)
    extents = outer_of(memory.layout).shape
    rank, given = len(extents) if isinstance(extents, tuple) else 1, len(list(coord))  # type: ignore[call-overload]
    if not rank == given == len(shape):
        raise Invalid(
            f"a tensor of rank {rank}, a coordinate of {given} and a tile of {len(shape)} modes",
            "give one integer for each mode of the tensor",
            tile=type_,
            layout=memory.text,
        )


@verifies("tile_full")
def _full(op: OpSummary) -> None:
    element, _ = _tile(op.results[0])
    if op.groups[0][0] != element:
        raise Invalid(
            "the number is of another type than the tile's elements", value=op.groups[0][0], tile=op.results[0]
        )


@verifies("tile_broadcast")
def _broadcast(op: OpSummary) -> None:
    (element, before), (made, after) = _tile(op.groups[0][0]), _tile(op.results[0])
    if element != made or len(before) != len(after) or any(a not in (1, b) for a, b in zip(before, after, strict=True)):
        raise Invalid("a tile is repeated along its modes of extent 1", value=op.groups[0][0], result=op.results[0])


@verifies("tile_reduce")
def _reduce(op: OpSummary) -> None:
    (element, before), (made, after) = _tile(op.groups[0][0]), _tile(op.results[0])
    kind, axis = op.one_of("kind", _KINDS), op.number("axis")
    if not 0 <= axis < len(before):
        raise Invalid(f"there is no axis {axis}", value=op.groups[0][0])
    if made != element or after != [1 if mode == axis else extent for mode, extent in enumerate(before)]:
        raise Invalid("the folded mode is left with extent 1", value=op.groups[0][0], result=op.results[0], axis=axis)
    if (kind[-1] == "f") == isinstance(element, mlir.ir.IntegerType):
        raise Invalid(f"kind {kind!r} does not fold {element}", value=op.groups[0][0])


@verifies("tile_dot")
def _dot(op: OpSummary) -> None:
    (a, left), (b, right), (c, sums) = (_tile(group[0]) for group in op.groups)
    if len(left) != _MATRIX or len(right) != _MATRIX or left[1] != right[0] or sums != [left[0], right[1]]:
        raise Invalid("the shapes are (M, K), (K, N), (M, N)", a=left, b=right, c=sums)
    if a != b:
        raise Invalid("A and B have elements of one type", a=a, b=b)
    if str(c) != ("i32" if isinstance(a, mlir.ir.IntegerType) else "f32") or op.results[0] != op.groups[2][0]:
        raise Invalid("the sums are f32 of floats, i32 of integers", a=a, c=op.groups[2][0], result=op.results[0])


def _tile(type_: ir.Type) -> tuple[ir.Type, list[int]]:
    """Element type and shape of a tile."""
    found = mlir.ir.RankedTensorType(type_)
    if not found.has_static_shape or 0 in found.shape:
        raise Invalid("the shape of a tile is static, and has elements", got=type_)
    return found.element_type, list(found.shape)
