"""Whether iterations of loops are independent: whether one may write what another reads or writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import constant_of
from tilewright.passes.accessed_elements import Access
from tilewright.passes.effects import may_overlap, memories
from tilewright.passes.loop_bodies import is_invariant, same_value

if TYPE_CHECKING:
    from mlir import ir


def conflict(
    accesses: Sequence[Access], indices: Sequence[ir.Value], most: int = 0, stores: bool = False
) -> ir.Value | None:
    """A tensor through which iterations may depend on each other; None where there is none.

    `indices` are those of a nest of loops, from the outermost in. Accesses of iterations that differ in one of them are
    of different elements where it is a coordinate of both; at most `most` indices may be no coordinate. With `stores` a
    store alone may write no element in two iterations either.
    """
    for number, one in enumerate(accesses):
        for other in accesses[number if stores else number + 1 :]:
            if not (one.writes or other.writes) or not may_overlap(one.tensor, other.tensor):
                continue
            if len(indices) - len(_separating(one, other, indices)) > most:
                return one.tensor
    return None


def _separating(one: Access, other: Access, indices: Sequence[ir.Value]) -> set[ir.Value]:
    """The indices that are a coordinate of both accesses, in one mode of one memory."""
    if not one.is_injective or not other.is_injective or one.layout != other.layout:
        return set()
    if memories(one.tensor) != memories(other.tensor):
        return set()
    shared = [value for mode, value in one.fixed.items() if same_value(value, other.fixed.get(mode))]
    nest = indices[0].owner.owner.operation
    return {index for index in indices if any(counts(value, index, nest) for value in shared)}


def counts(value: ir.Value, index: ir.Value, nest: ir.Operation) -> bool:
    """True where a value tells the iterations of the loop with this index apart, in all of a nest.

    It is the index times a number that is not zero, plus values from outside the nest.
    """
    if value == index:
        return True
    if isinstance(value.owner, mlir.ir.Block):
        return False
    op = value.owner.operation
    if op.name in ("arith.extsi", "arith.extui"):
        return counts(op.operands[0], index, nest)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return False
    left, right = list(op.operands)
    if not is_invariant(right, nest):
        left, right = right, left
    fixed = is_invariant(right, nest) if op.name != "arith.muli" else bool(constant_of(right))
    return fixed and counts(left, index, nest)
