"""Tensor maps in host functions: 128 bytes on the stack, written by the driver's encoder at each call.

The arguments are those of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object Management"). Extents are in
elements, strides in bytes and those of the modes after the first; what is known only at run time comes from the leaves
of the tensor's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.hw.atoms import async_copy
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import TensorMapInfo, tensor_map_info, text_of
from tilewright.ir.int_value import materialize
from tilewright.layout import ComposedLayout
from tilewright.layout.inttuple import flat
from tilewright.passes.lowering import LoweringContext, TensorView, gep_constant
from tilewright.passes.rules.memory import element_bits, entry_block

if TYPE_CHECKING:
    from mlir import ir

_MAP_BYTES = 128
_MAP_ALIGN = 64
_MOST_MODES = max(async_copy.TENSOR_RANKS)


def make_map(op: ir.Operation, context: LoweringContext, encode: Callable[[list[ir.Value]], None]) -> ir.Value:
    """The address of the tensor map that `cute.make_tensor_map` makes; `encode` calls the encoder."""
    view, info = context.tensor(op.operands[0]), tensor_map_info(op.results[0].type)
    room = _slot(op, types.parse(f"!llvm.array<{_MAP_BYTES} x i8>"), _MAP_ALIGN)
    modes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["modes"]))
    extents, strides = _sizes(view, modes, info)
    arrays = [
        _array(op, extents, 64),
        _array(op, strides, 64),
        _array(op, info.box, 32),
        _array(op, [1] * len(info.box), 32),
    ]
    type_, _ = async_copy.TENSOR_TYPES[text_of(op, "type")]
    encode([room, *map(_word, (type_, len(modes))), view.ptr, *arrays, _word(async_copy.SWIZZLE_MODES[info.swizzle])])
    return room


def _sizes(view: TensorView, modes: Sequence[int], info: TensorMapInfo) -> tuple[list[Any], list[Any]]:
    """Extents of the modes, and the strides in bytes of all but the first."""
    layout = view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout
    shape, stride, bits = flat(layout.shape), flat(layout.stride), element_bits(info.element)
    return [shape[mode] for mode in modes], [stride[mode] * (bits // 8) for mode in modes[1:]]


def _word(number: int) -> ir.Value:
    return build.constant(number, types.parse("i32"))


def _array(op: ir.Operation, numbers: Sequence[Any], bits: int) -> ir.Value:
    """An array of numbers on the stack, as long as that of any map."""
    type_ = types.parse(f"i{bits}")
    room = _slot(op, types.parse(f"!llvm.array<{_MOST_MODES} x i{bits}>"), 8)
    for place, number in enumerate(numbers):
        build.emit("llvm.store", (), (_value(number, bits), gep_constant(room, place, type_)))
    return room


def _value(number: Any, bits: int) -> ir.Value:
    return build.constant(number, types.parse(f"i{bits}")) if isinstance(number, int) else materialize(number, bits)


def _slot(op: ir.Operation, type_: ir.Type, align: int) -> ir.Value:
    """Room in the frame of the function: a map that is made in a loop is made in the same place."""
    with mlir.ir.InsertionPoint.at_block_begin(entry_block(op)):
        one = build.constant(1, types.parse("i32"))
        attributes = {"elem_type": mlir.ir.TypeAttr.get(type_), "alignment": build.i64(align)}
        return build.value("llvm.alloca", types.parse("!llvm.ptr"), (one,), attributes)
