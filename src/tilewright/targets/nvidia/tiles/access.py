"""Loads and stores of tiles, by the thread's groups of elements that lie side by side.

Where address, strides and the extent along the group are multiples of a group, groups move as wide as they are, each
where the tensor has it: what the types do not say of this is asked once, the same for the whole block. Else elements
are looked at one by one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, types, vectors
from tilewright.ir.accessors import constant_of
from tilewright.lang.numbers.numeric import Int32, Numeric
from tilewright.lang.tensors.algebra import local_tile
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout
from tilewright.layout.dynamic import is_multiple
from tilewright.targets.nvidia.tiles.assignment import GROUP_BYTES, contiguous_mode
from tilewright.targets.nvidia.tiles.block import Block, every, extents_of, tensor_of, when
from tilewright.targets.nvidia.tiles.distribution import Distribution

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class Window:
    """The part of a tensor that a tile covers, seen by a thread.

    `origin` is where the tile begins, in tiles; a group is `width` elements along mode `fast`.
    """

    block: Block
    tensor: Tensor
    origin: Sequence[Any]
    held: Distribution
    fast: int
    width: int

    def at(self, origin: Sequence[Any]) -> Window:
        """The window of another tile."""
        return replace(self, origin=origin)

    @property
    def groups(self) -> range:
        """The first values of the groups."""
        return range(0, len(self.held.values), self.width)

    def index(self, value: int, mode: int) -> Any:
        """The coordinate of a group along a mode, in groups along `fast`."""
        unit = self.width if mode == self.fast else 1
        start = Int32(self.origin[mode]) * (self.held.shape[mode] // unit)
        return start + self.block.part(self.held, mode, unit) + self.held.values[value][mode] // unit

    def element(self, value: int, number: int = 0) -> list[Any]:
        """The coordinate of an element of a group."""
        found = [self.index(value, mode) for mode in range(len(self.held.shape))]
        if self.width > 1:
            found[self.fast] = found[self.fast] * self.width + number
        return found

    def group(self, value: int) -> Tensor:
        """A group as a tensor."""
        tiler = tuple(self.width if mode == self.fast else 1 for mode in range(len(self.held.shape)))
        return local_tile(self.tensor, tiler, tuple(self.index(value, mode) for mode in range(len(tiler))))

    def _covers(self, mode: int, extent: Any) -> bool:
        origin = self.origin[mode]
        known = origin if isinstance(origin, int) else origin.value if origin.is_static else None
        return known is not None and isinstance(extent, int) and (known + 1) * self.held.shape[mode] <= extent

    def inside(self, value: int, count: int, number: int = 0) -> Any:
        """Whether the tensor has `count` elements of a group from `number` on; True where that is known."""
        at = self.element(value, number)
        conditions = []
        for mode, extent in enumerate(extents_of(self.tensor)):
            if self._covers(mode, extent):
                continue
            conditions.append(at[mode] + (count - 1) < extent if mode == self.fast and count > 1 else at[mode] < extent)
        return every(conditions)

    def wide(self) -> tuple[Any, Window]:
        """Whether each group lies at a multiple of its size and is inside the tensor as a whole or not at all, and the
        window that takes the first for granted."""
        tensor, width = self.tensor, self.width
        bytes_ = width * tensor.element_type.width // 8
        steps = [step for mode, step in enumerate(_steps(tensor)) if mode != self.fast]
        unknown = [step for step in steps if not is_multiple(step, width)]
        conditions: list[Any] = []
        if width > 1 and not is_multiple(extent := extents_of(tensor)[self.fast], width):
            conditions.append(extent % width == 0)
        if width == 1 or bytes_ < 2 or not self._contiguous or any(isinstance(step, int) for step in unknown):
            return every(conditions), self
        conditions += [step % width == 0 for step in unknown]
        if tensor.iterator.alignment < bytes_:
            conditions.append(tensor.iterator.toint() % bytes_ == 0)
        return every(conditions), replace(self, tensor=_taken_for_granted(tensor, self.fast, width, bytes_))

    @property
    def _contiguous(self) -> bool:
        step = _steps(self.tensor)[self.fast]
        return isinstance(step, int) and step == 1


def _steps(tensor: Tensor) -> Sequence[Any]:
    """The strides of a tensor, mode by mode."""
    if isinstance(tensor.layout, ComposedLayout):
        return [0] * len(extents_of(tensor))
    return tensor.stride if isinstance(tensor.stride, tuple) else (tensor.stride,)


def _taken_for_granted(tensor: Tensor, fast: int, width: int, bytes_: int) -> Tensor:
    """The tensor with an address and strides that are known multiples."""

    def multiple(mode: int, step: Any) -> Any:
        if mode == fast or isinstance(step, int):
            return step
        made = type(step).from_ir(step.ir_value())
        made.divisibility, made.bound = math.lcm(step.divisibility, width), step.bound
        return made

    strides = tuple(multiple(mode, step) for mode, step in enumerate(_steps(tensor)))
    layout = Layout(tensor.shape, strides if isinstance(tensor.shape, tuple) else strides[0])
    dtype, space = tensor.element_type, tensor.memspace
    align = max(tensor.iterator.alignment, bytes_)
    cast = build.cute("ptr_cast", (types.ptr(dtype.facts.name, str(space), align),), ((tensor.iterator.value,),))
    return make_tensor(Pointer(cast.results[0], dtype, space, align), layout)


def window(block: Block, tensor: ir.Value, origin: Sequence[ir.Value], held: Distribution) -> Window:
    """The window of a load or store."""
    found = contiguous_mode(tensor)
    seen = tensor_of(tensor)
    fast = len(held.shape) - 1 if found is None else found
    most = max(GROUP_BYTES * 8 // seen.element_type.width, 1)
    numbers = [Int32.from_ir(value) for value in origin]
    known = [constant_of(value) for value in origin]
    start = [number if item is None else int(item) for number, item in zip(numbers, known, strict=True)]
    return Window(block, seen, start, held, fast, held.run(fast, most))


def whole_groups(seen: Window, memory: Tensor) -> Window:
    """The groups of a window in memory that holds the tile alone."""
    return replace(seen, tensor=memory, origin=[0] * len(seen.held.shape))


def load(seen: Window, pad: float) -> ir.Value:
    """The thread's elements of a tile as a vector."""
    dtype = seen.tensor.element_type
    whole, part = (types.vector(count, dtype.facts.name) for count in (len(seen.held.values), seen.width))
    number = pad if dtype.is_float else int(pad)
    wide_enough, wide = seen.wide()

    def by_groups() -> ir.Value:
        return _joined([_take_inside(wide, value, part, number) for value in seen.groups], whole)

    def by_elements() -> ir.Value:
        places = [(value, at) for value in seen.groups for at in range(seen.width)]
        return _joined([_element_inside(seen, value, at, number) for value, at in places], whole)

    found: ir.Value = when(wide_enough, whole, by_groups, by_elements)
    return found


def take_all(seen: Window) -> ir.Value:
    """The thread's elements as a vector, all of which are inside."""
    whole = types.vector(len(seen.held.values), seen.tensor.element_type.facts.name)
    return _joined([_take(seen, value) for value in seen.groups], whole)


def put_all(seen: Window, vector: ir.Value) -> None:
    """Write the thread's elements, all of which are inside."""
    for value in seen.groups:
        _put(seen, value, piece(vector, value, seen.width))


def _take(seen: Window, value: int) -> ir.Value:
    """A group: a vector, or a number where it is one element."""
    return _element(seen, value, 0) if seen.width == 1 else seen.group(value).load().value


def _element(seen: Window, value: int, number: int) -> ir.Value:
    found: Numeric = seen.tensor[_coordinate(seen.element(value, number))]
    return found.ir_value()


def _take_inside(seen: Window, value: int, part: ir.Type, pad: float) -> ir.Value:
    if seen.width == 1:
        return _element_inside(seen, value, 0, pad)
    inside = seen.inside(value, seen.width)
    found: ir.Value = when(inside, part, lambda: _take(seen, value), lambda: build.splat(pad, part))
    return found


def _element_inside(seen: Window, value: int, number: int, pad: float) -> ir.Value:
    machine = seen.tensor.element_type.mlir_type
    inside = seen.inside(value, 1, number)
    found: ir.Value = when(inside, machine, lambda: _element(seen, value, number), lambda: build.constant(pad, machine))
    return found


def store(seen: Window, vector: ir.Value) -> None:
    """Write the thread's elements of a tile; of those who hold the same, one writes."""
    wide_enough, wide = seen.wide()

    def by_groups() -> None:
        for value in seen.groups:
            part = piece(vector, value, seen.width)
            when(seen.inside(value, seen.width), None, functools.partial(_put, wide, value, part))

    def by_elements() -> None:
        for value in seen.groups:
            part = piece(vector, value, seen.width)
            for at in range(seen.width):
                when(seen.inside(value, 1, at), None, functools.partial(_put_element, seen, value, at, part))

    def write() -> None:
        when(wide_enough, None, by_groups, by_elements)

    first = seen.block.first_of_copies(seen.held)
    when(True if first is None else first, None, write)


def _put(seen: Window, value: int, part: ir.Value) -> None:
    if seen.width == 1:
        _put_element(seen, value, 0, part)
    else:
        group = seen.group(value)
        group.store(TensorSSA(part, group.shape, seen.tensor.element_type))


def _put_element(seen: Window, value: int, number: int, part: ir.Value) -> None:
    element = seen.tensor.element_type.from_ir(vectors.extract(part, number))
    seen.tensor[_coordinate(seen.element(value, number))] = element


def _coordinate(items: Sequence[Any]) -> Any:
    return tuple(items) if len(items) > 1 else items[0]


# Vectors of a thread's elements.


def piece(vector: ir.Value, first: int, count: int) -> ir.Value:
    """`count` elements of a vector."""
    return vectors.shuffle(vector, range(first, first + count))


def _joined(parts: Sequence[ir.Value], whole: ir.Type) -> ir.Value:
    """Numbers, or vectors of one length, side by side."""
    if not vectors.is_vector(parts[0].type):
        return _vector_of(parts, whole)
    return parts[0] if len(parts) == 1 else build.cute("join", (whole,), (parts,)).results[0]


def _vector_of(elements: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    return build.value("vector.from_elements", type_, elements)
