"""check-bounds: assert that each access to a tensor stays inside it. It runs only with `EnableAssertions`.

before: `%v = cute.load %t, %i {coord = "?"}`
after:  assertions on `%i` against the shape of `%t`, and on the place in memory against the argument of the function
        that `%t` is a part of; then the load

Kernels and host functions are checked alike. The index is checked for single elements; the memory also for transfers of
whole tensors, where a predicate is true. What fails prints the index and the shape, or the offset and the size, before
it stops: a thread by a trap, a host function by an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, types, vectors
from tilewright.ir.context import located
from tilewright.ir.int_value import IntValue, materialize, widen
from tilewright.ir.source import source_location
from tilewright.ir.walk import operations
from tilewright.layout import ComposedLayout, Layout, cosize, flatten_to_tuple, is_static, size
from tilewright.layout.dynamic import add, mul, sub
from tilewright.passes.lowering import ptr_info, read_coord, read_layout, tensor_layout_text, text_of
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.place_shared_memory import kernels

if TYPE_CHECKING:
    from mlir import ir

TENSORS = "tilewright.tensors"  # on a function: its tensor arguments, see `argument_text`
_ELEMENTS = ("cute.load", "cute.store", "cute.atomic")
_WHOLE = ("cute.load_tensor", "cute.store_tensor", "cute.fill", "cute.copy", "cute.copy_value")
_COPIES = {"cute.copy": 2, "cute.copy_value": 1}  # and which group of operands is the predicate
_MOST_OFFSETS = 64  # of a swizzled tensor whose layout is known only at run time


def argument_text(name: str, first: int, layout: str) -> str:
    """One tensor argument for the attribute `TENSORS`: its pointer is argument `first`, its leaves follow, those of 32
    bits before those of 64; on a host function in the order of the text."""
    return f"{name}|{first}|{layout}"


@register
class CheckBounds(Pass):
    """See the module."""

    name = "check-bounds"

    def run(self, module: ir.Operation) -> None:
        build.forget_pure()
        for function in [*kernels(module), *_host_functions(module)]:
            arguments = _arguments(function)
            for op in _accesses(function):
                location = op.location
                with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                    _check(op, arguments)
        build.forget_pure()


@dataclass(frozen=True)
class _Argument:
    """A tensor that the kernel was given."""

    name: str
    pointer: ir.Value
    layout: Layout | ComposedLayout


def _host_functions(module: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "func.func"]


def _arguments(function: ir.Operation) -> list[_Argument]:
    if TENSORS not in function.attributes:
        return []
    values = list(function.regions[0].blocks[0].arguments)
    found = []
    for part in text_of(function, TENSORS).split(";"):
        name, first, text = part.split("|")
        at = int(first)
        widths = layout_text.widths(text)
        order = list(range(len(widths)))
        if function.name != "func.func":
            order.sort(key=lambda index: widths[index])
        taken = {index: values[at + 1 + place] for place, index in enumerate(order)}
        narrow = [taken[index] for index, width in enumerate(widths) if width == 32]
        wide = [taken[index] for index, width in enumerate(widths) if width == 64]
        found.append(_Argument(name, values[at], read_layout(text, narrow, wide)))
    return found


def _accesses(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in operations(function) if op.name in _ELEMENTS or op.name in _WHOLE]


def _check(op: ir.Operation, arguments: list[_Argument]) -> None:
    if op.name in _ELEMENTS:
        *_, (tensor,), coord32, coord64 = build.groups(op)
        coord = read_coord(text_of(op, "coord"), coord32, coord64)
        layout = _layout_of(tensor)
        if layout is not None:
            _check_index(op, coord, layout)
            _check_memory(op, tensor, [layout(_widened(coord))], arguments)
        return
    groups = build.groups(op)
    at = _COPIES.get(op.name, len(groups))
    tensors = [value for group in groups[:at] for value in group if _is_tensor(value)]
    pred = groups[at][0] if op.name in _COPIES and groups[at] else None
    for tensor in tensors:
        if pred is not None:
            _check_predicated(op, tensor, pred, arguments)
        elif (layout := _layout_of(tensor)) is not None:
            _check_memory(op, tensor, _extremes(layout), arguments)


def _is_tensor(value: ir.Value) -> bool:
    return str(value.type).startswith("!cute.tensor")


def _layout_of(tensor: ir.Value) -> Layout | ComposedLayout | None:
    owner = tensor.owner
    if getattr(owner, "name", "") != "cute.make_tensor":
        return None
    _, leaves32, leaves64 = build.groups(owner)
    return read_layout(tensor_layout_text(tensor.type), leaves32, leaves64)


def _widened(coord: Any) -> Any:
    return tuple(_widened(part) for part in coord) if isinstance(coord, tuple) else widen(coord)


def _check_index(op: ir.Operation, coord: Any, layout: Layout | ComposedLayout) -> None:
    """Each index below the extent of its mode; a linear index below the size."""
    pairs = list(_index_pairs(coord, layout.shape))
    checks = [_below(index, extent) for index, extent in pairs if not _known_below(index, extent)]
    if checks:
        values = [materialize(item, 64) for pair in pairs for item in pair]
        text = ", ".join("%lld of %lld" for _ in pairs)
        _assert(op, checks, f"index out of bounds of a tensor {layout}", f"index {text}", values)


def _index_pairs(coord: Any, shape: Any) -> Any:
    if isinstance(coord, tuple) and isinstance(shape, tuple) and len(coord) == len(shape):
        for part, extent in zip(coord, shape, strict=True):
            yield from _index_pairs(part, extent)
    elif not isinstance(coord, tuple):
        yield coord, size(shape) if isinstance(shape, tuple) else shape


def _known_below(index: Any, extent: Any) -> bool:
    return isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent


def _below(left: IntValue | int, right: IntValue | int) -> ir.Value:
    """0 <= left < right: as unsigned numbers a negative one is great."""
    operands = materialize(left, 64), materialize(right, 64)
    return build.value("arith.cmpi", types.parse("i1"), operands, {"predicate": build.i64(6)})


def _check_memory(op: ir.Operation, tensor: ir.Value, offsets: list[Any], arguments: list[_Argument]) -> None:
    """Each element offset inside the argument that the tensor is a part of."""
    found = _origin(tensor, arguments)
    if found is None:
        return
    argument, start = found
    first, room = _room(argument.layout)
    places = [_sum(_sum(start, offset), first) for offset in offsets]
    checks = [_below(place, room) for place in places if not _known_below(place, room)]
    if checks:
        values = [materialize(item, 64) for item in (places[0], places[-1], room)]
        message = f"access outside the memory of {argument.name} {argument.layout}"
        _assert(op, checks, message, f"elements %lld to %lld of %lld of {argument.name}", values)


def _room(layout: Layout | ComposedLayout) -> tuple[Any, Any]:
    """Elements that the layout reaches before its first one, and all that it spans: strides may be negative."""
    if isinstance(layout, ComposedLayout) or (is_static(layout) and size(layout) == 0):
        return 0, cosize(layout)
    before, after = _reach(layout)
    return before, add(before, add(after, 1))


def _reach(layout: Layout) -> tuple[Any, Any]:
    """How far the layout's offsets lie before and after its first one, which is there."""
    before: Any = 0
    after: Any = 0
    for extent, step in zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True):
        reach = mul(sub(widen(extent), 1), widen(step))
        if isinstance(step, int):
            negative = reach if step < 0 else 0
        else:
            operands = materialize(reach, 64), materialize(0, 64)
            negative = IntValue(build.value("arith.minsi", operands[0].type, operands))
        before, after = sub(before, negative), add(after, sub(reach, negative))
    return before, after


def _check_predicated(op: ir.Operation, tensor: ir.Value, pred: ir.Value, arguments: list[_Argument]) -> None:
    layout, entries = _layout_of(tensor), _entries(pred)
    if layout is None or entries is None or not is_static(size(layout)):
        return
    run = max(int(size(layout)) // max(entries, 1), 1)
    for number in range(entries):
        flag = _entry(pred, number)
        guard = build.emit("scf.if", (), (flag,), regions=2)
        with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
            _check_memory(op, tensor, [layout(number * run), layout((number + 1) * run - 1)], arguments)
            build.emit("scf.yield")


def _entries(pred: ir.Value) -> int | None:
    """The number of Booleans of a predicate: a vector, or a tensor of static size."""
    if vectors.is_vector(pred.type):
        return int(pred.type.shape[0])
    layout = _layout_of(pred)
    return int(size(layout)) if layout is not None and is_static(size(layout)) else None


def _entry(pred: ir.Value, number: int) -> ir.Value:
    i1 = types.parse("i1")
    if vectors.is_vector(pred.type):
        return build.value("vector.extract", i1, (pred,), {"static_position": build.i64_array([number])})
    return build.cute("load", (i1,), ((pred,), (), ()), coord=build.string(str(number))).results[0]


def _extremes(layout: Layout | ComposedLayout) -> list[Any]:
    """The least and the greatest offset of the layout; where a swizzle hides them all of them, up to a limit."""
    count = size(layout)
    if not isinstance(count, int) or count == 0:
        return []
    if is_static(layout):
        offsets = [layout(index) for index in range(count)]
        return [min(offsets), max(offsets)]
    if isinstance(layout, Layout):
        before, after = _reach(layout)
        return [sub(0, before), after]
    return [layout(index) for index in range(min(count, _MOST_OFFSETS))]


def _origin(tensor: ir.Value, arguments: list[_Argument]) -> tuple[_Argument, Any] | None:
    """The argument that a tensor is a part of, and the elements from the argument's start to the tensor's."""
    width = ptr_info(tensor.type).element
    pointer, start = tensor.owner.operands[0], 0
    while True:
        for argument in arguments:
            if pointer == argument.pointer:
                return (argument, start) if ptr_info(pointer.type).element == width else None
        owner = pointer.owner
        name = getattr(owner, "name", "")
        if name == "cute.ptr_offset" and ptr_info(owner.operands[0].type).element == width:
            start = _sum(start, widen(IntValue(owner.operands[1])))
        elif name != "cute.ptr_cast":
            return None
        pointer = owner.operands[0]


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return widen(left) + widen(right) if not isinstance(left, int) else widen(right) + left


def _assert(op: ir.Operation, checks: list[ir.Value], message: str, shown: str, values: list[ir.Value]) -> None:
    i1 = types.parse("i1")
    good = checks[0]
    for check in checks[1:]:
        good = build.value("arith.andi", i1, (good, check))
    bad = build.value("arith.xori", i1, (good, build.constant(1, i1)))
    place = source_location(op.location)
    where = f" ({place})" if place is not None else ""
    guard = build.emit("scf.if", (), (bad,), regions=2)
    with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
        build.emit("gpu.printf", (), values, {"format": build.string(shown + "\n")})
        build.emit("scf.yield")
    build.cute("assert", (), ((good,),), message=build.string(message + where))
