"""Which distribution each tile of a kernel has.

Tiles that meet in arithmetic, or follow each other in a loop or branch, are of one class and have one distribution:

1. a class with an accumulator of `tile.dot` has that of the product;
2. a class whose tiles are folded from, or repeated to, a larger class has what is left of that class's distribution;
3. any other is blocked along the mode that its loads and stores find contiguous (the last one where they find none), in
   groups of 16 bytes of its smallest elements in memory.

Larger classes come first. Numbers repeated to a tile belong to no class: they are made where they are used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import tensor_info
from tilewright.layout import ComposedLayout
from tilewright.passes.rules.memory import element_bits
from tilewright.targets.nvidia.tiles.distribution import Coordinate, Distribution, blocked, folded

if TYPE_CHECKING:
    from mlir import ir

FREE = ("arith.constant", "cute.tile_full")
"""Numbers repeated to a tile."""
GROUP_BYTES = 16
_RELATED = ("cute.tile_broadcast", "cute.tile_reduce", "cute.tile_load", "cute.tile_store", "cute.tile_dot", *FREE)


@dataclass
class TileClass:
    """Tiles of one distribution, and what decides it."""

    shape: Coordinate
    accumulates: list[ir.Operation] = field(default_factory=list)
    contiguous: Counter[int] = field(default_factory=Counter)
    bytes: int = 0
    larger: list[tuple[ir.Value, tuple[int, ...]]] = field(default_factory=list)
    distribution: Distribution | None = None


def is_tile(value: ir.Value) -> bool:
    """Whether a value is one that the block holds."""
    return isinstance(value.type, mlir.ir.RankedTensorType)


def is_free(value: ir.Value) -> bool:
    """Whether a value is a number repeated to a tile."""
    return getattr(value.owner, "name", "") in FREE


def shape_of(value: ir.Value) -> Coordinate:
    """The shape of a tile."""
    return tuple(mlir.ir.RankedTensorType(value.type).shape)


class Assignment:
    """The classes of a kernel's tiles."""

    def __init__(
        self, ops: Sequence[ir.Operation], threads: int, product: Callable[[ir.Operation], Distribution]
    ) -> None:
        """`product(op)` gives the distribution of the accumulator of a `tile_dot`."""
        self._parent: dict[ir.Value, ir.Value] = {}
        self._classes: dict[ir.Value, TileClass] = {}
        self._threads = threads
        for op in ops:
            for group in _together(op):
                self._join([value for value in group if is_tile(value) and not is_free(value)])
        for op in ops:
            self._look_at(op)
        for item in sorted(self._classes.values(), key=lambda item: -math.prod(item.shape)):
            item.distribution = self._decide(item, product)

    def __contains__(self, value: ir.Value) -> bool:
        return value in self._parent

    def of(self, value: ir.Value) -> Distribution:
        """The distribution of a tile."""
        made = self._classes[self._root(value)].distribution
        assert made is not None
        return made

    def standard(self, shape: Coordinate, bits: int) -> Distribution:
        """The distribution of a tile about which nothing is known but the size of its elements."""
        return blocked(shape, self._threads, len(shape) - 1, _group(bits // 8))

    def _decide(self, item: TileClass, product: Callable[[ir.Operation], Distribution]) -> Distribution:
        if item.accumulates:
            return product(item.accumulates[0])
        for value, modes in item.larger:
            found = self._classes[self._root(value)].distribution
            if found is not None:
                return folded(found, modes)
        fast = item.contiguous.most_common(1)[0][0] if item.contiguous else len(item.shape) - 1
        return blocked(item.shape, self._threads, fast, _group(item.bytes or 4))

    # Who belongs together.

    def _root(self, value: ir.Value) -> ir.Value:
        while self._parent[value] != value:
            self._parent[value] = self._parent[self._parent[value]]
            value = self._parent[value]
        return value

    def _join(self, values: Sequence[ir.Value]) -> None:
        for value in values:
            if value not in self._parent:
                self._parent[value] = value
            first, other = self._root(values[0]), self._root(value)
            if first != other:
                self._parent[other] = first

    def _class(self, value: ir.Value) -> TileClass:
        root = self._root(value)
        if root not in self._classes:
            self._classes[root] = TileClass(shape_of(value))
        return self._classes[root]

    def _look_at(self, op: ir.Operation) -> None:
        for value in [*op.results, *_arguments(op)]:
            if is_tile(value) and not is_free(value):
                self._class(value)
        if op.name == "cute.tile_dot":
            self._class(op.results[0]).accumulates.append(op)
        elif op.name == "cute.tile_load":
            self._in_memory(op.results[0], op.operands[0])
        elif op.name == "cute.tile_store" and not is_free(op.operands[0]):
            self._in_memory(op.operands[0], op.operands[1])
        elif op.name in ("cute.tile_broadcast", "cute.tile_reduce") and not is_free(op.operands[0]):
            small, large = op.results[0], op.operands[0]
            if op.name == "cute.tile_broadcast":
                small, large = large, small
            modes = tuple(m for m, (a, b) in enumerate(zip(shape_of(small), shape_of(large), strict=True)) if a != b)
            self._class(small).larger.append((large, modes))

    def _in_memory(self, value: ir.Value, tensor: ir.Value) -> None:
        info, item = tensor_info(tensor), self._class(value)
        bytes_ = max(element_bits(info.element) // 8, 1)
        item.bytes = min(item.bytes or bytes_, bytes_)
        mode = contiguous_mode(tensor)
        if mode is not None:
            item.contiguous[mode] += 1


def contiguous_mode(tensor: ir.Value) -> int | None:
    """The mode along which a tensor's elements lie side by side, None where none is known."""
    layout = tensor_info(tensor).layout
    if isinstance(layout, ComposedLayout):
        return None
    strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    return next((mode for mode, step in enumerate(strides) if isinstance(step, int) and step == 1), None)


def _group(bytes_: int) -> int:
    return max(GROUP_BYTES // max(bytes_, 1), 1)


def _arguments(op: ir.Operation) -> Iterator[ir.Value]:
    for region in op.regions:
        for block in region:
            yield from block.arguments


def _together(op: ir.Operation) -> Iterator[Sequence[ir.Value]]:
    """Groups of values that have one distribution."""
    if op.name == "scf.for":
        body = op.regions[0].blocks[0]
        yield from zip(list(op.operands)[3:], list(body.arguments)[1:], op.results, _last(body).operands, strict=True)
    elif op.name == "scf.if":
        ends = [_last(region.blocks[0]).operands for region in op.regions if len(region.blocks)]
        yield from zip(op.results, *ends, strict=True) if len(list(op.results)) else ()
    elif op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        passed = list(_last(before).operands)[1:]
        yield from zip(op.operands, before.arguments, _last(after).operands, strict=True)
        yield from zip(passed, after.arguments, op.results, strict=True)
    elif op.name == "cute.tile_dot":
        yield build.groups(op)[2] + list(op.results)
    elif op.name in _RELATED:
        yield from ([value] for value in op.results)
    else:
        values = [value for value in (*op.operands, *op.results) if is_tile(value)]
        if values and not op.name.startswith("scf."):
            yield values


def _last(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
