"""Whole tensors in signatures and regions as their parts: address, leaves of 32 bits, leaves of 64 bits.

Where a tensor was an argument of a block or the result of an operation, a `cute.make_tensor` of the parts takes its
place. The pass `expand-views` begins with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilewright.ir import build, layout_text, mlir, types
from tilewright.ir.accessors import parameters, tensor_layout_text
from tilewright.ir.context import current, located
from tilewright.ir.walk import operations

if TYPE_CHECKING:
    from mlir import ir

_YIELDS = ("scf.yield", "scf.condition")


def split_tensors(function: ir.Operation) -> None:
    """Rewrite the signature of `function`, its regions and its launches so that no tensor passes through them."""
    _retype(function)
    for op in operations(function):
        if op.name.startswith("scf.") and op.name not in _YIELDS and _has_tensors(op):
            op = _with_split_results(op)
        for region in op.regions:
            for block in region:
                if any(_is_tensor(argument.type) for argument in block.arguments):
                    _split_arguments(block)
        if op.name in (*_YIELDS, "gpu.launch_func") and _has_tensors(op):
            _split_operands(op)


@dataclass(frozen=True)
class _Parts:
    """The parts of a tensor type: its address, and the widths of its leaves in order of appearance."""

    pointer: ir.Type
    widths: tuple[int, ...]

    @property
    def order(self) -> list[int]:
        """The leaves as they are handed on: those of 32 bits, then those of 64."""
        return sorted(range(len(self.widths)), key=self.widths.__getitem__)


def part_types(type_: ir.Type) -> list[ir.Type]:
    """The types of a tensor's parts; of any other type itself."""
    parts = _parts_of(type_)
    if not parts:
        return [type_]
    return [parts.pointer, *(types.parse(f"i{parts.widths[index]}") for index in parts.order)]


def _parts_of(type_: ir.Type) -> _Parts | Literal[False]:
    """The parts of a tensor type; False for any other."""
    return current().cached(("parts", type_), lambda: _find_parts(type_))  # type: ignore[no-any-return]


def _find_parts(type_: ir.Type) -> _Parts | Literal[False]:
    if not str(type_).startswith("!cute.tensor<"):
        return False
    element, space, _, align = parameters(type_)
    pointer = types.parse(f'!cute.ptr<{element}, "{space}", {align}>')
    return _Parts(pointer, tuple(layout_text.widths(tensor_layout_text(type_))))


def _is_tensor(type_: ir.Type) -> bool:
    return bool(_parts_of(type_))


def _has_tensors(op: ir.Operation) -> bool:
    return any(_is_tensor(value.type) for value in (*op.operands, *op.results))


def _parts(value: ir.Value) -> list[ir.Value]:
    """The parts of a tensor, asked of it at the insertion point; another value itself."""
    parts = _parts_of(value.type)
    if not parts:
        return [value]
    leaves = [
        build.cute("leaf", (types.parse(f"i{parts.widths[index]}"),), ((value,),), index=build.i32(index)).results[0]
        for index in parts.order
    ]
    return [build.cute("iterator", (parts.pointer,), ((value,),)).results[0], *leaves]


def _joined(type_: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    """A tensor of its parts."""
    parts = _parts_of(type_)
    if not parts:
        return values[0]
    narrow = parts.widths.count(32)
    groups = (values[:1], values[1 : 1 + narrow], values[1 + narrow :])
    return build.cute("make_tensor", (type_,), groups).results[0]


def _split_arguments(block: ir.Block) -> None:
    old = list(block.arguments)
    where = mlir.ir.InsertionPoint.at_block_begin(block)
    with where:
        for argument in old:
            fresh = [block.add_argument(type_, argument.location) for type_ in part_types(argument.type)]
            argument.replace_all_uses_with(_joined(argument.type, fresh))
    for _ in old:
        block.erase_argument(0)


def _split_operands(op: ir.Operation) -> None:
    """Give the parts of each tensor among the operands: of a terminator, or the arguments of a launch."""
    location = op.location
    with mlir.ir.InsertionPoint(op), located(lambda: location):
        split = [_parts(operand) for operand in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        if "operandSegmentSizes" in attributes:
            attributes["operandSegmentSizes"] = _segments(op, [len(parts) for parts in split])
        build.emit(op.name, (), [part for parts in split for part in parts], attributes)
    op.erase()


def _segments(op: ir.Operation, counts: Sequence[int]) -> ir.Attribute:
    remaining = iter(counts)
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    return build.i32_array([sum(next(remaining) for _ in range(size)) for size in sizes])


def _with_split_results(op: ir.Operation) -> ir.Operation:
    """The operation with parts for its tensor results and operands; its regions move over."""
    location = op.location
    with mlir.ir.InsertionPoint(op), located(lambda: location):
        operands = [part for operand in op.operands for part in _parts(operand)]
        result_types = [type_ for result in op.results for type_ in part_types(result.type)]
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = build.emit(op.name, result_types, operands, attributes, regions=len(op.regions))
        for source, target in zip(op.regions, made.regions, strict=True):
            for block in list(source):
                block.append_to(target)
        fresh = iter(made.results)
        for result in op.results:
            parts = [next(fresh) for _ in part_types(result.type)]
            result.replace_all_uses_with(_joined(result.type, parts))
    op.erase()
    return made


def _retype(function: ir.Operation) -> None:
    """Write the parts into the function's type; what is said of a tensor stays with its address."""
    arguments = [argument.type for argument in function.regions[0].blocks[0].arguments]
    if not any(map(_is_tensor, arguments)):
        return
    split = [part_types(type_) for type_ in arguments]
    results = mlir.ir.FunctionType(mlir.ir.TypeAttr(function.attributes["function_type"]).value).results
    type_ = mlir.ir.FunctionType.get([part for parts in split for part in parts], results)
    function.attributes["function_type"] = mlir.ir.TypeAttr.get(type_)
    if "arg_attrs" in function.attributes:
        none = mlir.ir.DictAttr.get({})
        old = list(mlir.ir.ArrayAttr(function.attributes["arg_attrs"]))
        fresh = [item for given, parts in zip(old, split, strict=True) for item in (given, *[none] * (len(parts) - 1))]
        function.attributes["arg_attrs"] = mlir.ir.ArrayAttr.get(fresh)
