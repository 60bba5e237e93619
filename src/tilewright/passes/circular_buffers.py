"""Buffers of several stages that a loop goes round in: how many iterations ahead one of them may be filled.

    for i in cutlass.range(n, prefetch_stages=2):
        cute.copy(atom, source[None, i], buffer[None, i % 3])        # asynchronous
        ...
        use(buffer[None, i % 3])

It is read off coordinates: all accesses to the buffer in the loop pick the same stage, a mode of its layout is indexed
by it, and it goes round: `i % 3`, or a carried value that counts 0, 1, 2, 0, ...
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir
from tilewright.ir.accessors import constant_of, number_of
from tilewright.layout import is_static
from tilewright.passes.accessed_elements import Access, Mode, accesses_of
from tilewright.passes.effects import may_overlap, name_of
from tilewright.passes.loop_bodies import Body, same_value

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class Buffer:
    """A buffer that the loop goes round in: the tensor, its stages, the place in the body of its last access."""

    tensor: ir.Value
    stages: int
    last: int


def buffer_of(copy: ir.Operation, body: Body, moved: set[int]) -> Buffer | str:
    """The buffer that an asynchronous copy fills; text that says why it is none.

    `moved` are the places in the body of what is done earlier.
    """
    target = copy.operands[1]
    name, stages = name_of(target), _stages(Access.of(copy, target), body)
    if not stages:
        return f"each iteration fills the same part of {name}; let it go round in stages, as {name}[..., i % stages]"
    last, first = -1, min(moved)
    for place, op in enumerate(body.operations):
        for access in accesses_of(op):
            if not may_overlap(access.tensor, target):
                continue
            if not _same_stage(stages, _stages(access, body)):
                return f"{name} is accessed in another stage than the one that the iteration fills"
            if place < first:
                return f"{name} is accessed before it is filled"
            last = max(last, place)
    turns = min((turn for _, turn in stages.values()), default=0)
    return Buffer(target, turns, last)


Stages = dict[Mode, tuple["ir.Value", int]]
"""By mode: the value that picks the stage, and after how many iterations it comes again."""


def _same_stage(wanted: Stages, found: Stages) -> bool:
    return any(mode in found and same_value(value, found[mode][0]) for mode, (value, _) in wanted.items())


def _stages(access: Access, body: Body) -> Stages:
    """The modes in which an access has one coordinate, and it goes round."""
    if not is_static(access.layout) or not access.is_injective:
        return {}
    turns = {mode: (value, turns_of(value, body)) for mode, value in access.fixed.items()}
    return {mode: (value, count) for mode, (value, count) in turns.items() if count > 1}


def turns_of(value: ir.Value, body: Body) -> int:
    """After how many iterations a value comes again, all before being different; 0 where that is not known."""
    number = body.number_of(value)
    if number is not None:
        return _cycle(value, body.yielded[number])
    if isinstance(value.owner, mlir.ir.Block):
        return 0
    op = value.owner.operation
    if op.name in ("arith.remui", "arith.remsi") and op.operands[0] == body.index and constant_of(body.step) == 1:
        return abs(int(constant_of(op.operands[1]) or 0))
    return 0


MOST_STAGES = 64


def _cycle(argument: ir.Value, following: ir.Value) -> int:
    """The length of the cycle 0, 1, ..., 0 that a carried value goes through; 0 where it is none."""
    for count in range(1, MOST_STAGES + 1):
        after = _evaluated(following, {argument: count - 1})
        if after == 0:
            return count
        if after != count:
            return 0
    return 0


def _evaluated(value: ir.Value, known: dict[ir.Value, int]) -> int | None:
    """The number that a value is where those in `known` are; None where it depends on others."""
    if value in known:
        return known[value]
    if isinstance(value.owner, mlir.ir.Block):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        found = constant_of(value)
        return found if isinstance(found, int) else None
    if op.name == "scf.if":
        condition = _evaluated(op.operands[0], known)
        if condition is None:
            return None
        end = list(op.regions[0 if condition else 1].blocks[0].operations)[-1].operation
        return _evaluated(end.operands[mlir.ir.OpResult(value).result_number], known)
    function = _COMPARE.get(number_of(op, "predicate")) if op.name == "arith.cmpi" else _ARITHMETIC.get(op.name)
    operands = [_evaluated(operand, known) for operand in op.operands]
    if function is None or any(item is None or item < 0 for item in operands):
        return None
    return int(function(*operands))


_COMPARE: dict[int, Any] = dict(
    enumerate([operator.eq, operator.ne] + 2 * [operator.lt, operator.le, operator.gt, operator.ge])
)
"""Of numbers that are not negative; signed and unsigned then agree."""
_ARITHMETIC: dict[str, Any] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.xori": operator.xor,
    "arith.remui": lambda a, b: a % b if b else -1, "arith.remsi": lambda a, b: a % b if b else -1,
    "arith.select": lambda c, a, b: a if c else b, "arith.extui": lambda a: a, "arith.extsi": lambda a: a,
    "arith.trunci": lambda a: a,
}  # fmt: skip
