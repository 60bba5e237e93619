"""Some iterations of a loop side by side: each value of its body is a vector, or a number for each lane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, types, vectors
from tilewright.ir.accessors import constant_of, tensor_info, tensor_layout_text, text_of
from tilewright.ir.context import located
from tilewright.ir.int_value import IntValue
from tilewright.ir.walk import operations
from tilewright.layout import Layout, views
from tilewright.layout.dynamic import divisibility
from tilewright.passes.accessed_elements import ELEMENTS
from tilewright.passes.effects import name_of
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.loop_bodies import Body, Slice, clone, mapped
from tilewright.passes.loop_building import binary
from tilewright.passes.rules import packed

if TYPE_CHECKING:
    from mlir import ir


def bits_of(tensor: ir.Value) -> int:
    """Bits of an element of a tensor."""
    return max(tensor_info(tensor).bits, 8)


class Lanes:
    """Builds `width` iterations of a body at the insertion point, those of the group number `group`."""

    def __init__(self, body: Body, group: ir.Value, width: int) -> None:
        self.body = body
        self.group = group
        self.width = width
        self.vectors: dict[ir.Value, ir.Value] = {}
        self.numbers: list[dict[ir.Value, ir.Value]] = [{} for _ in range(width)]
        kind, lower = group.type, constant_of(body.lower)
        start = binary("addi", body.lower, binary("muli", group, build.constant(width, kind)))
        for lane, mapping in enumerate(self.numbers):
            mapping[body.index] = binary("addi", start, build.constant(lane, kind))
        # Tiles of `width` elements begin at multiples of it.
        first = int(lower) if lower is not None and lower >= 0 else 1
        self.tile = binary("addi", group, build.constant(first // width, kind)) if first % width == 0 else None

    def run(self, carried: list[ir.Value]) -> list[ir.Value]:
        """Build the iterations, which begin with these carried values; what the last one yields."""
        ordered = self._ordered()
        for place, op in enumerate(self.body.operations):
            if place not in ordered:
                location = op.location
                with located(lambda location=location: location):  # type: ignore[misc]
                    self._build(op)
        values = carried
        for mapping in self.numbers:
            mapping.update(zip(self.body.carried, values, strict=True))
            for place in sorted(ordered):
                self._fill(self.body.operations[place], mapping)
                clone(self.body.operations[place], mapping)
            self._fill_values(self.body.yielded, mapping)
            values = mapped(mapping, self.body.yielded)
        return values

    def _ordered(self) -> set[int]:
        """The places of operations that depend on a carried value: one iteration after the other."""
        known = set(self.body.carried)
        found: set[int] = set()
        for place, op in enumerate(self.body.operations):
            if any(value in known for inner in operations(op) for value in inner.operands):
                found.add(place)
                known.update(op.results)
        return found

    def _build(self, op: ir.Operation) -> None:
        if op.name in ELEMENTS:
            if self._access(op):
                return
            self._remark(op)
        if _works_on_vectors(op) and any(value in self.vectors for value in op.operands):
            self._arithmetic(op)
            return
        for mapping in self.numbers:
            self._fill(op, mapping)
            clone(op, mapping)
        if op.name == "cute.load" and vectors.is_vector(vector_type(op.results[0].type, self.width)):
            self.vectors[op.results[0]] = self._joined(op.results[0])

    def _remark(self, op: ir.Operation) -> None:
        tensor = op.operands[1 if op.name == "cute.store" else 0]
        if tensor_info(tensor).space != "rmem":
            why = (
                "the loop's index is not that of a contiguous mode"
                if self.tile is not None
                else (f"the loop does not start at a multiple of {self.width}")
            )
            remark(op, f"vectorize=True accesses {name_of(tensor)} element by element: {why}")

    def _fill(self, op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
        """Let `mapping` have the lane's number of each vector that an operation uses."""
        self._fill_values([value for inner in operations(op) for value in inner.operands], mapping)

    def _fill_values(self, values: list[ir.Value], mapping: dict[ir.Value, ir.Value]) -> None:
        lane = next(number for number, item in enumerate(self.numbers) if item is mapping)
        for value in values:
            if value not in mapping and value in self.vectors:
                mapping[value] = vectors.extract(self.vectors[value], lane)

    def _joined(self, value: ir.Value) -> ir.Value:
        parts = [mapping.get(value, value) for mapping in self.numbers]
        return build.cute("join", (vector_type(value.type, self.width),), (parts,)).results[0]

    def _vector(self, value: ir.Value) -> ir.Value:
        """A value of the body as a vector."""
        if value not in self.vectors:
            self.vectors[value] = self._joined(value)
        return self.vectors[value]

    def _arithmetic(self, op: ir.Operation) -> None:
        operands = [self._vector(value) for value in op.operands]
        result = vector_type(op.results[0].type, self.width)
        attributes = {name: op.attributes[name] for name in op.attributes}
        self.vectors[op.results[0]] = build.value(op.name, result, operands, attributes)

    # Memory

    def _access(self, op: ir.Operation) -> bool:
        """Load or store a vector; False where the elements do not lie side by side."""
        tensor = op.operands[1 if op.name == "cute.store" else 0]
        tile = self._tile(op, tensor)
        if tile is None:
            return False
        if op.name == "cute.load":
            result = vector_type(op.results[0].type, self.width)
            self.vectors[op.results[0]] = build.cute("load_tensor", (result,), ((tile,),)).results[0]
        else:
            build.cute("store_tensor", (), ((self._vector(op.operands[0]),), (tile,)))
        return True

    def _tile(self, op: ir.Operation, tensor: ir.Value) -> ir.Value | None:
        """The elements that the iterations access, as a tensor of one vector."""
        info = tensor_info(tensor)
        coord = _coordinate_of(op, self.body)
        numbers = [item for item in coord if isinstance(item, mlir.ir.Value)]
        if self.tile is None or info.space == "rmem" or packed.is_packed(info.element) or coord.count(INDEX) != 1:
            return None
        if Slice(self.body, [tensor, *numbers]).varies or any(isinstance(item, tuple) for item in coord):
            return None
        tensor, *numbers = mapped(self.numbers[0], [tensor, *numbers])  # the same in all lanes
        layout = _layout_of(tensor)
        if not isinstance(layout, Layout) or not _is_contiguous(layout, coord):
            return None
        tiler = tuple(self.width if item is INDEX else 1 for item in coord)
        leaves = iter(numbers)
        place = tuple(self._leaf(item, leaves) for item in coord)
        return _view(tensor, layout, "local_tile", (tiler, place))

    def _leaf(self, item: object, numbers: Iterator[ir.Value]) -> object:
        """One number of the coordinate of a tile."""
        if item is INDEX:
            assert self.tile is not None
            return IntValue(self.tile)
        return IntValue(next(numbers)) if isinstance(item, mlir.ir.Value) else item


INDEX = "index"


def _coordinate_of(op: ir.Operation, body: Body) -> tuple[object, ...]:
    """The coordinate of a load or store; the index of the loop in it is `INDEX`."""
    *_, coord32, coord64 = build.groups(op)
    queues = {32: iter(coord32), 64: iter(coord64)}

    def leaf(width: int, divisor: int) -> object:
        value = next(queues[width])
        return INDEX if value == body.index else value

    coord = layout_text.decode_coord(text_of(op, "coord"), leaf)
    return coord if isinstance(coord, tuple) else (coord,)


def _is_contiguous(layout: Layout, coord: tuple[object, ...]) -> bool:
    """True where the mode that the loop's index counts is a single one of stride 1."""
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    if len(coord) != len(shape) or any(isinstance(item, tuple) for item in shape):
        return False
    mode = coord.index(INDEX)
    return type(stride[mode]) is int and stride[mode] == 1


def _layout_of(tensor: ir.Value) -> Any:
    """The layout of a tensor, its leaves of run time as operations."""
    numbers = itertools.count()

    def leaf(width: int, divisor: int) -> IntValue:
        index = build.i32(next(numbers))
        found = build.cute("leaf", (types.parse(f"i{width}"),), ((tensor,),), index=index).results[0]
        return IntValue(found, divisor)

    return layout_text.decode_layout(tensor_layout_text(tensor.type), leaf)


def _view(tensor: ir.Value, layout: Layout, algebra: str, arguments: tuple[Any, ...]) -> ir.Value:
    """The view `algebra(tensor, *arguments)`."""
    cut = views.cut(layout, algebra, arguments)
    text, *left = layout_text.encode(cut.kept)
    given, *taken = layout_text.encode_arguments(arguments)
    info = tensor_info(tensor)
    step = divisibility(views.start_divisor(cut)) * info.bits // 8
    align = next(power for power in (256, 128, 64, 32, 16, 8, 4, 2, 1) if info.align % power == 0 and step % power == 0)
    type_ = types.parse(f'!cute.tensor<{info.element}, "{info.space}", "{text}", {align} : i32>')
    groups = [[leaf.value for leaf in leaves] for leaves in (*taken, *left)]
    attributes = {"algebra": algebra, "arguments": given, "moves": "pointer"}
    op = build.cute(
        "view",
        (type_,),
        ((tensor,), *groups),
        width=build.i32(32 if info.space == "smem" else 64),
        **{name: build.string(item) for name, item in attributes.items()},
    )
    return op.results[0]


def _works_on_vectors(op: ir.Operation) -> bool:
    """True of arithmetic that has vectors for operands just as numbers."""
    if not op.name.startswith(("arith.", "math.")) or op.name in ("arith.constant", "arith.index_cast"):
        return False
    return len(op.results) == 1 and all(_is_number(value.type) for value in (*op.operands, *op.results))


def _is_number(type_: ir.Type) -> bool:
    return isinstance(type_, mlir.ir.IntegerType | mlir.ir.FloatType)


def vector_type(type_: ir.Type, width: int) -> ir.Type:
    """A vector of numbers of a type."""
    return types.parse(f"vector<{width}x{type_}>")
