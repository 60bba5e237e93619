"""promote-register-tensors: register tensors whose indices are known become values.

before: `%p = cute.alloc`, `%t = cute.make_tensor %p`, `cute.copy %g, %t`, `%v = cute.load_tensor %t`
after:  `%v = cute.copy_value %g`

The pass follows each element of each allocation through the structured control flow. Loads, stores and fills vanish;
copies and products give vectors. Regions hand on exactly the elements that are written inside and read later: numbers,
or words of 32 bits where instructions move the elements so. An allocation stays memory when an index of one of its
accesses is known only at run time, or when its address goes anywhere else (see `register_views`). Loops over constant
bounds whose index picks registers are unrolled before. Accumulators of warpgroup products are no values, see
`name_accumulators`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import ptr_info, tensor_layout_text, text_of
from tilewright.ir.context import current, located
from tilewright.ir.walk import operations
from tilewright.layout import size
from tilewright.passes.lowering import read_layout
from tilewright.passes.name_accumulators import name_accumulators
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import functions
from tilewright.passes.register_flow import Flow, Region
from tilewright.passes.register_views import Allocation, allocation_of, element_index
from tilewright.passes.unroll_register_loops import unroll

if TYPE_CHECKING:
    from mlir import ir

_WORD_BITS = 32
_WORD_ATOMS = ("ldmatrix", "stmatrix")
_WORD_PRODUCTS = ("cute.gemm", "cute.wgmma_named")


@register
class PromoteRegisterTensors(Pass):
    """See the module."""

    name = "promote-register-tensors"

    def run(self, module: ir.Operation) -> None:
        self.unwritten: list[Unwritten] = []
        for function in _with_registers(module):
            unroll(function)
            name_accumulators(function)
            self.unwritten += _promote(function, _registers(function))


def _with_registers(module: ir.Operation) -> list[ir.Operation]:
    """The functions that allocate registers."""
    return [function for function in functions(module) if _registers(function)]


def _registers(function: ir.Operation) -> list[ir.Operation]:
    allocations = [op for op in operations(function) if op.name == "cute.alloc"]
    return [op for op in allocations if ptr_info(op.results[0].type).space == "rmem"]


def _promote(function: ir.Operation, allocations: Sequence[ir.Operation]) -> list[Unwritten]:
    """Make values of what is known of the allocations; gives the reads that no write comes before."""
    known = [made for op in allocations if (made := allocation_of(op)) is not None]
    flow = Flow.of(function, known)
    if not flow.allocations:
        return []
    promotion = _Promotion(flow)
    promotion.block(flow.root, 0)
    addresses = [op for made in flow.allocations for op in (made.op, *made.addresses)]
    for op in [*promotion.dead, *reversed(addresses)]:
        op.erase()
    return promotion.unwritten


@dataclass(frozen=True)
class Unwritten:
    """A read of element `index` of an allocation (both by their locations) that no write comes before on any way."""

    read: ir.Location
    allocation: ir.Location
    index: int


@dataclass(frozen=True)
class _Slot:
    """Where an element is: at `index` of a vector of `length`, or (`length` 0) a number."""

    value: Any
    index: int = 0
    length: int = 0


@dataclass(frozen=True)
class _Carried:
    """Elements that a region hands on together, and the type of the value that they make."""

    places: tuple[int, ...]
    type: Any


class _Promotion:
    """The walk over one function: where each element is now, None for one that nothing was written to."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.slots: list[_Slot | None] = [None] * flow.count
        self.elements: list[Allocation] = [made for made in flow.allocations for _ in range(made.count)]
        self.unwritten: list[Unwritten] = []
        # Python's object of an erased operation may be taken for one of a new operation at its address: nothing is
        # erased before everything is built.
        self.dead: list[ir.Operation] = []
        self._numbers: dict[Any, ir.Value] = {}
        self._words = {made.start for made in flow.allocations if _moves_words(made)}

    # Control flow.

    def block(self, body: Region, after: int) -> None:
        """Rewrite the accesses of a block; the elements `after` are read after it."""
        read_after = body.live_after(after)
        for op, event, live in zip(body.ops, body.events, read_after, strict=True):
            if isinstance(event, Allocation):
                self.slots[event.start : event.start + event.count] = [None] * event.count
            elif isinstance(event, tuple):
                self._access(op)
            else:
                getattr(self, f"_{op.name.replace('.', '_')}")(op, event, live)

    def _access(self, op: ir.Operation) -> None:
        location = op.location
        with mlir.ir.InsertionPoint(op), located(lambda: location):
            getattr(self, f"_{op.name.removeprefix('cute.')}")(op)
        self.dead.append(op)

    def _scf_if(self, op: ir.Operation, event: Any, after: int) -> None:
        carried = self._carried(event.written & after)
        before = list(self.slots)
        with located(lambda location=op.location: location):  # type: ignore[misc]
            if carried and not len(op.regions[1].blocks):
                with mlir.ir.InsertionPoint(op.regions[1].blocks.append()):
                    build.emit("scf.yield")
            for region, body in zip(op.regions, event.bodies, strict=False):
                self.slots = list(before)
                if body is not None:
                    self.block(body, after)
                if carried:
                    self._yield(region.blocks[0], carried)
            self.slots = before
            if carried:
                self._finish(op, _rebuilt(op, list(op.operands), carried), carried)

    def _scf_for(self, op: ir.Operation, event: Any, after: int) -> None:
        (body,) = event.bodies
        carried = self._carried(event.written & (after | body.gen))
        before = list(self.slots)
        with located(lambda location=op.location: location):  # type: ignore[misc]
            block = op.regions[0].blocks[0]
            initial = self._values(carried, op) if carried else []
            self._enter(block, carried)
            self.block(body, after | body.gen)
            if carried:
                self._yield(block, carried)
            self.slots = before
            if carried:
                self._finish(op, _rebuilt(op, [*op.operands, *initial], carried), carried)

    def _scf_while(self, op: ir.Operation, event: Any, after: int) -> None:
        test, body = event.bodies
        live = after | event.gen
        carried = self._carried(event.written & live)
        before = list(self.slots)
        with located(lambda location=op.location: location):  # type: ignore[misc]
            initial = self._values(carried, op) if carried else []
            for region, part in zip(op.regions, (test, body), strict=True):
                self._enter(region.blocks[0], carried)
                if part is not None:
                    self.block(part, live)
                if carried:
                    self._yield(region.blocks[0], carried)
            self.slots = before
            if carried:
                self._finish(op, _rebuilt(op, [*op.operands, *initial], carried), carried)

    def _carried(self, mask: int) -> list[_Carried]:
        """The elements of a set, by the values in which they travel."""
        found = []
        while mask:
            place = (mask & -mask).bit_length() - 1
            made = self.elements[place]
            places: tuple[int, ...] = (place,)
            if made.start in self._words:
                each = _WORD_BITS // made.element.width
                first = place - (place - made.start) % each
                places = tuple(range(first, min(first + each, made.start + made.count)))
            for item in places:
                mask &= ~(1 << item)
            type_ = made.element if len(places) == 1 else _vector_type(made.element, len(places))
            found.append(_Carried(places, type_))
        return found

    def _values(self, carried: Sequence[_Carried], at: ir.Operation) -> list[ir.Value]:
        with mlir.ir.InsertionPoint(at):
            return [self._read_carried(item) for item in carried]

    def _read_carried(self, item: _Carried) -> ir.Value:
        if all(self.slots[place] is None for place in item.places):
            return _undefined(item.type)
        return self._number(item.places[0]) if len(item.places) == 1 else self._vector(item.places)

    def _yield(self, block: ir.Block, carried: Sequence[_Carried]) -> None:
        """Let the block hand on the values of `carried` too."""
        old = list(block.operations)[-1].operation
        values = self._values(carried, old)
        location = old.location
        with mlir.ir.InsertionPoint(old), located(lambda: location):
            build.emit(old.name, (), [*old.operands, *values])
        self.dead.append(old)

    def _enter(self, block: ir.Block, carried: Sequence[_Carried]) -> None:
        """The elements of `carried` are arguments of the block."""
        for item in carried:
            self._set(item, block.add_argument(item.type, current().locate()))

    def _finish(self, op: ir.Operation, final: ir.Operation, carried: Sequence[_Carried]) -> None:
        """The elements of `carried` are the last results of `final`, which takes the place of `op`."""
        results = list(final.results)
        for old, new in zip(op.results, results, strict=False):
            old.replace_all_uses_with(new)
        for item, result in zip(carried, results[len(op.results) :], strict=True):
            self._set(item, result)
        self.dead.append(op)

    def _set(self, item: _Carried, value: ir.Value) -> None:
        length = len(item.places)
        for index, place in enumerate(item.places):
            self.slots[place] = _Slot(value, index, length if length > 1 else 0)

    # Accesses.

    def _places(self, value: ir.Value) -> tuple[int, ...] | None:
        return self.flow.places.get(value)

    def _load(self, op: ir.Operation) -> None:
        places = self.flow.places[op.operands[0]]
        place = places[self._index(op)]
        self._note(op, (place,))
        op.results[0].replace_all_uses_with(self._number(place))

    def _store(self, op: ir.Operation) -> None:
        value, tensor = op.operands[0], op.operands[1]
        self.slots[self.flow.places[tensor][self._index(op)]] = _Slot(value)

    def _index(self, op: ir.Operation) -> int:
        index = element_index(op)
        assert index is not None  # register_views follows no other
        return index

    def _load_tensor(self, op: ir.Operation) -> None:
        places = self.flow.places[op.operands[0]]
        self._note(op, places)
        op.results[0].replace_all_uses_with(self._vector(places))

    def _store_tensor(self, op: ir.Operation) -> None:
        self._write(self.flow.places[op.operands[1]], op.operands[0])

    def _fill(self, op: ir.Operation) -> None:
        slot = _Slot(op.operands[0])
        for place in self.flow.places[op.operands[1]]:
            self.slots[place] = slot

    def _copy(self, op: ir.Operation) -> None:
        (source,), (target,), preds = build.groups(op)
        src, dst = self._places(source), self._places(target)
        pred = [self._operand(op, item) for item in preds]
        atom = op.attributes["atom"]
        if src is not None:
            self._note(op, src)
        if dst is None:
            value = source if src is None else self._vector(src)
            build.cute("copy", (), ((value,), (target,), pred), atom=atom)
        elif src is not None:
            self._copy_registers(src, dst, preds)
        elif vectors.is_vector(source.type):
            self._copy_vector(source, dst, preds)
        else:
            type_ = _vector_type(self.elements[dst[0]].element, len(dst))
            old = [self._vector(dst)] if preds else []
            made = build.cute("copy_value", (type_,), ((source,), pred, old), atom=atom)
            self._write(dst, made.results[0])

    def _copy_registers(self, src: Sequence[int], dst: Sequence[int], preds: Sequence[ir.Value]) -> None:
        """From registers to registers: the same values, where a predicate is true."""
        source, target = self.elements[src[0]].element, self.elements[dst[0]].element
        if source != target:
            self._copy_vector(self._vector(src), dst, preds)
        else:
            self._assign([self.slots[place] for place in src], dst, preds)

    def _copy_vector(self, source: ir.Value, dst: Sequence[int], preds: Sequence[ir.Value]) -> None:
        """From a vector to registers."""
        value = vectors.cast(source, _vector_type(self.elements[dst[0]].element, len(dst)))
        self._assign([_Slot(value, index, len(dst)) for index in range(len(dst))], dst, preds)

    def _assign(self, new: Sequence[_Slot | None], dst: Sequence[int], preds: Sequence[ir.Value]) -> None:
        if preds:
            new = self._selected(new, dst, self._flags(preds[0]))
        for place, slot in zip(dst, new, strict=True):
            self.slots[place] = slot

    def _copy_value(self, op: ir.Operation) -> None:
        """Under a predicate in registers."""
        source, preds, old = build.groups(op)
        pred = [self._operand(op, item) for item in preds]
        made = build.cute("copy_value", (op.results[0].type,), (source, pred, old), atom=op.attributes["atom"])
        op.results[0].replace_all_uses_with(made.results[0])

    def _selected(self, new: Sequence[_Slot | None], dst: Sequence[int], flags: Sequence[ir.Value]) -> list[_Slot]:
        run = len(dst) // len(flags)
        found = []
        for number, (slot, place) in enumerate(zip(new, dst, strict=True)):
            old = self._number(place)
            value = _undefined(old.type) if slot is None else self._number_of(slot)
            found.append(_Slot(build.value("arith.select", old.type, (flags[number // run], value, old))))
        return found

    def _flags(self, pred: ir.Value) -> list[ir.Value]:
        places = self._places(pred)
        if places is not None:
            return [self._number(place) for place in places]
        if vectors.is_vector(pred.type):
            count = int(pred.type.shape[0])
            return [self._number_of(_Slot(pred, index, count)) for index in range(count)]
        layout = read_layout(tensor_layout_text(pred.type), (), ())
        flag = types.parse("i1")
        return [
            build.cute("load", (flag,), ((pred,), (), ()), coord=build.string(str(index))).results[0]
            for index in range(int(size(layout)))
        ]

    def _gemm(self, op: ir.Operation) -> None:
        d, a, b, c = op.operands
        operands = [self._operand(op, item, whole=True) for item in (a, b, c)]
        left, right = (tensor_layout_text(item.type) for item in (a, b))
        extents = [_extent(left, 1), _extent(right, 1), _extent(left, 2)]
        count = _count(tensor_layout_text(d.type))
        type_ = _vector_type(ptr_info(d.type).element, count)
        attributes = {"atom": op.attributes["atom"], "extents": build.i32_array(extents)}
        made = build.cute("gemm_value", (type_,), [(item,) for item in operands], **attributes).results[0]
        places = self._places(d)
        if places is None:
            build.cute("store_tensor", (), ((made,), (d,)))
        else:
            self._write(places, made)

    def _wgmma_named(self, op: ir.Operation) -> None:
        """A from registers."""
        (a,), (b,), (accumulate,), metadata = build.groups(op)
        attributes = {name: op.attributes[name] for name in ("atom", "accumulator", "places", "extents")}
        groups = ((self._operand(op, a),), (b,), (accumulate,), metadata)
        build.cute("wgmma_named", (), groups, **attributes)

    def _operand(self, op: ir.Operation, tensor: ir.Value, *, whole: bool = False) -> ir.Value:
        """A tensor as a value where it is one; `whole`: memory is loaded."""
        places = self._places(tensor)
        if places is not None:
            self._note(op, places)
            return self._vector(places)
        if not whole:
            return tensor
        type_ = _vector_type(ptr_info(tensor.type).element, _count(tensor_layout_text(tensor.type)))
        return build.cute("load_tensor", (type_,), ((tensor,),)).results[0]

    def _note(self, op: ir.Operation, places: Sequence[int]) -> None:
        """Keep account of reads that no write comes before."""
        for place in places:
            if self.slots[place] is None:
                made = self.elements[place]
                self.unwritten.append(Unwritten(op.location, made.op.location, place - made.start))

    # Elements.

    def _write(self, places: Sequence[int], value: ir.Value) -> None:
        length = len(places)
        for index, place in enumerate(places):
            self.slots[place] = _Slot(value, index, length)

    def _number(self, place: int) -> ir.Value:
        """One element."""
        slot = self.slots[place]
        return _undefined(self.elements[place].element) if slot is None else self._number_of(slot)

    def _number_of(self, slot: _Slot) -> ir.Value:
        if not slot.length:
            return slot.value
        key = slot.value, slot.index
        if key not in self._numbers:
            with _behind(slot.value), located(lambda: _location(slot.value)):
                type_ = mlir.ir.VectorType(slot.value.type).element_type
                position = {"static_position": build.i64_array([slot.index])}
                self._numbers[key] = build.value("vector.extract", type_, (slot.value,), position)
        return self._numbers[key]

    def _vector(self, places: Sequence[int]) -> ir.Value:
        """Elements as a vector: the one that they were written by, or made from parts."""
        runs = _runs([self.slots[place] for place in places])
        type_ = _vector_type(self.elements[places[0]].element, len(places))
        first, count = runs[0]
        if all(slot is None for slot, _ in runs):
            return _undefined(type_)
        if len(runs) == 1 and first is not None and first.length == count == len(places):
            return first.value
        single = {slot.value for slot, _ in runs if slot is not None and slot.length}
        if len(single) == 1 and len(places) > 1 and all(slot is not None and slot.length for slot, _ in runs):
            mask = [slot.index + step for slot, count in runs if slot is not None for step in range(count)]
            return _shuffled(runs[0][0].value, mask, type_)  # type: ignore[union-attr]
        parts = [self._part(slot, count, places[0]) for slot, count in runs]
        if len({part.type for part in parts}) > 1:  # the operands of an operation's group have one type
            parts = [self._number(place) for place in places]
        if not vectors.is_vector(parts[0].type):
            return build.value("vector.from_elements", type_, parts)
        return build.cute("join", (type_,), (parts,)).results[0]

    def _part(self, slot: _Slot | None, count: int, place: int) -> ir.Value:
        """A run of elements: a number, a vector, or a slice of one."""
        element = self.elements[place].element
        if slot is None:
            return _undefined(element)
        if count == 1 and slot.length != 1:
            return self._number_of(slot)
        if slot.length == count:
            return slot.value
        return _shuffled(slot.value, range(slot.index, slot.index + count), _vector_type(element, count))


def _runs(slots: Sequence[_Slot | None]) -> list[tuple[_Slot | None, int]]:
    """Slots as runs of neighbours in one vector: the first of each, and how many."""
    found: list[tuple[_Slot | None, int]] = []
    for slot in slots:
        if found and slot is not None and slot.length:
            first, count = found[-1]
            if first is not None and first.length and first.value == slot.value and first.index + count == slot.index:
                found[-1] = first, count + 1
                continue
        found.append((slot, 1))
    return found


def _shuffled(value: ir.Value, mask: Sequence[int], type_: ir.Type) -> ir.Value:
    return build.value("vector.shuffle", type_, (value, value), {"mask": build.i64_array(mask)})


def _moves_words(made: Allocation) -> bool:
    """Whether instructions move the allocation's elements as parts of words."""
    width = getattr(made.element, "width", _WORD_BITS)
    if width >= _WORD_BITS or width < 8:
        return False
    return any(op.name in _WORD_PRODUCTS or text_of(op, "atom").startswith(_WORD_ATOMS)
               for op in made.accesses if op.name in (*_WORD_PRODUCTS, "cute.copy"))  # fmt: skip


def _rebuilt(op: ir.Operation, operands: Sequence[ir.Value], carried: Sequence[_Carried]) -> ir.Operation:
    """`op` with the results of `carried` too; its blocks move over."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    results = [*(result.type for result in op.results), *(item.type for item in carried)]
    with mlir.ir.InsertionPoint(op):
        final = build.emit(op.name, results, operands, attributes, regions=len(op.regions))
    for old, new in zip(op.regions, final.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    return final


def _behind(value: ir.Value) -> Any:
    if isinstance(value, mlir.ir.BlockArgument):
        return mlir.ir.InsertionPoint.at_block_begin(value.owner)
    return mlir.ir.InsertionPoint.after(value.owner)


def _location(value: ir.Value) -> ir.Location:
    return current().unknown if isinstance(value, mlir.ir.BlockArgument) else value.owner.location


def _vector_type(element: ir.Type, count: int) -> ir.Type:
    return types.parse(f"vector<{count}x{element}>")


def _undefined(type_: ir.Type) -> ir.Value:
    """What memory holds that nothing was written to; the stage `ptx` makes it a register that nothing writes, see
    `ir.unwritten`. It is frozen so that nothing on the way there computes with it."""
    machine = vectors.machine_vector(type_ if vectors.is_vector(type_) else _vector_type(type_, 1))
    if not vectors.is_vector(type_):
        machine = mlir.ir.VectorType(machine).element_type
    return vectors.cast(build.value("llvm.freeze", machine, (build.value("llvm.mlir.undef", machine),)), type_)


def _count(layout: str) -> int:
    return int(size(read_layout(layout, (), ())))


def _extent(layout: str, mode: int) -> int:
    shape = read_layout(layout, (), ()).shape
    return int(size(shape[mode])) if isinstance(shape, tuple) and len(shape) > mode else 1
