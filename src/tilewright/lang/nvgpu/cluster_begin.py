"""The meeting of a cluster's blocks at the beginning of a kernel, before one writes into another's shared memory.

    entry of the kernel   what others may write to is made ready; cluster_arrive_relaxed
    ...                   loads are on their way meanwhile
    first use             cluster_wait

One meeting serves all that is made ready. Where the first use is in a branch or loop, or the kernel uses the cluster's
barrier itself in between, the wait follows the arrival at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tilewright.ir import build, mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.walk import operations
from tilewright.lang.control.placement import at_top, ends, kernel_entry
from tilewright.lang.nvgpu.threads import cluster_arrive_relaxed, cluster_wait

if TYPE_CHECKING:
    from mlir import ir

T = TypeVar("T")
_MARK = "tilewright.cluster_begin"  # of the arrival and of the wait


def ready_for_cluster(prepare: Callable[[], T]) -> T:
    """Call `prepare` at the kernel's entry; code after this may use what it gives in all blocks of the cluster."""
    before, body = ends()
    marked = [op for op in body if _MARK in op.attributes]
    with kernel_entry():
        made = prepare()
        if not marked:
            _mark(cluster_arrive_relaxed)
    if marked:
        _wait_before(before, marked[0], marked[1], list(body))
    elif at_top() and not any(map(_is_barrier, before)):
        _mark(cluster_wait)
    else:
        arrival = next(op for op in ends()[1] if _MARK in op.attributes)
        with mlir.ir.InsertionPoint.after(arrival):
            _mark(cluster_wait)
    return made


def _mark(instruction: Callable[[], None]) -> None:
    instruction()
    last = _last_built()
    last.attributes[_MARK] = build.attribute("unit")


def _last_built() -> ir.Operation:
    point = mlir.ir.InsertionPoint.current
    found = list(point.block.operations)
    if point.ref_operation is None:
        return found[-1].operation
    place = next(number for number, op in enumerate(found) if op.operation == point.ref_operation.operation)
    return found[place - 1].operation


def _wait_before(
    before: list[ir.Operation], arrival: ir.Operation, wait: ir.Operation, body: list[ir.Operation]
) -> None:
    """Let the wait that is there come before the code built now, if it does not yet."""
    if not any(op == wait for op in before):
        wait.move_after(arrival)


def _is_barrier(op: ir.Operation) -> bool:
    """True of an operation that uses the cluster's barrier, or has one inside."""
    return any(
        inner.name.startswith("cute.ptx") and "barrier.cluster" in text_of(inner, "text") for inner in operations(op)
    )
