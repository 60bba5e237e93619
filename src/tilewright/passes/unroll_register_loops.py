"""Unrolling loops over constant bounds whose index picks registers: what they pick is then known.

Registers have no addresses. LLVM would unroll these loops in the end (see `annotate_loops`), but then the registers
would have been memory up to there.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.accessors import number_of
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.passes.annotate_loops import (
    MOST_ITERATIONS,
    UNROLL,
    UNROLL_FULL,
    constant_of,
    picks_registers,
    trip_count,
)
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.pipeline_loops import WISH as PREFETCH
from tilewright.passes.register_views import known_integer

if TYPE_CHECKING:
    from mlir import ir

MOST_OPERATIONS = 1024
"""Operations that unrolling a loop may make; LLVM unrolls longer ones in less time than it takes to build them here."""
MOST_BESIDE_WGMMA = 1 << 15
"""The same beside products of a warpgroup: the elements of their accumulators have to be known here."""


def unroll(function: ir.Operation) -> bool:
    """Unroll such loops of `function`, inner ones first; gives whether there were any."""
    # Nothing may hold Python's object of an erased operation when others are built: hence `pop`, and no other lists.
    wanted = [op for op in operations(function, inner_first=True)[::-1] if op.name == "scf.for" and _is_wanted(op)]
    done = False
    most = MOST_OPERATIONS if all(op.name != "cute.wgmma" for op in operations(function)) else MOST_BESIDE_WGMMA
    while wanted:
        loop = wanted.pop()
        if trip_count(loop) * len(operations(loop)) <= most:
            if PREFETCH in loop.attributes:
                remark(loop, "prefetch_stages= has no effect: the loop is unrolled, as its index picks registers")
            _unroll(loop)
            done = True
    if done:
        _decide_branches(function)
    return done


_COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
"""By the predicate of `arith.cmpi`; signed ones, then the unsigned `lt`, `le`, `gt`, `ge`."""


def _decide_branches(function: ir.Operation) -> None:
    """Put the arm in place of each branch whose condition the loops' indices decide, inner ones first."""
    branches = [op for op in operations(function, inner_first=True)[::-1] if op.name == "scf.if"]
    while branches:
        branch = branches.pop()
        holds = _known_condition(branch.operands[0])
        if holds is not None:
            _take_arm(branch, 0 if holds else 1)


def _known_condition(value: ir.Value) -> bool | None:
    """What `arith.cmpi` of known integers gives; None for other conditions."""
    owner = value.owner
    if not isinstance(owner, mlir.ir.Operation | mlir.ir.OpView) or owner.operation.name != "arith.cmpi":
        return None
    left, right = (known_integer(operand) for operand in owner.operation.operands)
    predicate = number_of(owner.operation, "predicate")
    if left is None or right is None or (predicate >= len(_COMPARE) and min(left, right) < 0):
        return None
    return bool(_COMPARE[predicate if predicate < len(_COMPARE) else predicate - 4](left, right))


def _take_arm(branch: ir.Operation, number: int) -> None:
    blocks = branch.regions[number].blocks
    if len(blocks):
        *inner, end = list(blocks[0].operations)
        for op in inner:
            op.operation.move_before(branch)
        for old, new in zip(branch.results, end.operation.operands, strict=True):
            old.replace_all_uses_with(new)
    branch.erase()


def _is_wanted(loop: ir.Operation) -> bool:
    if UNROLL in loop.attributes and UNROLL_FULL not in loop.attributes:
        return False
    return 1 <= trip_count(loop) <= MOST_ITERATIONS and picks_registers(loop)


def _unroll(loop: ir.Operation) -> None:
    """Put the body in place of the loop, once for each iteration."""
    lower, _, step = (constant_of(bound) for bound in list(loop.operands)[:3])
    carried = list(loop.operands)[3:]
    count = trip_count(loop)
    assert lower is not None and step is not None  # iterations are known
    for iteration in range(count - 1):
        carried = _copied(loop, lower + iteration * step, carried)
    carried = _inline(loop, lower + (count - 1) * step, carried, loop)
    for old, new in zip(loop.results, carried, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _copied(loop: ir.Operation, index: int, carried: list[ir.Value]) -> list[ir.Value]:
    """One iteration in front of the loop, from a copy of it."""
    with mlir.ir.InsertionPoint(loop):
        body = loop.clone().operation
    yielded = _inline(body, index, carried, loop)
    body.erase()
    return yielded


def _inline(body: ir.Operation, index: int, carried: list[ir.Value], before: ir.Operation) -> list[ir.Value]:
    """Move one iteration in front of the loop; gives what it yields."""
    block = body.regions[0].blocks[0]
    counter, *arguments = block.arguments
    location = body.location
    with mlir.ir.InsertionPoint(before), located(lambda: location):
        counter.replace_all_uses_with(build.constant(index, counter.type))
    for argument, value in zip(arguments, carried, strict=True):
        argument.replace_all_uses_with(value)
    *operations, end = list(block.operations)
    for op in operations:
        op.operation.move_before(before)
    return list(end.operation.operands)
