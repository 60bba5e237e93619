"""Which threads of a block are known to have equal values: whether control flow diverges, and what a value is.

For each value of a kernel there is a label for each thread of the block: threads of equal labels have equal values.
Arithmetic on thread indices, constants and other values known for each thread is computed, so that `thread // 32 == 0`
is known to be the same in each warp. What comes from memory or from instructions that are not known here is taken to be
equal where its operands are, which `is_sure` tells from what is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilewright.ir.accessors import constant_of, number_of, text_of
from tilewright.ir.dialect import COLLECTIVES, PURE_OPS

if TYPE_CHECKING:
    from mlir import ir

WARP = 32
_MOST_NUMBER = 1 << 31
_LAST_SIGNED = 5  # predicate of `arith.cmpi`
_MOST_ROUNDS = 16  # until loop-carried values are taken to differ in all threads
Labels = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a value: `labels` by thread, and `numbers` where they are known; whether it differs from block
    to block of a cluster, and from cluster to cluster; whether equal labels are proved equal values (`is_sure`)."""

    labels: Labels
    numbers: tuple[int, ...] | None = None
    by_block: bool = False
    by_cluster: bool = False
    is_sure: bool = True

    def uniform(self, group: int) -> bool:
        """True where threads of each group of so many consecutive ones have equal values."""
        labels = self.labels
        return all(len(set(labels[first : first + group])) == 1 for first in range(0, len(labels), group))


class Uniformity:
    """What is known of the values of a kernel."""

    def __init__(self, kernel: ir.Operation, block: tuple[int, ...] | None) -> None:
        self.block = block or (1024, 1, 1)
        self.threads = math.prod(self.block)
        self._same = Known((0,) * self.threads)
        self._known: dict[ir.Value, Known] = {}
        for argument in kernel.regions[0].blocks[0].arguments:
            self._known[argument] = self._same
        self._visit_block(kernel.regions[0].blocks[0], self._same)

    def of(self, value: ir.Value) -> Known:
        """What is known of a value; nothing but that it may differ, of one not met."""
        found = self._known.get(value)
        return found if found is not None else replace(self._same, is_sure=False)

    # The walk

    def _visit_block(self, block: ir.Block, control: Known) -> None:
        for op in block.operations:
            self._visit(op.operation, control)

    def _visit(self, op: ir.Operation, control: Known) -> None:
        if op.name == "scf.if":
            self._branch(op, control)
        elif op.name in ("scf.for", "scf.while"):
            self._loop(op, control)
        else:
            for region in op.regions:
                for block in region:
                    self._visit_block(block, control)
            known = self._result(op)
            for result in op.results:
                self._known[result] = known

    def _branch(self, op: ir.Operation, control: Known) -> None:
        condition = self.of(op.operands[0])
        inside = self._together([control, condition])
        yields = []
        for region in op.regions:
            for block in region:
                self._visit_block(block, inside)
                yields.append([self.of(value) for value in _terminator(block).operands])
        for number, result in enumerate(op.results):
            self._known[result] = self._together([condition, *(items[number] for items in yields)])

    def _loop(self, op: ir.Operation, control: Known) -> None:
        counted = op.name == "scf.for"
        bounds = [self.of(value) for value in list(op.operands)[: 3 if counted else 0]]
        carried = [_unnumbered(self.of(value)) for value in list(op.operands)[3 if counted else 0 :]]
        for _ in range(_MOST_ROUNDS):
            before = carried
            carried = self._turn(op, control, bounds, carried, counted)
            if [item.labels for item in carried] == [item.labels for item in before]:
                break
        else:
            carried = [replace(item, labels=tuple(range(self.threads)), is_sure=False) for item in carried]
            self._turn(op, control, bounds, carried, counted)

    def _turn(
        self, op: ir.Operation, control: Known, bounds: list[Known], carried: list[Known], counted: bool
    ) -> list[Known]:
        """Visit the body once with what is known of the carried values; what is known of them after."""
        if counted:
            block = op.regions[0].blocks[0]
            inside = self._together([control, *bounds])
            self._known[block.arguments[0]] = _unnumbered(self._together(bounds))
            self._set(list(block.arguments)[1:], carried)
            self._visit_block(block, inside)
            after = [self.of(value) for value in _terminator(block).operands]
            found = [_unnumbered(self._together([old, new, *bounds])) for old, new in zip(carried, after, strict=True)]
            self._set(op.results, found)
            return found
        test, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
        self._set(test.arguments, carried)
        self._visit_block(test, control)
        condition, *passed = [self.of(value) for value in _terminator(test).operands]
        inside = self._together([control, condition])
        self._set(body.arguments, [_unnumbered(item) for item in passed])
        self._visit_block(body, inside)
        after = [self.of(value) for value in _terminator(body).operands]
        self._set(op.results, [_unnumbered(self._together([condition, item])) for item in passed])
        return [_unnumbered(self._together([old, new, condition])) for old, new in zip(carried, after, strict=True)]

    def _set(self, values: Any, known: Sequence[Known]) -> None:
        for value, item in zip(values, known, strict=True):
            self._known[value] = item

    # Operations

    def _result(self, op: ir.Operation) -> Known:
        name = op.name
        if name == "cute.index":
            return self._index(text_of(op, "name"))
        operands = [self.of(value) for value in op.operands]
        if name == "arith.constant":
            return self._constant(op)
        if name in COLLECTIVES:
            return self._collective(op, operands)
        if name in _WARP_WIDE:
            return self._of_warps(op, operands)
        if name in _INSTRUCTIONS and any(word in str(op.attributes) for word in _OF_THREADS):
            return Known(tuple(range(self.threads)), is_sure=False)
        found = self._together(operands)
        if name in _FOLDED and all(item.numbers is not None for item in operands):
            return self._computed(op, operands, found)
        pure = name.startswith(("arith.", "math.", "vector.", "llvm.extract", "llvm.insert")) or name in _PURE
        return found if pure else replace(found, is_sure=False)

    def _constant(self, op: ir.Operation) -> Known:
        number = constant_of(op.results[0])
        return self._same if not isinstance(number, int) else replace(self._same, numbers=(number,) * self.threads)

    def _index(self, name: str) -> Known:
        head, _, axis = name.partition(".")
        x, y, _z = self.block
        threads = range(self.threads)
        if head == "thread_idx":
            values = {
                "x": [t % x for t in threads],
                "y": [t // x % y for t in threads],
                "z": [t // x // y for t in threads],
            }
            return Known(tuple(values[axis]), tuple(values[axis]))
        if head == "lane_idx":
            lanes = tuple(t % WARP for t in threads)
            return Known(lanes, lanes)
        if head == "block_dim":
            return replace(self._same, numbers=(self.block["xyz".index(axis)],) * self.threads)
        if head in ("block_idx", "sm_id"):
            return replace(self._same, by_block=True, by_cluster=True)
        if head in ("block_in_cluster_idx", "block_in_cluster_rank"):
            return replace(self._same, by_block=True)
        if head == "cluster_idx":
            return replace(self._same, by_cluster=True)
        if head == "physical_warp_id":
            return Known(tuple(t // WARP for t in threads))
        return self._same

    def _collective(self, op: ir.Operation, operands: Sequence[Known]) -> Known:
        if op.name == "cute.scan":
            return Known(tuple(range(self.threads)), by_block=True, by_cluster=True)
        scope, group = text_of(op, "scope"), number_of(op, "group")
        if op.name == "cute.allreduce" and text_of(op, "mode") == "first":
            return Known(tuple(range(self.threads)), by_block=True, by_cluster=True)
        size = group or {"warp": WARP, "thread": 1}.get(scope, self.threads)
        within = scope in ("auto", "thread", "warp", "block")
        return Known(
            tuple(t // size for t in range(self.threads)),
            by_block=within and scope != "auto",
            by_cluster=scope not in ("auto", "grid"),
        )

    def _of_warps(self, op: ir.Operation, operands: Sequence[Known]) -> Known:
        if op.name == "cute.shuffle" and (text_of(op, "kind") != "idx" or not operands[1].uniform(WARP)):
            return replace(self._together(operands), labels=tuple(range(self.threads)))
        width = number_of(op, "width") if op.name == "cute.warp_reduce" else WARP
        return replace(self._together(operands), labels=tuple(t // width for t in range(self.threads)), numbers=None)

    def _computed(self, op: ir.Operation, operands: Sequence[Known], found: Known) -> Known:
        function = _FOLDED[op.name]
        if op.name == "arith.cmpi":
            function = _COMPARISONS[number_of(op, "predicate")]
        columns: list[tuple[int, ...]] = [item.numbers for item in operands if item.numbers is not None]
        is_unsigned = op.name.endswith("ui") or (op.name == "arith.cmpi" and number_of(op, "predicate") > _LAST_SIGNED)
        if is_unsigned and min(map(min, columns)) < 0:
            return found
        try:
            numbers = tuple(function(*row) for row in zip(*columns, strict=True))
        except (ZeroDivisionError, ValueError):
            return found
        fits = max(map(abs, numbers)) < _MOST_NUMBER  # what wraps is not followed
        return replace(found, numbers=numbers, labels=numbers) if fits else found

    def _together(self, items: Sequence[Known]) -> Known:
        """What depends on all of these: threads in which all are equal have equal values."""
        if not items:
            return self._same
        several = [item.labels for item in items if len(set(item.labels)) > 1]
        labels = self._same.labels
        if len(several) == 1:
            labels = several[0]
        elif several:
            names: dict[tuple[int, ...], int] = {}
            labels = tuple(names.setdefault(row, len(names)) for row in zip(*several, strict=True))
        return Known(
            labels,
            None,
            any(item.by_block for item in items),
            any(item.by_cluster for item in items),
            all(item.is_sure for item in items),
        )


def _unnumbered(item: Known) -> Known:
    return replace(item, numbers=None)


def _terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


_INSTRUCTIONS = ("cute.ptx", "cute.ptx_value", "cute.ptx_pure", "llvm.inline_asm")
_OF_THREADS = ("elect.sync", "%lane", "%tid", "%warpid", "activemask")  # what tells threads of a block apart
_PURE = PURE_OPS - {*_INSTRUCTIONS, "cute.index"}
_WARP_WIDE = ("cute.shuffle", "cute.vote", "cute.warp_reduce")


def _truncated(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_FOLDED: dict[str, Callable[..., int]] = {
    "arith.addi": lambda a, b: a + b, "arith.subi": lambda a, b: a - b, "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b, "arith.divsi": _truncated, "arith.floordivsi": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b, "arith.remsi": lambda a, b: a - b * _truncated(a, b),
    "arith.andi": lambda a, b: a & b, "arith.ori": lambda a, b: a | b, "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b, "arith.shrui": lambda a, b: a >> b, "arith.shrsi": lambda a, b: a >> b,
    "arith.cmpi": lambda a, b: 0, "arith.select": lambda c, a, b: a if c else b, "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a, "arith.trunci": lambda a: a, "arith.index_cast": lambda a: a,
    "arith.minsi": min, "arith.maxsi": max, "arith.minui": min, "arith.maxui": max,
}  # fmt: skip
_COMPARISONS: list[Callable[[int, int], int]] = [
    lambda a, b: int(a == b), lambda a, b: int(a != b), lambda a, b: int(a < b), lambda a, b: int(a <= b),
    lambda a, b: int(a > b), lambda a, b: int(a >= b), lambda a, b: int(a < b), lambda a, b: int(a <= b),
    lambda a, b: int(a > b), lambda a, b: int(a >= b),
]  # fmt: skip
