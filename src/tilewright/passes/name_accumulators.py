"""Accumulators of warpgroup products by name: which of their elements each operation touches.

before: `cute.wgmma %d, %a, %b`, `%v = cute.load_tensor %d` of a register tensor
after:  `cute.wgmma_named %a, %b {accumulator = 0, places = ...}`, `%v = cute.accumulator_read {accumulator = 0, ...}`

A product runs on while its threads do, so its registers may be neither copied nor moved before it is waited for. They
are therefore registers of the program that is assembled, by a name of their own (docs/decisions/0014). This is a part
of the pass `promote-register-tensors`, which makes values of all other registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import ptr_info, tensor_layout_text, text_of
from tilewright.ir.atom_text import read
from tilewright.ir.context import located
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.layout import product
from tilewright.passes.lowering import read_layout
from tilewright.passes.register_pins import drop_register_pins
from tilewright.passes.register_views import Allocation, allocation_of, element_index
from tilewright.passes.rules.memory import element_bytes
from tilewright.passes.wgmma_order import Uses, check_order

if TYPE_CHECKING:
    from mlir import ir


def name_accumulators(function: ir.Operation) -> None:
    """Rewrite the accesses to all accumulators of a function.

    Raises:
        CompileError: an accumulator is used while its product may be under way, or an access to it names its elements
            only at run time.
    """
    found = _accumulators(function)
    if not found:
        return
    owners: dict[ir.Operation, list[tuple[int, Allocation]]] = {}
    for number, made in enumerate(found):
        for op in made.accesses:
            if (number, made) not in owners.setdefault(op, []):
                owners[op].append((number, made))
    check_order(function, {op: _uses(op, accumulators) for op, accumulators in owners.items()})
    for number, made in enumerate(found):
        _declare(function, made, number)
    for op, accumulators in owners.items():
        location = op.location
        with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
            _Access(op, accumulators).rewrite()
    for op in owners:
        op.erase()
    for made in found:
        for op in (*reversed(made.addresses), made.op):
            op.erase()


def _uses(op: ir.Operation, accumulators: Sequence[tuple[int, Allocation]]) -> Uses:
    """The accumulator that a product writes (None: the operation is none), and those that the operation touches."""
    product = op.operands[0] if op.name == "cute.wgmma" else None
    added = next((number for number, made in accumulators if product in made.views), None)
    target = _target(op)
    written = tuple(number for number, made in accumulators if target in made.views)
    return Uses(added, tuple(number for number, _ in accumulators if number != added), written)


def _target(op: ir.Operation) -> ir.Value | None:
    """The tensor that an operation writes other than by a product."""
    if op.name in ("cute.store", "cute.store_tensor", "cute.fill"):
        return op.operands[1]
    if op.name == "cute.copy":
        return build.groups(op)[1][0]
    return None


def _accumulators(function: ir.Operation) -> list[Allocation]:
    """The allocations that products of a warpgroup write."""
    products = [op for op in operations(function) if op.name == "cute.wgmma"]
    if not products:
        return []
    drop_register_pins(function)
    allocations = [
        made
        for op in operations(function)
        if op.name == "cute.alloc" and ptr_info(op.results[0].type).space == "rmem"
        for made in [allocation_of(op)]
        if made is not None
    ]
    written = {op.operands[0] for op in products}
    found = [made for made in allocations if any(view in written for view in made.views)]
    known = {view for made in found for view in made.views}
    for op in products:
        if op.operands[0] not in known:
            raise CompileError(
                "the elements of an accumulator are not known while compiling",
                location=source_location(op.location),
                values={"accumulator": tensor_layout_text(op.operands[0].type)},
                hint="index it by constants (cutlass.range_constexpr), and do not pass it on in runtime branches or "
                "loops: registers have no addresses",
            )
    return found


def _declare(function: ir.Operation, made: Allocation, number: int) -> None:
    location = made.op.location
    with mlir.ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), located(lambda: location):
        attributes = {
            "accumulator": build.i32(number),
            "count": build.i32(made.count),
            "element": build.string(str(made.element)),
        }
        build.cute("accumulator", (), (), **attributes)


class _Access:
    """One operation that touches accumulators, to be rewritten at the insertion point."""

    def __init__(self, op: ir.Operation, accumulators: Sequence[tuple[int, Allocation]]) -> None:
        self.op = op
        self.places = {view: (number, made, made.views[view]) for number, made in accumulators for view in made.views}

    def rewrite(self) -> None:
        """Build what stands for the operation."""
        name = self.op.name.removeprefix("cute.")
        step = getattr(self, f"_{name}", None)
        if step is None:
            raise self._refused(f"{name} of an accumulator")
        step()

    def _refused(self, what: str) -> CompileError:
        return CompileError(
            f"{what} of a product of a warpgroup is not possible",
            location=source_location(self.op.location),
            hint="copy the accumulator into a register tensor of its own first: t.store(acc.load())",
        )

    def _read(self, view: ir.Value) -> ir.Value:
        """All elements of a tensor of an accumulator."""
        _, made, places = self.places[view]
        return self._elements(view, places, types.parse(f"vector<{len(places)}x{made.element}>"))

    def _elements(self, view: ir.Value, places: Sequence[int], type_: ir.Type) -> ir.Value:
        attributes = {"accumulator": build.i32(self.places[view][0]), "places": build.i32_array(places)}
        return build.cute("accumulator_read", (type_,), (), **attributes).results[0]

    def _write(self, view: ir.Value, places: Sequence[int], value: ir.Value) -> None:
        attributes = {"accumulator": build.i32(self.places[view][0]), "places": build.i32_array(places)}
        build.cute("accumulator_write", (), ((value,),), **attributes)

    def _place(self, view: ir.Value) -> int:
        index = element_index(self.op)
        assert index is not None  # register_views follows no other
        return int(self.places[view][2][index])

    def _load(self) -> None:
        view, result = self.op.operands[0], self.op.results[0]
        result.replace_all_uses_with(self._elements(view, [self._place(view)], result.type))

    def _store(self) -> None:
        value, view = self.op.operands[0], self.op.operands[1]
        self._write(view, [self._place(view)], value)

    def _load_tensor(self) -> None:
        self.op.results[0].replace_all_uses_with(self._read(self.op.operands[0]))

    def _store_tensor(self) -> None:
        self._write(self.op.operands[1], self.places[self.op.operands[1]][2], self.op.operands[0])

    _fill = _store_tensor

    def _copy(self) -> None:
        (source,), (target,), preds = build.groups(self.op)
        if any(pred in self.places for pred in preds) or (target in self.places and preds):
            raise self._refused("a copy under a predicate into the accumulator")
        atom = text_of(self.op, "atom")
        value = self._read(source) if source in self.places else source
        if target not in self.places:
            build.cute("copy", (), ((value,), (target,), preds), atom=self.op.attributes["atom"])
            return
        _, made, places = self.places[target]
        if not vectors.is_vector(value.type):
            if read(atom).name != "universal":
                raise self._refused(f"a copy by {read(atom).name} into the accumulator")
            element = ptr_info(source.type).element
            type_ = types.parse(f"vector<{len(places)}x{element}>")
            value = build.cute("load_tensor", (type_,), ((source,),)).results[0]
        self._write(target, places, vectors.cast(value, types.parse(f"vector<{len(places)}x{made.element}>")))

    def _wgmma(self) -> None:
        (d,), (a,), (b,), (accumulate,), metadata = build.groups(self.op)
        number, made, places = self.places[d]
        extents = [_extent(d, 1), _extent(d, 2), _extent(a, 2)]
        if element_bytes(made.element) == 2:
            _check_pairs(self.op, places)
        attributes = {
            "atom": self.op.attributes["atom"],
            "accumulator": build.i32(number),
            "places": build.i32_array(places),
            "extents": build.i32_array(extents),
        }
        left = self._read(a) if a in self.places else a
        build.cute("wgmma_named", (), ((left,), (b,), (accumulate,), metadata), **attributes)


def _check_pairs(op: ir.Operation, places: Sequence[int]) -> None:
    """Two elements of 16 bits share a register."""
    if any(low % 2 or high != low + 1 for low, high in zip(places[::2], places[1::2], strict=True)):
        raise CompileError(
            "neighbours of the accumulator do not share registers",
            location=source_location(op.location),
            hint="make it with cute.make_rmem_tensor of the shape that partition_shape_C gives",
        )


def _extent(tensor: ir.Value, mode: int) -> int:
    # What is known only at run time is where the tensor begins, which stands before the last ` o `.
    shape = read_layout(tensor_layout_text(tensor.type).rpartition(" o ")[2], (), ()).shape
    return int(product(shape[mode])) if isinstance(shape, tuple) and len(shape) > mode else 1
