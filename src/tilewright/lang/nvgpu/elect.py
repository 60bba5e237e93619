"""One thread of a warp does what the whole warp comes to: bulk copies, and arrivals that count once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import text_of
from tilewright.lang.control.generate import run_if
from tilewright.lang.nvgpu.threads import elected

if TYPE_CHECKING:
    from mlir import ir


def one_thread_of_warp() -> AbstractContextManager[None]:
    """A block that one thread of the warp runs; inside `with elect_one()` it is the thread that is there."""
    return nullcontext() if _is_elected() else run_if(elected())


def _is_elected() -> bool:
    """Whether a branch around the code built now is taken by an elected thread."""
    parent = mlir.ir.InsertionPoint.current.block.owner.operation
    while parent.name not in ("gpu.func", "func.func", "builtin.module"):
        if parent.name == "scf.if" and _asks_elect(parent.operands[0]):
            return True
        parent = parent.parent.operation
    return False


def _asks_elect(condition: ir.Value) -> bool:
    compared = condition.owner
    if getattr(compared, "name", "") != "arith.cmpi":
        return False
    asked = compared.operands[0].owner
    return getattr(asked, "name", "") == "cute.ptx_value" and "elect.sync" in text_of(asked, "text")
