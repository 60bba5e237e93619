"""Register fragments as values: vectors that are kept in the parts by which instructions make and take them.

ldmatrix gives words of 32 bits and mma.sync takes them, so that a fragment which goes from one to the other is never
put together. Where other operations need the vector, it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import PtrInfo
from tilewright.layout import Layout
from tilewright.passes.lowering import KEEP, LoweringContext, Rules, TensorView

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_TAKE_PARTS = frozenset(
    ("cute.copy", "cute.copy_value", "cute.gemm_value", "cute.join", "vector.to_elements", "vector.extract",
     "vector.shuffle")
)  # fmt: skip
_ALIGN = 32  # registers have no address; what a register tensor says of its alignment


@dataclass
class Fragment:
    """`count` elements in parts of `each` elements: numbers, vectors, or words of as many bits.

    `element` is the type that machines know, see `vectors.machine_vector`. `maker` is the operation that made a vector
    of the parts. A fragment can stand where rules expect a tensor in registers.
    """

    parts: Sequence[ir.Value]
    each: int
    count: int
    element: ir.Type
    maker: ir.Operation | None = None
    _scalars: list[ir.Value] = field(default_factory=list)

    @property
    def info(self) -> PtrInfo:
        return PtrInfo(self.element, "rmem", _ALIGN)

    @property
    def layout(self) -> Layout:
        return Layout(self.count)

    def scalars(self) -> list[ir.Value]:
        """The elements; they are made where the parts are, so that all who read the fragment may use them."""
        if not self._scalars and self.each == 1:
            self._scalars = [behind(part, self.element) for part in self.parts]
        elif not self._scalars:
            type_ = _vector(self.element, self.each)
            for part in self.parts:
                with _place_behind(part):
                    found = build.emit("vector.to_elements", [self.element] * self.each, (recast(part, type_),))
                self._scalars += found.results
        return self._scalars

    def run(self, start: int, width: int) -> ir.Value:
        """Elements `start` to `start + width` as a vector (a number for width 1)."""
        wanted = self.element if width == 1 else _vector(self.element, width)
        if self.each == width and start % width == 0:
            return recast(self.parts[start // width], wanted)
        if width == 1:
            return self.scalars()[start]
        inside, place = start % self.each, start // self.each
        if inside + width <= self.each:
            whole = recast(self.parts[place], _vector(self.element, self.each))
            return vectors.shuffle(whole, range(inside, inside + width))
        return build.value("vector.from_elements", wanted, self.scalars()[start : start + width])

    def word(self, start: int, type_: ir.Type, width: int) -> ir.Value:
        """The `width` elements from `start` on, side by side as one value of `type_`."""
        if self.each == width and start % width == 0:
            return recast(self.parts[start // width], type_)
        return recast(self.run(start, width), type_)

    def whole(self) -> ir.Value:
        """The vector."""
        return self.run(0, self.count) if self.count > 1 else _one(self.scalars()[0])


@dataclass
class Made:
    """A fragment that a copy is making, where rules expect a tensor in registers to write to."""

    count: int
    element: ir.Type
    pieces: dict[int, tuple[int, ir.Value]] = field(default_factory=dict)

    @property
    def info(self) -> PtrInfo:
        return PtrInfo(self.element, "rmem", _ALIGN)

    @property
    def layout(self) -> Layout:
        return Layout(self.count)

    def write(self, start: int, width: int, value: ir.Value) -> None:
        """Elements `start` to `start + width` are `value`."""
        self.pieces[start] = width, value

    def fragment(self) -> Fragment:
        """All that was written, which is all there is."""
        widths = {width for width, _ in self.pieces.values()}
        ordered = sorted(self.pieces.items())
        if len(widths) == 1:
            return Fragment([value for _, (_, value) in ordered], widths.pop(), self.count, self.element)
        parts = [Fragment([value], width, width, self.element) for _, (width, value) in ordered]
        return Fragment([item for part in parts for item in part.scalars()], 1, self.count, self.element)


def recast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The same bits as a value of `type_`."""
    return value if value.type == type_ else build.value("llvm.bitcast", type_, (value,))


def behind(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The same bits as a value of `type_` and of the same shape, made right behind `value`."""
    if value.type == type_:
        return value
    with _place_behind(value):
        return vectors.cast(value, type_)


def _place_behind(value: ir.Value) -> Any:
    if isinstance(value, mlir.ir.BlockArgument):
        return mlir.ir.InsertionPoint.at_block_begin(value.owner)
    return mlir.ir.InsertionPoint.after(value.owner)


def _one(value: ir.Value) -> ir.Value:
    return build.value("vector.from_elements", _vector(value.type, 1), (value,))


def _vector(element: ir.Type, count: int) -> ir.Type:
    return types.parse(f"vector<{count}x{element}>")


def machine_element(type_: ir.Type) -> ir.Type:
    """The element type of a vector type as machines know it."""
    return mlir.ir.VectorType(vectors.machine_vector(type_)).element_type


def made(op: ir.Operation) -> Made:
    """A fragment to write to, for the result of `op`."""
    type_ = op.results[0].type
    return Made(type_.shape[0], machine_element(type_))


def fragment_of(value: ir.Value, context: LoweringContext) -> Fragment:
    """The parts of a vector."""
    found: Fragment | None = context.fragments.get(value)
    if found is None:
        found = context.fragments[value] = _taken_apart(value, context)
    return found


def _taken_apart(value: ir.Value, context: LoweringContext) -> Fragment:
    count, element = value.type.shape[0], machine_element(value.type)
    owner = value.owner
    if getattr(owner, "name", "") == "vector.from_elements":
        parts = [behind(item, element) for item in owner.operands]
        return Fragment(parts, 1, count, element, owner.operation)
    return Fragment([behind(value, vectors.machine_vector(value.type))], count, count, element)


def _joined(items: Sequence[ir.Value], count: int, element: ir.Type, context: LoweringContext) -> Fragment:
    """Side by side; in parts of one size where all have them."""
    found = [
        fragment_of(item, context) if vectors.is_vector(item.type) else Fragment([behind(item, element)], 1, 1, element)
        for item in items
    ]
    if len({part.each for part in found}) == 1:
        return Fragment([item for part in found for item in part.parts], found[0].each, count, element)
    return Fragment([item for part in found for item in part.scalars()], 1, count, element)


def tensor_or_fragment(value: ir.Value, context: LoweringContext) -> TensorView | Fragment:
    """What a memory operation names: a tensor, or a fragment as a value."""
    return fragment_of(value, context) if vectors.is_vector(value.type) else context.tensor(value)


def give(op: ir.Operation, fragment: Fragment, context: LoweringContext) -> list[ir.Value] | None:
    """The result of a rule: the parts where all who use it take parts, else the vector."""
    result = op.results[0]
    if all(use.owner.name in _TAKE_PARTS for use in result.uses):
        context.fragments[result] = fragment
        return None
    whole = vectors.cast(fragment.whole(), result.type)
    fragment.maker = None
    context.fragments[whole] = fragment
    return [whole]


@rules.lowers("join")
def _join(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    type_ = op.results[0].type
    return give(op, _joined(list(op.operands), type_.shape[0], machine_element(type_), context), context)


@rules.lowers("vector.to_elements", "vector.extract")
def _elements(op: ir.Operation, context: LoweringContext) -> Any:
    fragment = context.fragments.get(op.operands[0])
    if fragment is None:
        return KEEP
    scalars = fragment.scalars()
    if op.name == "vector.to_elements":
        return [vectors.cast(item, result.type) for item, result in zip(scalars, op.results, strict=True)]
    place = list(mlir.ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    return [vectors.cast(scalars[place[0]], op.results[0].type)]


@rules.lowers("vector.shuffle")
def _shuffle(op: ir.Operation, context: LoweringContext) -> Any:
    """A run of elements of one fragment."""
    fragment = context.fragments.get(op.operands[0])
    if fragment is None or op.operands[0] != op.operands[1]:
        return KEEP
    mask, each = list(mlir.ir.DenseI64ArrayAttr(op.attributes["mask"])), fragment.each
    runs = [mask[place : place + each] for place in range(0, len(mask), each)]
    if all(run[0] % each == 0 and run == list(range(run[0], run[0] + each)) for run in runs):
        parts = [fragment.parts[run[0] // each] for run in runs]
        return give(op, Fragment(parts, each, len(mask), fragment.element), context)
    if fragment.parts[0] == op.operands[0]:
        return KEEP
    scalars = fragment.scalars()
    return give(op, Fragment([scalars[place] for place in mask], 1, len(mask), fragment.element), context)
