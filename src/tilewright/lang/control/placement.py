"""Where device code is built: inside a loop, and at the beginning of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.context import current

if TYPE_CHECKING:
    from mlir import ir

_LOOPS = ("scf.for", "scf.while", "scf.parallel")


def _around() -> Iterator[ir.Operation]:
    """The operations around the place where code is built, from the inside out, up to the kernel."""
    op = mlir.ir.InsertionPoint.current.block.owner.operation
    while op is not None and op.name not in ("gpu.func", "func.func"):
        yield op
        op = op.parent.operation if op.parent is not None else None


def in_loop() -> bool:
    """True where code built now may run more than once in a thread."""
    return any(op.name in _LOOPS for op in _around())


def at_top() -> bool:
    """True where code built now is in no loop or branch: each thread runs it once."""
    return not any(True for _ in _around())


def ends() -> tuple[list[ir.Operation], list[ir.Operation]]:
    """The operations of the kernel's body: those before the place where code is built, and all."""
    around = list(_around())
    body = around[-1].block if around else mlir.ir.InsertionPoint.current.block
    every = [op.operation for op in body.operations]
    stop = around[-1] if around else mlir.ir.InsertionPoint.current.ref_operation
    if stop is None:
        return every, every
    place = next(number for number, op in enumerate(every) if op == stop.operation)
    return every[:place], every


@contextmanager
def kernel_entry() -> Iterator[None]:
    """Build at the beginning of the kernel, before all that is there: what is made there may be used everywhere.

    Only values made inside the block, and arguments of the kernel, may be used in it.
    """
    body = mlir.ir.InsertionPoint.current.block
    for op in _around():
        body = op.block
    session = current()
    # What was found again so far lies behind; what is made here is not to be found by code that comes before it.
    before, session.appending = session.appending, False
    try:
        with mlir.ir.InsertionPoint.at_block_begin(body):
            yield
    finally:
        session.appending = before
