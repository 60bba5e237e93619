"""Pass Name: smem-to-cb
Purpose: Give each load and store a circular buffer, through which the block's tiles come and go.

Input Expectations:
- Tiles are loaded by cute.tile_load and stored by cute.tile_store; tensors have tt.padded_shape

Output Guarantees:
- A tt.alloc_cb at the top for each load and store; tt.read_to_cb and tt.write_from_cb in their places, whose
  coordinates count tiles of 32 x 32
- No protocol operation: what waits for what is for later passes

Example:
    Before: v1 = cute.tile_load(a, i, j)                                          (a tile of 64 x 32)
    After:  cb_a = tt.alloc_cb(format='bf16', tiles=2, name='a')
            v1 = tt.read_to_cb(cb_a, a, arith.muli(i, 2), j, rows=2, cols=1)

Testing:
    pytest tests/tenstorrent/test_smem_to_cb.py
"""

from __future__ import annotations

from typing import Any

from tilewright.hw.tensix import TILE
from tilewright.targets.tenstorrent.passes._common import Names, evaluate, let, mul
from tilewright.targets.tenstorrent.passes.infer_layout import tile_element, tile_extents
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import Call, Evaluate, LetStmt, PrimFunc, Stmt, Var, call, seq
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called

CB = "!tt.cb"


def blocks(dtype: str) -> tuple[int, int]:
    """Rows and columns of 32 x 32 tiles in a tile of the language."""
    rows, columns = (max(extent // TILE, 1) for extent in tile_extents(dtype))
    return rows, columns


class _Transfers(IRMutator):
    """Loads and stores through circular buffers; `allocations` are the new ones."""

    def __init__(self, func: PrimFunc) -> None:
        self.names = Names(func)
        self.allocations: list[Stmt] = []

    def visit_let(self, op: LetStmt) -> Stmt | None:
        found = called(op)
        if found is None or found.op.name != "cute.tile_load":
            return super().visit_let(op)
        tensor, row, column = found.args
        assert isinstance(tensor, Var)
        rows, cols = blocks(op.var.dtype)
        buffer = self.buffer(tensor.name, op.var.dtype, "input", found)
        made = call(
            "tt.read_to_cb", buffer, tensor, mul(row, rows), mul(column, cols),
            dtype=op.var.dtype, location=op.location, rows=rows, cols=cols,
        )  # fmt: skip
        return LetStmt(op.var, made, op.location)

    def visit_evaluate(self, op: Evaluate) -> Stmt | None:
        found = called(op)
        if found is None or found.op.name != "cute.tile_store":
            return super().visit_evaluate(op)
        value, tensor, row, column = found.args
        assert isinstance(tensor, Var)
        stored = value.dtype  # type: ignore[attr-defined]
        rows, cols = blocks(stored)
        buffer = self.buffer(tensor.name, stored, "output", found)
        return evaluate(
            "tt.write_from_cb", buffer, tensor, mul(row, rows), mul(column, cols), value,
            location=op.location, rows=rows, cols=cols,
        )  # fmt: skip

    def buffer(self, name: str, dtype: str, kind: str, at: Call) -> Var:
        """A new circular buffer for tiles of a type."""
        rows, cols = blocks(dtype)
        variable = self.names.var(f"cb_{name}", CB)
        self.allocations.append(
            let(variable, "tt.alloc_cb", location=at.location,
                format=tile_element(dtype), tiles=rows * cols, name=name, kind=kind)
        )  # fmt: skip
        return variable


@func_pass(opt_level=0)
def SmemToCb(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Put circular buffers between memory and what is computed."""
    transfers = _Transfers(func)
    body = transfers.visit_body(func.body)
    return func.with_body(seq([*transfers.allocations, body]))


known(SmemToCb)
