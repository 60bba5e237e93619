"""Which role does an operation: reading, computing or writing. Roles come from operations, never from names."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.targets.tenstorrent.tir.nodes import Call, Stmt, Var
from tilewright.targets.tenstorrent.tir.visitors import calls

ROLES = ("reader", "compute", "writer")
_FILLS = ("tt.fill", "tt.fill_scaler")
_OPERANDS = {
    "tt.mm.mma": 2, "tt.fpu.add": 2, "tt.fpu.sub": 2, "tt.fpu.mul": 2, "tt.reduce": 2, "tt.copy": 1, "tt.bcast": 1,
}  # fmt: skip
"""How many circular buffers an operation of the engines reads: its first operands."""


def is_dst_operation(found: Call) -> bool:
    """True of operations that write DST."""
    return found.op.name in _OPERANDS or found.op.name in ("tt.sfpu.unary", "tt.sfpu.binary")


def role_of(found: Call) -> str:
    """The role that an operation belongs to; "" for one that all roles may have."""
    name = found.op.name
    if name == "tt.read_to_cb" or name in _FILLS:
        return "reader"
    if name == "tt.write_from_cb":
        return "writer"
    return "compute" if is_dst_operation(found) or name in ("tt.pack", "tt.consume") else ""


def read_buffers(found: Call) -> tuple[Var, ...]:
    """The circular buffers that an operation of the engines reads."""
    return tuple(item for item in found.args[: _OPERANDS.get(found.op.name, 0)] if isinstance(item, Var))


def produced(found: Call) -> Var | None:
    """The circular buffer that an operation puts tiles into."""
    place = {"tt.read_to_cb": 0, "tt.fill": 0, "tt.fill_scaler": 0, "tt.pack": 1}.get(found.op.name)
    item = None if place is None else found.args[place]
    return item if isinstance(item, Var) else None


def consumed(found: Call) -> tuple[Var, ...]:
    """The circular buffers that an operation takes tiles from."""
    if found.op.name == "tt.write_from_cb":
        return tuple(item for item in found.args[:1] if isinstance(item, Var))
    return read_buffers(found)


def transfers(body: Stmt) -> Iterator[tuple[str, str, Var, Call]]:
    """Each meeting of an operation with a circular buffer: the role, `produces` or `consumes`, the buffer, the call."""
    for found in calls(body):
        target = produced(found)
        if target is not None:
            yield role_of(found), "produces", target, found
        for source in consumed(found):
            yield role_of(found), "consumes", source, found
