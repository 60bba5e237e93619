"""scf-to-cf: `scf.if`, `scf.for` and `scf.while` become blocks and branches.

before: `%0 = scf.if %c -> (f32) {... yield %a} else {... yield %b}`
after:  `cf.cond_br %c, ^then, ^else`, `cf.br ^end(%a)`, `cf.br ^end(%b)`, and `%0` is the argument of `^end`

A loop's annotation goes to the branch that repeats it, under the name by which the translation to LLVM IR reads it.

This leaves what MLIR's `convert-scf-to-cf` does, blocks in the same order. That one splits a block at each `scf.if` in
it, so that it takes time that grows with their square; here each operation moves once. Other operations of scf are left
to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir
from tilewright.ir.context import current, located
from tilewright.ir.walk import operations
from tilewright.passes.annotate_loops import ANNOTATION
from tilewright.passes.loop_building import binary, compare, less
from tilewright.passes.pipeline import Pass, register

if TYPE_CHECKING:
    from mlir import ir

_ENDS = {"scf.yield", "scf.condition"}
_ON_BRANCHES = "loop_annotation"  # where the translation to LLVM IR reads it


@register
class ScfToCf(Pass):
    """See the module."""

    name = "scf-to-cf"
    in_cute = False

    def run(self, module: ir.Operation) -> None:
        session = current()
        if not flatten(module) and session.named:
            session.names -= {*_RULES, *_ENDS}


def flatten(module: ir.Operation) -> bool:
    """Do this to the functions of `module` and of the kernels in it; whether operations with regions are left."""
    session = current()
    if session.named and not any(name.startswith("scf.") for name in session.names):
        return False
    blocks = _Blocks()
    for function in _functions(module):
        blocks.flatten(function)
    return blocks.others


def _functions(module: ir.Operation) -> list[ir.Operation]:
    found = []
    for op in module.regions[0].blocks[0].operations:
        inner = op.operation
        found += _functions(inner) if inner.name == "gpu.module" else [inner]
    return found


class _Blocks:
    """Moves the operations of functions into blocks without regions; `others` says whether some have regions still."""

    def __init__(self) -> None:
        self.others = False
        self._inside: defaultdict[ir.Block, list[ir.Operation]] = defaultdict(list)

    def flatten(self, function: ir.Operation) -> None:
        """Move what is in the regions of loops and branches into blocks of the function."""
        inside = operations(function)[1:]
        if not any(op.name in _RULES for op in inside):
            self.others |= any(op.regions for op in inside)
            return
        for op in inside:  # to iterate over a block itself would load the Python modules of MLIR's dialects
            self._inside[op.block].append(op)
        for region in function.regions:
            for block in list(region.blocks):
                self._fill(block, block)

    def _fill(self, source: ir.Block, target: ir.Block) -> tuple[ir.Block, ir.Operation]:
        """Move the operations of `source` to `target` and the blocks that follow it: the last block, and the last
        operation, which stays where it is when it ends a region."""
        last = None
        for last in self._inside[source]:
            lower = _RULES.get(last.name)
            if target is not source and last.name not in _ENDS:
                target.append(last)
            if lower is not None:
                target = self._lowered(last, lower, target)
            self.others |= lower is None and len(last.regions) > 0
        return target, last

    def _lowered(self, op: ir.Operation, lower: Callable[..., ir.Block], target: ir.Block) -> ir.Block:
        location = op.location
        with located(lambda: location):
            end: ir.Block = lower(self, op, target)
        op.erase()
        return end

    def branch(self, op: ir.Operation, at: ir.Block) -> ir.Block:
        """`scf.if`; the block that goes on after it."""
        end = _block_after(at, op, op.results)
        others = list(op.regions[1].blocks)
        otherwise = _block_after(at, op) if others else end
        then = _block_after(at, op)
        _jump_if(op, None, op.operands[0], (then, ()), (otherwise, ()))
        for source, target in zip([op.regions[0].blocks[0], *others], (then, otherwise), strict=False):
            last, yielded = self._fill(source, target)
            _jump(op, last, end, yielded.operands)
        _replace(op.results, end.arguments)
        return end

    def count(self, op: ir.Operation, at: ir.Block) -> ir.Block:
        """`scf.for`."""
        lower, upper, step, *initial = op.operands
        source = op.regions[0].blocks[0]
        end = _block_after(at, op)
        body = _block_after(at, op)
        head = _block_after(at, op, source.arguments)
        _jump(op, None, head, [lower, *initial])
        _replace(source.arguments, head.arguments)
        index, *carried = head.arguments
        last, yielded = self._fill(source, body)
        with mlir.ir.InsertionPoint(last):
            following = binary("addi", index, step)
        _jump(op, last, head, [following, *yielded.operands], annotated=True)
        with mlir.ir.InsertionPoint(head):
            goes_on = compare(less(op), index, upper)
        _jump_if(op, head, goes_on, (body, ()), (end, ()))
        _replace(op.results, carried)
        return end

    def repeat(self, op: ir.Operation, at: ir.Block) -> ir.Block:
        """`scf.while`."""
        before, after = (region.blocks[0] for region in op.regions)
        end = _block_after(at, op)
        body = None if self._only_repeats(after) else _block_after(at, op, after.arguments)
        head = _block_after(at, op, before.arguments)
        _jump(op, None, head, op.operands)
        _replace(before.arguments, head.arguments)
        last, condition = self._fill(before, head)
        goes_on, *values = condition.operands
        _jump_if(op, last, goes_on, (body or head, values), (end, ()), annotated=body is None)
        if body is not None:
            _replace(after.arguments, body.arguments)
            last, yielded = self._fill(after, body)
            _jump(op, last, head, yielded.operands, annotated=True)
        _replace(op.results, values)
        return end

    def _only_repeats(self, block: ir.Block) -> bool:
        """True of the second block of a `do ... while`: it passes its arguments on as they come."""
        first = self._inside[block][0]
        return first.name == "scf.yield" and list(first.operands) == list(block.arguments)


_RULES = {"scf.if": _Blocks.branch, "scf.for": _Blocks.count, "scf.while": _Blocks.repeat}


def _block_after(at: ir.Block, op: ir.Operation, values: Sequence[ir.Value] = ()) -> ir.Block:
    """A new block behind `at`, with arguments of the types of `values`."""
    types = [value.type for value in values]
    return at.create_after(*types, arg_locs=[op.location] * len(types))


def _jump(
    op: ir.Operation, at: ir.Block | None, to: ir.Block, values: Sequence[ir.Value], annotated: bool = False
) -> None:
    _end(op, at, "cf.br", list(values), [to], _annotation(op) if annotated else {})


def _jump_if(
    op: ir.Operation,
    at: ir.Block | None,
    condition: ir.Value,
    then: tuple[ir.Block, Sequence[ir.Value]],
    otherwise: tuple[ir.Block, Sequence[ir.Value]],
    annotated: bool = False,
) -> None:
    attributes = dict(_annotation(op)) if annotated else {}
    attributes["operandSegmentSizes"] = build.i32_array([1, len(then[1]), len(otherwise[1])])
    _end(op, at, "cf.cond_br", [condition, *then[1], *otherwise[1]], [then[0], otherwise[0]], attributes)


def _annotation(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {_ON_BRANCHES: op.attributes[ANNOTATION]} if ANNOTATION in op.attributes else {}


def _end(
    op: ir.Operation,
    at: ir.Block | None,
    name: str,
    operands: list[ir.Value],
    successors: list[ir.Block],
    attributes: dict[str, Any],
) -> None:
    current().names.add(name)
    with mlir.ir.InsertionPoint(op if at is None else at):  # behind `op` there may be more in its block, as yet
        mlir.ir.Operation.create(name, operands=operands, successors=successors, attributes=attributes, loc=op.location)


def _replace(old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
    for one, other in zip(old, new, strict=True):
        one.replace_all_uses_with(other)
