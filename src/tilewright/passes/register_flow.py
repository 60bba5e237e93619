"""Which elements of registers are read and written where: sets of elements as ints, over structured control flow.

Only the operations that touch registers, and the regions around them, are looked at. Of a block it is known which
elements it reads before it writes them (`gen`), surely writes (`kill`), and may write (`written`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.ir import build
from tilewright.ir.walk import operations
from tilewright.passes.register_views import Allocation, element_index

if TYPE_CHECKING:
    from mlir import ir

_STRUCTURED = ("scf.if", "scf.for", "scf.while")


@dataclass
class Region:
    """A block: the operations in it that matter, and of each what it is: an allocation, an access as (reads, writes),
    or `Nested`."""

    ops: list[ir.Operation] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    gen: int = 0
    kill: int = 0
    written: int = 0

    def summarise(self) -> None:
        """Find the three sets, of the regions inside first."""
        for event in self.events:
            if isinstance(event, Allocation):
                reads, kills, writes = 0, event.mask, 0
            elif isinstance(event, tuple):
                reads, kills = event
                writes = kills
            else:
                event.summarise()
                reads, kills, writes = event.gen, event.kill, event.written
            self.gen |= reads & ~self.kill
            self.kill |= kills
            self.written |= writes

    def live_after(self, after: int) -> list[int]:
        """Of each event the elements that are read after it; `after` are read after the block."""
        found, live = [], after
        for event in reversed(self.events):
            found.append(live)
            if isinstance(event, Allocation):
                live &= ~event.mask
            else:
                reads, kills = event if isinstance(event, tuple) else (event.gen, event.kill)
                live = reads | (live & ~kills)
        return found[::-1]


@dataclass
class Nested:
    """An operation with regions; a body that touches no registers is None."""

    name: str
    bodies: list[Region | None]
    gen: int = 0
    kill: int = 0
    written: int = 0

    def summarise(self) -> None:
        """What the bodies do, by how often they run: a branch one of two, a loop any number, a test at least once."""
        bodies = [body or Region() for body in self.bodies]
        for body in bodies:
            body.summarise()
            self.written |= body.written
        first, last = bodies[0], bodies[-1]
        if self.name == "scf.if":
            self.gen = first.gen | last.gen
            self.kill = first.kill & last.kill
        elif self.name == "scf.for":
            self.gen = first.gen
        else:
            self.gen = first.gen | (last.gen & ~first.kill)
            self.kill = first.kill


@dataclass
class Flow:
    """The accesses to the registers of one function."""

    allocations: list[Allocation]
    root: Region
    places: dict[Any, tuple[int, ...]]
    count: int

    @classmethod
    def of(cls, function: ir.Operation, known: Sequence[Allocation]) -> Flow:
        """Number the elements of the allocations that only structured control flow lies around, and find the sets."""
        allocations = [made for made in known if all(_structured(op, function) for op in (made.op, *made.accesses))]
        count = 0
        for made in allocations:
            made.start, count = count, count + made.count
        places = {
            view: tuple(made.start + offset for offset in offsets)
            for made in allocations
            for view, offsets in made.views.items()
        }
        flow = cls(allocations, Region(), places, count)
        if allocations:
            flow._read(function)
            flow.root.summarise()
        return flow

    def _read(self, function: ir.Operation) -> None:
        """The tree of blocks, in the order of the program."""
        events: dict[Any, Any] = {made.op: made for made in self.allocations}
        for made in self.allocations:
            for op in made.accesses:
                if op not in events:
                    events[op] = self._sets(op)
        blocks: dict[Any, Region] = {function.regions[0].blocks[0]: self.root}
        for op in _in_order(function, events):
            self._region(op, blocks, function)
            region = blocks[op.block]
            region.ops.append(op)
            region.events.append(events[op])

    def _region(self, op: ir.Operation, blocks: dict[Any, Region], function: ir.Operation) -> None:
        """Put the regions around `op` into the tree."""
        block = op.block
        if block in blocks:
            return
        parent = op.parent.operation
        self._region(parent, blocks, function)
        outer = blocks[parent.block]
        if not outer.ops or outer.ops[-1] != parent:
            bodies = 1 if parent.name == "scf.for" else 2
            outer.ops.append(parent)
            outer.events.append(Nested(parent.name, [None] * bodies))
        number = next(n for n, region in enumerate(parent.regions) if any(item == block for item in region.blocks))
        blocks[block] = outer.events[-1].bodies[number] = Region()

    def _sets(self, op: ir.Operation) -> tuple[int, int]:
        """The elements that an access reads and writes."""
        kind = op.name.removeprefix("cute.")
        if kind == "load":
            return self._element(op, op.operands[0]), 0
        if kind == "store":
            return 0, self._element(op, op.operands[1])
        if kind == "load_tensor":
            return self._mask(op.operands), 0
        if kind in ("store_tensor", "fill"):
            return 0, self._mask([op.operands[1]])
        if kind == "wgmma_named":
            return self._mask(op.operands[:1]), 0
        if kind == "gemm":
            d, *others = op.operands
            return self._mask(others), self._mask([d])
        if kind == "copy_value":
            return self._mask(build.groups(op)[1]), 0
        (source,), (target,), preds = build.groups(op)
        kept = [target] if preds else []  # where a predicate is false
        return self._mask([source, *preds, *kept]), self._mask([target])

    def _element(self, op: ir.Operation, tensor: ir.Value) -> int:
        index = element_index(op)
        return 1 << self.places[tensor][index] if index is not None else 0

    def _mask(self, tensors: Iterable[ir.Value]) -> int:
        found = 0
        for tensor in tensors:
            for place in self.places.get(tensor, ()):
                found |= 1 << place
        return found


def _structured(op: ir.Operation, function: ir.Operation) -> bool:
    parent = op.parent.operation
    while parent != function:
        if parent.name not in _STRUCTURED:
            return False
        parent = parent.parent.operation
    return True


def _in_order(function: ir.Operation, events: dict[Any, Any]) -> list[ir.Operation]:
    return [op for op in operations(function) if op in events]
