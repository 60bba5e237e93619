"""Pass Name: grid-to-core
Purpose: Make of a kernel of one block a program of one core, which goes through its blocks in a loop.

Input Expectations:
- tt.work_partition

Output Guarantees:
- The body is a loop of kind `work` over `count` blocks from `start_id` on, both arguments of run time
- No index of a block or extent of the grid is left; those of threads are an error at the user's line

Example:
    Before: v0 = cute.index(name='block_idx.x')                       (a grid of 4 x 2 blocks)
    After:  for work in range(count):  v0 = arith.remui(arith.addi(start_id, work), 4)

Testing:
    pytest tests/tenstorrent/test_grid_to_core.py
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.passes._common import Names, add, div, let, prune, rem
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import Expr, For, IntImm, LetStmt, PrimFunc, SeqStmt, Stmt, Var
from tilewright.targets.tenstorrent.tir.read_mlir import refusal
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called


class _Indices(IRMutator):
    """Puts expressions in the place of indices of the launch."""

    def __init__(self, known_indices: dict[str, Expr]) -> None:
        self.known = known_indices
        self.values: dict[Var, Expr] = {}

    def visit_let(self, op: LetStmt) -> Stmt | None:
        found = called(op)
        if found is None or found.op.name != "cute.index":
            return super().visit_let(op)
        name = found.attrs["name"]
        if name not in self.known:
            raise refusal(
                f"{name}: a core has no threads", op.location, "block-level code uses block_idx and grid_dim alone"
            )
        self.values[op.var] = self.known[name]
        return None

    def visit_var(self, op: Var) -> Expr:
        return self.values.get(op, op)


@func_pass(opt_level=0)
def GridToCore(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Loop over the blocks of a core."""
    if "tt.work_partition" not in func.attrs:
        raise PassError(f"{func.name} has no tt.work_partition", hint="run the pass partition before")
    grid = func.attrs["tt.work_partition"]["grid"]
    names = Names(func)
    start, count, work = names.var("start_id"), names.var("count"), names.var("work")
    block = names.var("block")
    known_indices: dict[str, Expr] = {
        "block_idx.x": rem(block, grid[0]) if grid[1] * grid[2] > 1 else block,
        "block_idx.y": rem(div(block, grid[0]), grid[1]) if grid[2] > 1 else _part(block, grid[0], grid[1]),
        "block_idx.z": _part(block, grid[0] * grid[1], grid[2]),
        **{f"grid_dim.{axis}": IntImm(extent) for axis, extent in zip("xyz", grid, strict=True)},
    }
    own = LetStmt(block, add(start, work))
    body = _Indices(known_indices).visit_body(func.body)
    loop = For(work, count, SeqStmt((own, *body.seq)), "work")  # type: ignore[attr-defined]
    arguments = [let(start, "tt.runtime_arg", name="start_id"), let(count, "tt.runtime_arg", name="count")]
    return func.with_body(prune(SeqStmt((*arguments, loop))))


def _part(block: Expr, below: int, extent: int) -> Expr:
    """The coordinate along the last mode: what is left of the block's number."""
    return div(block, below) if extent > 1 else IntImm(0)


known(GridToCore)
