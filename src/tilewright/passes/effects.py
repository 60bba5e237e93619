"""What operations of stage `cute` do to memory and to other threads: for passes that move or merge iterations.

Arguments of a kernel are taken to be different memory, also where a caller passes one array twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import is_tensor, operands_of, ptr_info, text_of
from tilewright.ir.dialect import COLLECTIVES, PURE_OPS
from tilewright.ir.user_ops import USER_OPS
from tilewright.ir.walk import operations
from tilewright.passes.origin import Origin, origin
from tilewright.passes.program import argument_name

if TYPE_CHECKING:
    from mlir import ir


@dataclass
class Effects:
    """The tensors that operations read and write, those by which they wait for other threads, and those of which
    nothing is known, as text."""

    reads: list[ir.Value] = field(default_factory=list)
    writes: list[ir.Value] = field(default_factory=list)
    waits: list[ir.Operation] = field(default_factory=list)
    unknown: list[tuple[ir.Operation, str]] = field(default_factory=list)

    @property
    def only_reads(self) -> bool:
        """True where the operations can be done earlier as far as other threads are concerned."""
        return not (self.writes or self.waits or self.unknown)


def effects_of(*roots: ir.Operation) -> Effects:
    """What these operations, and those inside them, do."""
    found = Effects()
    for root in roots:
        for op in operations(root):
            _note(op, found)
    return found


def is_pure(op: ir.Operation) -> bool:
    """True of an operation that computes from its operands, and does nothing else; regions must do so too."""
    return all(_is_pure(inner.name) for inner in operations(op))


def _note(op: ir.Operation, found: Effects) -> None:
    name = op.name
    if _is_pure(name) or name in _NEUTRAL:
        return
    if name in _READS or name in _WRITES:
        _note_access(op, found)
    elif name in _WAITS or name in COLLECTIVES:
        found.waits.append(op)
    elif name == "cute.atomic":
        _note_access(op, found)
        found.waits.append(op)
    else:
        found.unknown.append((op, _described(op)))


def _note_access(op: ir.Operation, found: Effects) -> None:
    operands = operands_of(op)
    for name in _READS.get(op.name, ()):
        if is_tensor(operands[name]):
            found.reads.append(operands[name])
    for name in _WRITES.get(op.name, ()):
        if is_tensor(operands[name]):
            found.writes.append(operands[name])


def _described(op: ir.Operation) -> str:
    """The operation by its name; instructions by their PTX."""
    if op.name in ("cute.ptx", "cute.ptx_value"):
        return " ".join(text_of(op, "text").replace("{", " ").split()[:1]).rstrip(";") or str(op.name)
    return str(op.name)


def _is_pure(name: str) -> bool:
    if name in PURE_OPS or name in _STRUCTURE or name.startswith(_PURE_DIALECTS):
        return True
    known = USER_OPS.get(name)
    return known is not None and known.spec.pure


_PURE_DIALECTS = ("arith.", "math.", "vector.", "llvm.extract", "llvm.insert", "llvm.bitcast", "llvm.mlir.")
_STRUCTURE = frozenset(("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition", "gpu.func", "gpu.return"))
_NEUTRAL = frozenset(
    ("cute.alloc", "cute.shuffle", "cute.vote", "cute.warp_reduce", "cute.async_commit", "cute.async_wait")
    + ("gpu.printf", "cute.gemm_value")
)
_READS = {
    "cute.load": ("tensor",), "cute.load_tensor": ("tensor",), "cute.copy": ("src",), "cute.copy_value": ("src",),
    "cute.gemm": ("a", "b", "c"), "cute.atomic": ("tensor",), "cute.tile_load": ("tensor",),
}  # fmt: skip
_WRITES = {
    "cute.store": ("tensor",), "cute.store_tensor": ("tensor",), "cute.fill": ("tensor",), "cute.copy": ("dst",),
    "cute.gemm": ("d",), "cute.atomic": ("tensor",), "cute.tile_store": ("tensor",),
}  # fmt: skip
_WAITS = frozenset(("cute.sync_threads", "cute.barrier", "cute.sync_warp", "cute.fence"))


def may_overlap(a: ir.Value, b: ir.Value) -> bool:
    """True where two tensors may share elements."""
    spaces = {ptr_info(tensor.type).space for tensor in (a, b)}
    if len(spaces) == 2 and not ("generic" in spaces and "rmem" not in spaces):
        return False
    first, second = memories(a), memories(b)
    return not first or not second or bool(first & second)


def memories(tensor: ir.Value) -> frozenset[ir.Value]:
    """The arguments and allocations that a tensor may be a part of; empty where they are not known."""
    found = origin(tensor)
    return frozenset(_root_value(root.value) for root in found.roots or found.derived_from)


def name_of(tensor: ir.Value) -> str:
    """The tensor's name for a remark: that of the argument or allocation, in quotes."""
    found: Origin = origin(tensor)
    name = found.name
    if not name:
        root = _root_value(found.root.value) if found.root is not None else None
        name = (argument_name(root) or "") if root is not None else ""
    return (
        f"`{name}`"
        if name
        else {"smem": "shared memory", "rmem": "registers"}.get(ptr_info(tensor.type).space, "memory")
    )


def _root_value(value: ir.Value) -> ir.Value:
    """The argument or allocation under pointers, members and tensors made of it."""
    while not isinstance(value.owner, mlir.ir.Block) and value.owner.operation.name in _ADDRESSES:
        value = value.owner.operation.operands[0]
    return value


_ADDRESSES = frozenset(
    f"cute.{name}" for name in ("make_tensor", "view", "iterator", "ptr_offset", "ptr_cast", "field")
)


def overlapping(tensor: ir.Value, others: Iterable[ir.Value]) -> ir.Value | None:
    """The first of `others` that may share elements with `tensor`."""
    return next((other for other in others if may_overlap(tensor, other)), None)
