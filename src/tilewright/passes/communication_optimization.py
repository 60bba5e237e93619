"""communication-optimization: choose how collectives are done, and do fewer of them.

before: `cute.allreduce %x {scope = "auto"}`, in loops, beside each other, of constants
after:  `cute.allreduce %x, %y {scope = "block"}`: scopes chosen, neighbours merged, what does not change hoisted out of
        loops, what needs no communication dropped, folds that one thread alone reads left to it

A scope that the launch or the chip lacks is an error. `remarks`, and the attribute `tilewright.communication` of each
kernel, have a line for each collective: scope, algorithm, barriers, bytes and predicted time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewright.base import notices
from tilewright.ir import build, mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.erasing import erase_unused
from tilewright.ir.walk import operations
from tilewright.passes.choose_scope import choose_scope, launch_without_clusters
from tilewright.passes.collectives import (
    BLOCKS,
    PARTICIPANTS,
    REMARKS,
    KernelFacts,
    around,
    collectives,
    cost_of,
    kernel_facts,
    place_of,
    remark,
    set_text,
)
from tilewright.passes.computation import computing_time
from tilewright.passes.merge_collectives import merge_block
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.simplify_collectives import simplify
from tilewright.passes.uniformity import Uniformity

if TYPE_CHECKING:
    from mlir import ir


class CommunicationWarning(UserWarning):
    """A kernel that is predicted to spend more time on communication than on all else."""


@register
class CommunicationOptimization(Pass):
    """See the module."""

    name = "communication-optimization"
    requires = ("communication-analysis",)
    options: ClassVar[dict[str, object]] = {"chip": ""}

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.remarks: list[str] = []

    def run(self, module: ir.Operation) -> None:
        self.remarks = []
        build.forget_pure()
        for found in kernel_facts(module, str(self["chip"])):
            for op in collectives(found.kernel):
                choose_scope(op, found)
            if any(BLOCKS in op.attributes for op in collectives(found.kernel)):
                launch_without_clusters(found)
            simplify(found)
            _hoist(found)
            for block in _blocks(found.kernel):
                merge_block(block)
            _leave_to_the_first(found)
            self._remark(found)
        erase_unused(module)

    def _remark(self, found: KernelFacts) -> None:
        lines = [remark(op, found) for op in collectives(found.kernel)]
        self.remarks += lines
        if lines:
            texts = [build.string(line) for line in lines]
            found.kernel.attributes[REMARKS] = mlir.ir.ArrayAttr.get(texts)
            _warn(found)


def _blocks(kernel: ir.Operation) -> list[ir.Block]:
    return [block for op in operations(kernel) for region in op.regions for block in region]


def _hoist(found: KernelFacts) -> None:
    """Take collectives of values from outside a loop out of it: its threads come to the loop together as well."""
    for op in list(collectives(found.kernel)):
        target = None
        for outer in around(op):
            if outer.name not in ("scf.for", "scf.while") or any(_is_inside(value, outer) for value in op.operands):
                break
            target = outer
        if target is not None and PARTICIPANTS in op.attributes:
            op.move_before(target)


def _is_inside(value: ir.Value, outer: ir.Operation) -> bool:
    owner = value.owner
    op = owner.owner.operation if isinstance(owner, mlir.ir.Block) else owner
    return op == outer or (owner is not outer and any(item == outer for item in around(op)))


def _leave_to_the_first(found: KernelFacts) -> None:
    """All-reduces over a block whose results the first thread alone reads, under an `if`, become reductions."""
    known = Uniformity(found.kernel, found.facts.block)
    for op in collectives(found.kernel):
        is_block = op.name == "cute.allreduce" and text_of(op, "scope") == "block"
        if is_block and PARTICIPANTS in op.attributes and found.facts.block:
            uses = [use.owner.operation for result in op.results for use in result.uses]
            if uses and all(_runs_in_first(use, op, known) for use in uses):
                set_text(op, "mode", "first")


def _runs_in_first(use: ir.Operation, op: ir.Operation, known: Uniformity) -> bool:
    """True where `use` lies in the first arm of an `if` that the block's first thread alone enters."""
    inner, stop = use, [use, *around(use)]
    for outer in stop[1:]:
        if outer.name == "scf.if" and _in_first_arm(inner, outer):
            numbers = known.of(outer.operands[0]).numbers
            if numbers is not None and numbers[0] and not any(numbers[1:]):
                return not any(item == op for item in stop)
        inner = outer
    return False


def _in_first_arm(inner: ir.Operation, outer: ir.Operation) -> bool:
    return any(op.operation == inner for block in outer.regions[0] for op in block.operations)


def _warn(found: KernelFacts) -> None:
    """Say where communication is predicted to take longer than the rest of the kernel."""
    ops = list(collectives(found.kernel))
    spent, rest = sum(cost_of(op, found).nanoseconds for op in ops), computing_time(found)
    if spent <= rest:
        return
    message = (
        f"Warning: Communication overhead exceeds computation: about {spent / 1000:.2f} us of"
        f" {(spent + rest) / 1000:.2f} us in kernel {text_of(found.kernel, 'sym_name')}; give each thread more to do"
        " before it communicates, or use a smaller scope"
    )
    place = place_of(max(ops, key=lambda op: cost_of(op, found).nanoseconds))
    notices.warn(message, place, CommunicationWarning)
