"""The body of an `scf.for`, cut in two: what can be done some iterations earlier, and the rest; and copies of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir
from tilewright.ir.walk import address, operations
from tilewright.passes.effects import is_pure

if TYPE_CHECKING:
    from mlir import ir


class Body:
    """The parts of a loop: bounds, initial values, index, carried arguments, operations and what they yield."""

    def __init__(self, loop: ir.Operation) -> None:
        self.loop = loop
        self.block = loop.regions[0].blocks[0]
        self.lower, self.upper, self.step, *self.initial = list(loop.operands)
        self.index, *self.carried = list(self.block.arguments)
        *ops, end = [op.operation for op in self.block.operations]
        self.operations: list[ir.Operation] = ops
        self.yielded = list(end.operands)
        self.places = {address(op): place for place, op in enumerate(ops)}

    def place_of(self, value: ir.Value) -> int | None:
        """Which operation of the body a value is a result of; None for arguments and values from outside."""
        if isinstance(value.owner, mlir.ir.Block):
            return None
        return self.places.get(address(value.owner.operation))

    def number_of(self, value: ir.Value) -> int | None:
        """Which carried argument of the loop a value is; None for others."""
        if not isinstance(value.owner, mlir.ir.Block) or value.owner != self.block:
            return None
        number = int(mlir.ir.BlockArgument(value).arg_number)
        return number - 1 if number else None

    def around(self, op: ir.Operation) -> int:
        """Which operation of the body `op` is, or is inside of."""
        while address(op) not in self.places:
            op = op.parent.operation
        return self.places[address(op)]


def used_by(op: ir.Operation) -> list[ir.Value]:
    """The values from outside that an operation and those inside it use."""
    inner = operations(op)
    inside = {result for item in inner[1:] for result in item.results}
    inside |= {
        argument for item in inner for region in item.regions for block in region for argument in block.arguments
    }
    return [value for item in inner for value in item.operands if value not in inside]


class Slice:
    """The operations of a body, by place, and the carried arguments, by number, that values are computed from.

    `blocker` is an operation among them that is not pure, and none of those at the places `allowed`.
    """

    def __init__(self, body: Body, values: Iterable[ir.Value], allowed: Iterable[int] = ()) -> None:
        self.places: set[int] = set()
        self.carried: set[int] = set()
        self.blocker: ir.Operation | None = None
        self._body = body
        self._allowed = set(allowed)
        self._values = list(values)
        waiting = list(self._values)
        while waiting and self.blocker is None:
            waiting += self._sources(waiting.pop())

    @property
    def varies(self) -> bool:
        """True where the values may differ from one iteration to the next."""
        body = self._body
        if self.carried or self.blocker is not None:
            return True
        used = [*self._values, *(value for place in self.places for value in used_by(body.operations[place]))]
        return any(value == body.index for value in used)

    def _sources(self, value: ir.Value) -> list[ir.Value]:
        place, number = self._body.place_of(value), self._body.number_of(value)
        if number is not None and number not in self.carried:
            self.carried.add(number)
            return [self._body.yielded[number]]
        if place is None or place in self.places:
            return []
        op = self._body.operations[place]
        if place not in self._allowed and not is_pure(op):
            self.blocker = op
            return []
        self.places.add(place)
        return used_by(op)


def is_invariant(value: ir.Value, loop: ir.Operation) -> bool:
    """True where a value is surely the same in all iterations of a loop: from outside, or computed from such values."""
    block = isinstance(value.owner, mlir.ir.Block)
    if not is_inside(value.owner.owner.operation if block else value.owner.operation, loop):
        return True
    return (
        not block
        and is_pure(value.owner.operation)
        and all(is_invariant(operand, loop) for operand in used_by(value.owner.operation))
    )


def is_inside(op: ir.Operation, around: ir.Operation) -> bool:
    """True of `around` and the operations in its regions."""
    at: ir.Operation | None = op
    while at is not None:
        if at == around:
            return True
        at = at.parent.operation if at.parent is not None else None
    return False


def clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of `op` at the insertion point over mapped values; its results are entered into `mapping`."""
    made = op.clone().operation
    for inner in operations(made):
        for number, value in enumerate(inner.operands):
            if value in mapping:
                inner.operands[number] = mapping[value]
    mapping.update(zip(op.results, made.results, strict=True))
    return made


def mapped(mapping: Mapping[ir.Value, ir.Value], values: Iterable[ir.Value]) -> list[ir.Value]:
    """What stands for these values."""
    return [mapping.get(value, value) for value in values]


def same_value(a: Any, b: Any) -> bool:
    """True where two values are surely equal: one value, or results of equal pure operations on equal values."""
    if a is None or b is None:
        return False
    if a == b:
        return True
    if isinstance(a.owner, mlir.ir.Block) or isinstance(b.owner, mlir.ir.Block):
        return False
    first, second = a.owner.operation, b.owner.operation
    if first.name != second.name or a.type != b.type or not is_pure(first) or len(first.regions):
        return False
    left, right = list(first.operands), list(second.operands)
    return len(left) == len(right) and _attributes(first) == _attributes(second) and all(map(same_value, left, right))


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
