"""check-bounds: assert that each access to a tensor stays inside it. It runs only with `EnableAssertions`.

before: `%v = cute.load %t, %i {coord = "?"}`
after:  assertions on `%i` against the shape of `%t`, and on the place in memory against the tensor that `%t` is a part
        of (its `origin`); then the load

Kernels and host functions are checked alike. The index is checked for single elements; the memory also for transfers of
whole tensors, where a predicate is true. What fails prints the index and the shape, or the offset and the size, before
it stops: a thread by a trap, a host function by an error. Where the memory cannot be checked, `remarks` says why.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, types, vectors
from tilewright.ir.accessors import is_tensor, parameters, ptr_info, tensor_layout_text, text_of
from tilewright.ir.context import located
from tilewright.ir.int_value import IntValue, materialize, widen
from tilewright.ir.locations import source_location
from tilewright.ir.user_ops import USER_OPS
from tilewright.ir.walk import operations
from tilewright.layout import ComposedLayout, Layout, cosize, flatten_to_tuple, is_static, size
from tilewright.layout.dynamic import add, mul, sub
from tilewright.passes.lowering import read_coord
from tilewright.passes.origin import Root, origin
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import host_functions, kernels
from tilewright.passes.rules.memory import element_bits

if TYPE_CHECKING:
    from mlir import ir

_ELEMENTS = ("cute.load", "cute.store", "cute.atomic")
_WHOLE = ("cute.load_tensor", "cute.store_tensor", "cute.fill", "cute.copy", "cute.copy_value")
_COPIES = {"cute.copy": 2, "cute.copy_value": 1}  # and which group of operands is the predicate
_MOST_OFFSETS = 64  # of a swizzled tensor whose layout is known only at run time


@register
class CheckBounds(Pass):
    """See the module. `remarks` has a line for each access whose place in memory is not checked."""

    name = "check-bounds"

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.remarks: list[str] = []

    def run(self, module: ir.Operation) -> None:
        build.forget_pure()
        self.remarks = []
        for function in [*kernels(module), *host_functions(module)]:
            for op in _accesses(function):
                location = op.location
                with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                    self._check(op)
        build.forget_pure()

    def _check(self, op: ir.Operation) -> None:
        if op.name in USER_OPS:
            self._remark(op, "the rule that lowers it decides later what it touches")
            return
        if op.name in _ELEMENTS:
            *_, (tensor,), coord32, coord64 = build.groups(op)
            coord = read_coord(text_of(op, "coord"), coord32, coord64)
            layout = _layout_of(tensor)
            _check_index(op, coord, layout)
            self._check_memory(op, tensor, [layout(_widened(coord))])
            return
        groups = build.groups(op)
        at = _COPIES.get(op.name, len(groups))
        tensors = [value for group in groups[:at] for value in group if is_tensor(value)]
        pred = groups[at][0] if op.name in _COPIES and groups[at] else None
        for tensor in tensors:
            if pred is not None:
                self._check_predicated(op, tensor, pred)
            else:
                self._check_memory(op, tensor, _extremes(_layout_of(tensor)))

    def _check_memory(self, op: ir.Operation, tensor: ir.Value, offsets: list[Any]) -> None:
        """Each element offset inside the memory that the tensor is a part of."""
        memory = _memory_of(tensor, op)
        if isinstance(memory, str):
            self._remark(op, memory)
            return
        places = [add(add(memory.start, offset), memory.before) for offset in offsets]
        checks = [_below(place, memory.room) for place in places if not _known_below(place, memory.room)]
        if checks:
            values = [materialize(item, 64) for item in (places[0], places[-1], memory.room)]
            name = memory.root.name or "the allocation"
            message = f"access outside the memory of {name} {memory.root.layout}"
            _assert(op, checks, message, f"elements %lld to %lld of %lld of {name}", values)

    def _check_predicated(self, op: ir.Operation, tensor: ir.Value, pred: ir.Value) -> None:
        layout, entries = _layout_of(tensor), _entries(pred)
        if entries is None or not is_static(size(layout)):
            self._remark(op, "the number of its elements is known only at run time")
            return
        run = max(int(size(layout)) // max(entries, 1), 1)
        for number in range(entries):
            flag = _entry(pred, number)
            guard = build.emit("scf.if", (), (flag,), regions=2)
            with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
                self._check_memory(op, tensor, [layout(number * run), layout((number + 1) * run - 1)])
                build.emit("scf.yield")

    def _remark(self, op: ir.Operation, reason: str) -> None:
        text = f"{source_location(op.location)}: {op.name} is not checked: {reason}"
        if text not in self.remarks:
            self.remarks.append(text)


def _may_access(op: ir.Operation) -> bool:
    """True of users' operations on memory."""
    return op.name in USER_OPS and any(types.is_cute(operand.type) for operand in op.operands)


def _accesses(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in operations(function) if op.name in _ELEMENTS or op.name in _WHOLE or _may_access(op)]


def _layout_of(tensor: ir.Value) -> Layout | ComposedLayout:
    """The layout of a tensor, its runtime leaves asked of it at the insertion point."""
    numbers = itertools.count()

    def leaf(width: int, divisibility: int) -> IntValue:
        index = build.i32(next(numbers))
        found = build.cute("leaf", (types.parse(f"i{width}"),), ((tensor,),), index=index).results[0]
        return IntValue(found, divisibility)

    return layout_text.decode_layout(tensor_layout_text(tensor.type), leaf)


@dataclass(frozen=True)
class _Memory:
    """The tensor that another is a part of. In elements: where the part starts, how much lies before the whole one's
    first element, and how much it spans."""

    root: Root
    start: Any
    before: Any
    room: Any


def _memory_of(tensor: ir.Value, op: ir.Operation) -> _Memory | str:
    """The memory around a tensor, or why it is not known."""
    found = origin(tensor)
    roots = found.roots or found.derived_from
    if len(roots) != 1:
        return found.reason
    root = roots[0]
    if not is_tensor(root.value):
        return "the extent of the memory at a pointer is not known"
    if not _dominates(root.value, op):
        return "the memory is chosen by a branch"
    layout = _layout_of(root.value)
    before, room = _room(layout)
    if tensor == root.value:
        return _Memory(root, 0, before, room)
    bits = element_bits(ptr_info(tensor.type).element)
    if element_bits(root.element) != bits:
        before, room = (
            _recounted(before, element_bits(root.element), bits),
            _recounted(room, element_bits(root.element), bits),
        )
    distance = IntValue(build.value("arith.subi", types.parse("i64"), (_address(tensor), _address(root.value))))
    return _Memory(root, _recounted(distance, 8, bits), before, room)


def _recounted(count: Any, bits: int, new: int) -> Any:
    """A number of elements of `bits` bits as one of elements of `new` bits; it may be negative."""
    if isinstance(count, int):
        return count * bits // new
    scaled = mul(widen(count), bits)
    return IntValue(
        build.value("arith.floordivsi", types.parse("i64"), (materialize(scaled, 64), materialize(new, 64)))
    )


def _address(tensor: ir.Value) -> ir.Value:
    """The address of the first element in 64 bits."""
    element, space, _, align = parameters(tensor.type)
    pointer = types.parse(f'!cute.ptr<{element}, "{space}", {align}>')
    iterator = build.cute("iterator", (pointer,), ((tensor,),)).results[0]
    if space != "smem":
        return build.cute("ptr_to_int", (types.parse("i64"),), ((iterator,),)).results[0]
    narrow = build.cute("ptr_to_int", (types.parse("i32"),), ((iterator,),)).results[0]
    return build.value("arith.extui", types.parse("i64"), (narrow,))


def _dominates(value: ir.Value, op: ir.Operation) -> bool:
    """True when a block around `op`, or its own, has `value` before it."""
    block = value.owner if isinstance(value.owner, mlir.ir.Block) else value.owner.operation.block
    around: Any = op
    while around.name not in ("gpu.func", "func.func"):
        if around.block == block:
            return True
        around = around.parent.operation
    return False


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


def _entries(pred: ir.Value) -> int | None:
    """The number of Booleans of a predicate: a vector, or a tensor of static size."""
    if vectors.is_vector(pred.type):
        return int(pred.type.shape[0])
    count = size(_layout_of(pred))
    return int(count) if is_static(count) else None


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
