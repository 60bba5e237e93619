"""Whether iterations of a loop are independent: whether one may write what another reads or writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, layout_text
from tilewright.ir.accessors import tensor_info, text_of
from tilewright.ir.walk import operations
from tilewright.layout import Layout
from tilewright.layout.inttuple import flat
from tilewright.passes.circular_buffers import is_injective
from tilewright.passes.effects import Effects, effects_of, may_overlap
from tilewright.passes.loop_bodies import Body, Slice, same_value

if TYPE_CHECKING:
    from mlir import ir

ELEMENTS = ("cute.load", "cute.store")


def conflict(body: Body, found: Effects, own_stores: bool = False) -> ir.Value | None:
    """A tensor through which iterations may depend on each other; None where there is none.

    Two accesses to one tensor, at least one a write, do not conflict where both are of the element that the index of
    the loop picks. With `own_stores` a single store must be of such an element too.
    """
    accesses = [op for item in body.operations for op in operations(item) if _touches(op)]
    for number, op in enumerate(accesses):
        for other in accesses[number if own_stores else number + 1 :]:
            tensor = _shared(op, other)
            if tensor is not None and not _same_element(body, op, other):
                return tensor
    return None


def _touches(op: ir.Operation) -> bool:
    found = effects_of(op) if not op.regions else None
    return found is not None and bool(found.reads or found.writes)


def _shared(op: ir.Operation, other: ir.Operation) -> ir.Value | None:
    """A tensor that both operations access and one of them writes."""
    first, second = effects_of(op), effects_of(other)
    pairs = [(a, b) for a in first.writes for b in (*second.reads, *second.writes)]
    pairs += [(a, b) for a in first.reads for b in second.writes]
    return next((a for a, b in pairs if may_overlap(a, b)), None)


def _same_element(body: Body, op: ir.Operation, other: ir.Operation) -> bool:
    """True where both access one element, of which there is another one in each iteration."""
    if op.name not in ELEMENTS or other.name not in ELEMENTS:
        return False
    first, second = _operands(op), _operands(other)
    if len(first) != len(second) or text_of(op, "coord") != text_of(other, "coord"):
        return False
    return all(map(same_value, first, second)) and is_own_element(body, op)


def _operands(op: ir.Operation) -> list[ir.Value]:
    """The tensor and the numbers of its coordinate."""
    return list(op.operands)[1 if op.name == "cute.store" else 0 :]


def is_own_element(body: Body, op: ir.Operation) -> bool:
    """True where the coordinate of a load or store is another element in each iteration: the index of the loop is one
    number of it, the others are from outside, and the layout has one place for each."""
    tensor, *numbers = _operands(op)
    mine = [value for value in numbers if value == body.index]
    others = [tensor, *(value for value in numbers if value != body.index)]
    if len(mine) != 1 or Slice(body, others).varies:
        return False
    layout = tensor_info(tensor).layout
    return isinstance(layout, Layout) and _spreads(layout, coordinate_of(op, body))


def coordinate_of(op: ir.Operation, body: Body) -> tuple[object, ...]:
    """The coordinate of a load or store; the index of the loop in it is `INDEX`."""
    *_, coord32, coord64 = build.groups(op)
    queues = {32: iter(coord32), 64: iter(coord64)}

    def leaf(width: int, divisibility: int) -> object:
        value = next(queues[width])
        return INDEX if value == body.index else value

    coord = layout_text.decode_coord(text_of(op, "coord"), leaf)
    return coord if isinstance(coord, tuple) else (coord,)


INDEX = "index"


def _spreads(layout: Layout, coord: tuple[object, ...]) -> bool:
    """True where the places of a layout differ along the mode that `INDEX` counts."""
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    if len(coord) == 1 and len(shape) > 1:
        return all(type(item) is int for item in (*flat(shape), *flat(stride))) and is_injective(layout)
    mode = next((number for number, item in enumerate(coord) if item is INDEX), None)
    if mode is None:
        return False  # inside a nested coordinate
    if isinstance(shape[mode], tuple):
        part = Layout(shape[mode], stride[mode])
        return all(type(item) is int for item in (*flat(shape[mode]), *flat(stride[mode]))) and is_injective(part)
    return type(stride[mode]) is int and stride[mode] != 0
