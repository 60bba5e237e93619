"""MLIR operations as plain records, which are quick to interpret."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.ir import build, mlir
from tilewright.ir.context import compile_context


@dataclass
class Op:
    """An operation: values are numbers of a table."""

    name: str
    operands: list[int]
    groups: list[list[int]]
    operand_types: list[str]
    results: list[int]
    types: list[str]
    attributes: dict
    regions: list[Block | None]


@dataclass
class Block:
    arguments: list[int]
    argument_types: list[str]
    operations: list[Op]


def parse(text: str) -> Block:
    """The operations of a module."""
    with compile_context():
        module = mlir.ir.Module.parse(text)
        return _Reader().block(module.body)


class _Reader:
    def __init__(self) -> None:
        self.numbers: dict = {}

    def number(self, value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def block(self, block) -> Block:
        arguments = [self.number(argument) for argument in block.arguments]
        types = [str(argument.type) for argument in block.arguments]
        return Block(arguments, types, [self.op(op.operation) for op in block.operations])

    def op(self, op) -> Op:
        operands = [self.number(operand) for operand in op.operands]
        groups, start = [], 0
        if op.name.startswith("cute."):
            for size in build.group_sizes(op):
                groups.append(operands[start : start + size])
                start += size
        return Op(
            op.name,
            operands,
            groups,
            [str(operand.type) for operand in op.operands],
            [self.number(result) for result in op.results],
            [str(result.type) for result in op.results],
            {name: _plain(op.attributes[name]) for name in op.attributes},
            [self.block(region.blocks[0]) if len(region.blocks) else None for region in op.regions],
        )


def _plain(attribute):
    ir = mlir.ir
    for kind in (ir.StringAttr, ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr):
        if isinstance(attribute, kind):
            return attribute.value
    if isinstance(attribute, ir.DenseI32ArrayAttr | ir.DenseI64ArrayAttr):
        return list(attribute)
    if isinstance(attribute, ir.DenseElementsAttr):
        count = ir.ShapedType(attribute.type).get_dim_size(0)
        if attribute.is_splat:
            return [_plain(attribute.get_splat_value())] * count
        return [attribute[n] for n in range(count)]
    if isinstance(attribute, ir.ArrayAttr):
        return [_plain(item) for item in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {item.name: _plain(item.attr) for item in attribute}
    return str(attribute)


_TENSOR = re.compile(r'!cute\.tensor<(\w+), "(\w+)", "([^"]*)", (\d+)')
_POINTER = re.compile(r'!cute\.ptr<(\w+), "(\w+)", (\d+)')


def tensor_type(text: str) -> tuple[str, str, str, int]:
    """Element, space, layout and alignment."""
    element, space, layout, align = _TENSOR.match(text).groups()
    return element, space, layout, int(align)


def pointer_type(text: str) -> tuple[str, str, int]:
    """Element, space and alignment."""
    element, space, align = _POINTER.match(text).groups()
    return element, space, int(align)


def vector_type(text: str) -> tuple[int, str]:
    """Length and element; length 0 of a number."""
    found = re.fullmatch(r"vector<(\d+)x(\w+)>", text)
    return (int(found[1]), found[2]) if found else (0, text)
