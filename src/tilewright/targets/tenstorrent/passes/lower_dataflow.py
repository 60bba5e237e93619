"""Pass Name: lower-dataflow
Purpose: Write the protocol of circular buffers and of the network on chip.

Input Expectations:
- The kernels of split

Output Guarantees:
- The reader reserves, reads asynchronously, waits for the data, and pushes
- The writer waits, writes asynchronously, waits for the writes, and pops
- The compute kernel waits for the tiles of each block before it uses them, and pops them after their last use

Example:
    Before: tt.read_to_cb(cb_a, a, i, j, rows=1, cols=1)
    After:  tt.cb.reserve_back(cb_a, 1)
            l1_a = tt.cb.write_ptr(cb_a)
            tt.noc.read_tile(a, arith.addi(arith.muli(i, 8), j), l1_a)
            tt.noc.read_barrier()
            tt.cb.push_back(cb_a, 1)

Testing:
    pytest tests/tenstorrent/test_lower_dataflow.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.hw.tensix import TILE
from tilewright.targets.tenstorrent.passes._common import Names, add, evaluate, let, mul, over_tiles
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    seq,
)
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called, used_vars, walk


class _Protocol(IRMutator):
    """Puts the protocol in the place of reads, writes and uses."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.names = Names(func)
        self.page_sizes = {
            item.var: int(found.attrs["page_size"])
            for item in walk(func.body)
            if isinstance(item, LetStmt) and (found := called(item)) is not None and found.op.name == "tt.alloc_cb"
        }

    def visit_evaluate(self, op: Evaluate) -> Stmt | None:
        found = called(op)
        rule = _RULES.get(found.op.name) if found is not None else None
        return seq(rule(self, found)) if rule is not None and found is not None else op

    def visit_seq(self, op: SeqStmt) -> Stmt:
        """Pops stand after the last statement that uses what was waited for."""
        pops: dict[int, list[Stmt]] = {}
        for place, item in enumerate(op.seq):
            found = called(item)
            if found is None or found.op.name != "tt.consume":
                continue
            buffer = found.args[0]
            last = max(
                (at for at in range(place + 1, len(op.seq)) if buffer in used_vars(op.seq[at])
                 and not _is_consume_of(op.seq[at], buffer)),
                default=place,
            )  # fmt: skip
            pops.setdefault(last, []).append(
                evaluate("tt.cb.pop_front", buffer, int(found.attrs["tiles"]), location=op.seq[place].location)  # type: ignore[attr-defined]
            )
        made: list[Stmt] = []
        for place, item in enumerate(op.seq):
            changed = self.visit(item)
            made += [] if changed is None else [changed]
            made += pops.get(place, [])
        return seq(made)

    def read(self, found: Call) -> list[Stmt]:
        """The reader's side of a block."""
        buffer, tensor, row, col = found.args
        count = int(found.attrs["rows"]) * int(found.attrs["cols"])
        address = self.names.var(f"l1_{tensor}")
        moved = self._each(found, tensor, row, col, buffer, lambda tile, place: evaluate(
            "tt.noc.read_tile", tensor, tile, place, location=found.location), address)  # fmt: skip
        return [
            evaluate("tt.cb.reserve_back", buffer, count, location=found.location),
            let(address, "tt.cb.write_ptr", buffer, location=found.location),
            *moved,
            evaluate("tt.noc.read_barrier", location=found.location),
            evaluate("tt.cb.push_back", buffer, count, location=found.location),
        ]

    def write(self, found: Call) -> list[Stmt]:
        """The writer's side of a block."""
        buffer, tensor, row, col = found.args
        count = int(found.attrs["rows"]) * int(found.attrs["cols"])
        address = self.names.var(f"l1_{tensor}")
        moved = self._each(found, tensor, row, col, buffer, lambda tile, place: evaluate(
            "tt.noc.write_tile", tensor, tile, place, location=found.location), address)  # fmt: skip
        return [
            evaluate("tt.cb.wait_front", buffer, count, location=found.location),
            let(address, "tt.cb.read_ptr", buffer, location=found.location),
            *moved,
            evaluate("tt.noc.write_barrier", location=found.location),
            evaluate("tt.cb.pop_front", buffer, count, location=found.location),
        ]

    def _each(
        self, found: Call, tensor: Expr, row: Expr, col: Expr, buffer: Expr, move: Any, address: Var
    ) -> Sequence[Stmt]:
        """A transfer for each tile of a block."""
        assert isinstance(tensor, Var) and isinstance(buffer, Var)
        rows, cols = int(found.attrs["rows"]), int(found.attrs["cols"])
        wide = self.func.buffer_map[tensor].attrs["tt.padded_shape"][1] // TILE
        page = self.page_sizes[buffer]

        def one(inner_row: Expr, inner_col: Expr) -> list[Stmt]:
            tile = add(mul(add(row, inner_row), wide), add(col, inner_col))
            place = add(mul(inner_row, cols), inner_col)
            return [move(tile, add(address, mul(place, page)))]

        return over_tiles(self.names, (rows, cols), one)

    def consume(self, found: Call) -> list[Stmt]:
        """The compute kernel's side: wait."""
        return [evaluate("tt.cb.wait_front", found.args[0], int(found.attrs["tiles"]), location=found.location)]

    def fill(self, found: Call) -> list[Stmt]:
        """A tile of a number, which the reader writes itself."""
        buffer, *rest = found.args
        address = self.names.var(f"l1_{buffer}")
        name = "tt.l1.fill" if found.op.name == "tt.fill" else "tt.l1.fill_scaler"
        written = call_of(name, found, (address, *rest), self._element(buffer))
        return [
            evaluate("tt.cb.reserve_back", buffer, 1),
            let(address, "tt.cb.write_ptr", buffer),
            written,
            evaluate("tt.cb.push_back", buffer, 1),
        ]

    def _element(self, buffer: Expr) -> str:
        found = next(item for item in walk(self.func.body) if isinstance(item, LetStmt) and item.var is buffer)
        allocation = called(found)
        assert allocation is not None
        return str(allocation.attrs["format"])


def call_of(name: str, found: Call, args: tuple[Expr, ...], element: str) -> Evaluate:
    """A fill of L1 at an address: of a number known while compiling, or of an argument."""
    return evaluate(name, *args, format=element, **found.attrs)


def _is_consume_of(item: Stmt, buffer: Expr) -> bool:
    found = called(item)
    return found is not None and found.op.name == "tt.consume" and found.args[0] is buffer


_RULES = {
    "tt.read_to_cb": _Protocol.read,
    "tt.write_from_cb": _Protocol.write,
    "tt.consume": _Protocol.consume,
    "tt.fill": _Protocol.fill,
    "tt.fill_scaler": _Protocol.fill,
}


@func_pass(opt_level=0)
def LowerDataflow(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Write the protocol."""
    return func.with_body(_Protocol(func).visit_body(func.body))


known(LowerDataflow)
