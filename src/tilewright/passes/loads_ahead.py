"""Which loads and asynchronous copies of a loop can be done some iterations earlier, and why others cannot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import atom_of, is_tensor, ptr_info
from tilewright.ir.walk import operations
from tilewright.passes.circular_buffers import Buffer, buffer_of
from tilewright.passes.effects import Effects, effects_of, is_pure, may_overlap, name_of, overlapping
from tilewright.passes.loop_bodies import Body, Slice, used_by

if TYPE_CHECKING:
    from mlir import ir


@dataclass
class LoadsAhead:
    """What is done earlier: the places in the body of loads, of copies to buffers and of commits, and what these need.

    `values` are the results of loads that the rest of the body uses, `carried` the numbers of carried arguments that
    addresses depend on. The loop begins with `barrier` where other threads may still read a buffer then.
    """

    body: Body
    stages: int
    loads: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    values: list[ir.Value] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    barrier: ir.Operation | None = None

    @property
    def moved(self) -> set[int]:
        return {*self.loads, *self.copies, *self.commits}


def complete(ahead: LoadsAhead) -> None:
    """Add what the moved operations need."""
    body = ahead.body
    needed = [value for place in sorted(ahead.moved) for value in used_by(body.operations[place])]
    found = Slice(body, needed, ahead.loads)
    ahead.carried = sorted(found.carried)
    ahead.places = sorted({*found.places, *ahead.loads, *ahead.copies})
    rest = [op for place, op in enumerate(body.operations) if place not in ahead.moved]
    used = {value for op in rest for value in used_by(op)} | set(body.yielded)
    ahead.values = [result for place in ahead.loads for result in body.operations[place].results if result in used]


def find_loads(ahead: LoadsAhead, inside: Effects, kernel: Effects) -> str:
    """Find the loads from global memory; why not all are moved."""
    found = {place: effects_of(op) for place, op in enumerate(ahead.body.operations) if _loads(op)}
    ahead.loads = list(found)  # each may depend on others, until one of them turns out to stay
    reasons: dict[int, str] = {}
    while True:
        stay = {
            place: why
            for place in ahead.loads
            if (why := _unmovable_load(ahead, place, found[place]) or _may_change(found[place].reads, inside, kernel))
        }
        if not stay:
            break
        reasons = {**stay, **reasons}
        ahead.loads = [place for place in ahead.loads if place not in stay]
    return reasons[min(reasons)] if reasons else ""


def _loads(op: ir.Operation) -> bool:
    """True of operations that read global memory, or may, but asynchronous copies."""
    spaces = {ptr_info(tensor.type).space for tensor in effects_of(op).reads}
    return bool(spaces & {"gmem", "generic"}) and not any(map(_is_async, operations(op)))


def _unmovable_load(ahead: LoadsAhead, place: int, found: Effects) -> str:
    op = ahead.body.operations[place]
    name = name_of(found.reads[0])
    if not found.only_reads or any(item.name in _NO_LOADS for item in operations(op)):
        return f"{name} is read by {_named(op)} that does more than load"
    if not all(_is_number(result.type) for result in op.results):
        return f"{name} is read by {_named(op)} that gives no numbers"
    blocker = Slice(ahead.body, used_by(op), ahead.loads).blocker
    return f"what it loads from {name} depends on {_named(blocker)}" if blocker is not None else ""


_NO_LOADS = ("gpu.printf", "cute.alloc", "cute.async_commit", "cute.async_wait")


def _is_number(type_: ir.Type) -> bool:
    item = mlir.ir.VectorType(type_).element_type if isinstance(type_, mlir.ir.VectorType) else type_
    return isinstance(item, mlir.ir.IntegerType | mlir.ir.FloatType)


def _named(op: ir.Operation) -> str:
    return _WORDS.get(op.name, str(op.name))


_WORDS = {
    "scf.for": "an inner loop", "scf.while": "an inner loop", "scf.if": "a branch", "cute.load": "a load",
    "cute.copy_value": "a load", "cute.copy": "a copy", "cute.atomic": "an atomic operation",
    "cute.warp_reduce": "a reduction over the warp", "cute.shuffle": "a shuffle", "cute.vote": "a vote",
}  # fmt: skip


def _may_change(tensors: list[ir.Value], inside: Effects, kernel: Effects) -> str:
    """Why what tensors hold may differ some iterations earlier; "" where it does not."""
    for tensor in tensors:
        if overlapping(tensor, inside.writes) is not None:
            return f"{name_of(tensor)} is written in its body, and what it loads may depend on that"
        if inside.waits and overlapping(tensor, kernel.writes) is not None:
            return f"{name_of(tensor)} is written in the kernel, and the body waits for other threads"
    return ""


def find_copies(ahead: LoadsAhead, inside: Effects, kernel: Effects) -> str:
    """Find the asynchronous copies, all of which are moved or none; why they are not."""
    body = ahead.body
    places = [place for place, op in enumerate(body.operations) if any(map(_is_async, operations(op)))]
    if not places:
        return ""
    copies = [op for place in places for op in operations(body.operations[place]) if _is_async(op)]
    commits = [place for place, op in enumerate(body.operations) if op.name == "cute.async_commit"]
    reason = _unmovable_copies(ahead, places, commits)
    reason = reason or _may_change([op.operands[0] for op in copies], inside, kernel)
    if reason:
        return reason
    buffers = [buffer_of(op, body, set(places)) for op in copies]
    reason = next((item for item in buffers if isinstance(item, str)), "")
    known = [item for item in buffers if isinstance(item, Buffer)]
    reason = reason or _too_few_stages(ahead, known, inside)
    if not reason:
        ahead.copies, ahead.commits = places, commits
        ahead.barrier = _first_barrier(body, known, inside, kernel)
    return reason


def _is_async(op: ir.Operation) -> bool:
    return op.name == "cute.copy" and is_tensor(op.operands[0]) and atom_of(op).name == "cp.async"


def _unmovable_copies(ahead: LoadsAhead, places: list[int], commits: list[int]) -> str:
    body = ahead.body
    everywhere = [op for item in body.operations for op in operations(item) if op.name == "cute.async_commit"]
    if len(everywhere) > len(commits):
        return "a group of asynchronous copies is committed in a branch or an inner loop"
    if not commits or max(commits) < max(places):
        return "its asynchronous copies are not committed in the iteration that makes them"
    for place in places:
        op = body.operations[place]
        if op.results or not all(_is_async(item) or _may_go_along(item) for item in operations(op)):
            return f"{_named(op)} with an asynchronous copy does more than copy"
        blocker = Slice(body, used_by(op), ahead.loads).blocker
        if blocker is not None:
            return f"what it copies depends on {_named(blocker)}"
    return ""


def _may_go_along(op: ir.Operation) -> bool:
    return op.name in ("scf.if", "scf.for", "scf.yield") or (not op.regions and is_pure(op))


def _too_few_stages(ahead: LoadsAhead, buffers: list[Buffer], inside: Effects) -> str:
    """Why the buffers do not allow it: the stage that is filled may still be read."""
    kinds = {op.name for op in inside.waits} - {"cute.fence"}
    if kinds - {"cute.sync_threads", "cute.sync_warp"}:
        return f"{_named(inside.waits[0])} in its body is a wait that says nothing of who has read a buffer"
    if kinds and not _barriers(ahead.body):
        return "its barriers stand in branches or inner loops"
    for buffer in buffers:
        follows = not kinds or bool(_barriers(ahead.body, after=buffer.last))
        most = max(buffer.stages - (1 if follows else 2), 0)
        if ahead.stages > most:
            behind = "" if follows else ", and no barrier follows their last use in the body"
            name = name_of(buffer.tensor)
            return f"{name} has {buffer.stages} stages{behind}: at most prefetch_stages={most} is possible"
    return ""


def _barriers(body: Body, after: int = -1) -> list[ir.Operation]:
    """The barriers that every iteration comes to: of the block where there are any, else of the warp."""
    for kind in ("cute.sync_threads", "cute.sync_warp"):
        if any(op.name == kind for item in body.operations for op in operations(item)):
            return [op for op in body.operations[after + 1 :] if op.name == kind]
    return []


def _first_barrier(body: Body, buffers: list[Buffer], inside: Effects, kernel: Effects) -> ir.Operation | None:
    """The barrier for the loop to begin with: what came before it, in other threads, may still read a buffer."""
    found, at = _barriers(body), body.loop.parent.operation
    while at.name not in ("gpu.func", "scf.for", "scf.while"):
        at = at.parent.operation
    repeats = at.name != "gpu.func"
    accesses, own = [*kernel.reads, *kernel.writes], [*inside.reads, *inside.writes]
    elsewhere = any(_count(item.tensor, accesses) > _count(item.tensor, own) for item in buffers)
    return found[0] if found and (repeats or elsewhere) else None


def _count(tensor: ir.Value, others: list[ir.Value]) -> int:
    return sum(may_overlap(tensor, other) for other in others)
