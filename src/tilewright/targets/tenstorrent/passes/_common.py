"""What passes share: finding and building patterns, and arithmetic of indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.errors import PassError
from tilewright.base.location import SourceLocation
from tilewright.hw.tensix import CIRCULAR_BUFFERS
from tilewright.targets.tenstorrent.tir.frozen import thaw
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    as_expr,
    call,
    seq,
    statements,
)
from tilewright.targets.tenstorrent.tir.visitors import StmtVisitor, called, calls, used_vars, walk

# What a developer of a pass reaches for.


def find_intrinsic_calls(func: PrimFunc, intrinsic_name: str) -> list[Stmt]:
    """The statements that call an operation, or an extern function, of that name."""
    return [
        item
        for item in walk(func.body)
        if isinstance(item, Evaluate | LetStmt)
        and isinstance(item.value, Call)
        and item.value.op.name == intrinsic_name
    ]


def build_protocol_sequence(cb: Expr | str, tile: Expr | int, buffer: Expr | str = "buffer") -> SeqStmt:
    """The reader's protocol for one tile: reserve, read into the reserved place, wait for the data, push."""
    address = Var("l1_addr")
    return SeqStmt((
        Evaluate(call("tt.cb.reserve_back", as_expr(cb), 1)),
        LetStmt(address, call("tt.cb.write_ptr", as_expr(cb), dtype="i32")),
        Evaluate(call("tt.noc.read_tile", as_expr(buffer), as_expr(tile), address)),
        Evaluate(call("tt.noc.read_barrier")),
        Evaluate(call("tt.cb.push_back", as_expr(cb), 1)),
    ))  # fmt: skip


def get_buffer_info(func: PrimFunc, buffer_name: str) -> dict[str, Any] | None:
    """Shape, dtype, strides and attributes of a buffer; None where there is none of that name."""
    buffer = func.buffer(buffer_name)
    if buffer is None:
        return None
    return {
        "shape": buffer.shape,
        "dtype": buffer.dtype,
        "strides": buffer.strides,
        "attrs": thaw(buffer.attrs),
    }


class _LoopAnalyzer(StmtVisitor):
    def __init__(self) -> None:
        self.loops: list[dict[str, Any]] = []
        self.depth = 0

    def visit_for(self, op: For) -> None:
        self.loops.append({
            "var": op.loop_var.name, "extent": process_value(op.extent), "depth": self.depth, "kind": op.kind
        })  # fmt: skip
        self.depth += 1
        super().visit_for(op)
        self.depth -= 1


def analyze_loops(func: PrimFunc) -> list[dict[str, Any]]:
    """Variable, extent, depth and kind of each loop, outer ones first."""
    analyzer = _LoopAnalyzer()
    analyzer.visit(func.body)
    return analyzer.loops


def debug_print_ir(stmt: Stmt, indent: int = 0) -> None:
    """Print the structure of a statement."""
    prefix = "  " * indent
    if isinstance(stmt, SeqStmt):
        print(f"{prefix}SeqStmt:")
        for item in stmt.seq:
            debug_print_ir(item, indent + 1)
    elif isinstance(stmt, For):
        print(f"{prefix}For {stmt.loop_var} in {stmt.extent}:")
        debug_print_ir(stmt.body, indent + 1)
    elif isinstance(stmt, IfThenElse):
        print(f"{prefix}If {stmt.condition}:")
        debug_print_ir(stmt.then_case, indent + 1)
        if stmt.else_case is not None:
            debug_print_ir(stmt.else_case, indent + 1)
    elif isinstance(stmt, Evaluate):
        print(f"{prefix}Evaluate: {stmt.value}")
    else:
        print(f"{prefix}{type(stmt).__name__}: {stmt}")


def validate_cb_ids(func: PrimFunc, limit: int = CIRCULAR_BUFFERS) -> bool:
    """Whether the circular buffers that a function allocates have ids below the limit.

    Raises:
        PassError: one has not.
    """
    found = {item.attrs["id"]: item.location for item in calls(func.body, "tt.alloc_cb") if "id" in item.attrs}
    wrong = {number: place for number, place in found.items() if not 0 <= number < limit}
    if wrong:
        raise PassError(
            f"CB IDs exceed limit: {sorted(wrong)}",
            location=next(iter(wrong.values())),
            values={"function": func.name, "limit": limit},
            hint=f"a core has {limit} circular buffers, 0 to {limit - 1}: load fewer tensors in one kernel",
        )
    return True


def process_value(value: Any) -> Any:
    """A Python value of an immediate, the name of a variable, the text of anything else."""
    if isinstance(value, IntImm | FloatImm | StringImm):
        return value.value
    return value.name if isinstance(value, Var) else str(value)


# Arithmetic of indices, which folds constants.


def add(a: Expr, b: Expr) -> Expr:
    """`a + b`."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(a.value + b.value)
    if isinstance(a, IntImm) and a.value == 0:
        return b
    return a if isinstance(b, IntImm) and b.value == 0 else call("arith.addi", a, b, dtype="i32")


def mul(a: Expr, b: Expr | int) -> Expr:
    """`a * b`."""
    b = as_expr(b)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(a.value * b.value)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm) and one.value in (0, 1):
            return other if one.value else IntImm(0)
    return call("arith.muli", a, b, dtype="i32")


def div(a: Expr, b: int) -> Expr:
    """`a // b` of numbers that are not negative."""
    return a if b == 1 else call("arith.divui", a, b, dtype="i32")


def rem(a: Expr, b: int) -> Expr:
    """`a % b` of numbers that are not negative."""
    return IntImm(0) if b == 1 else call("arith.remui", a, b, dtype="i32")


class Names:
    """New variables, whose names nothing in the function has."""

    def __init__(self, func: PrimFunc) -> None:
        self.taken = {item.name for item in func.params} | {item.name for item in used_vars(func.body)}
        for item in walk(func.body):
            if isinstance(item, LetStmt):
                self.taken.add(item.var.name)
            elif isinstance(item, For):
                self.taken |= {item.loop_var.name, *(var.name for var in item.results)}

    def var(self, name: str, dtype: str = "i32") -> Var:
        """A variable called `name`, or `name_1` and so on where that is taken."""
        found, number = name, 0
        while found in self.taken:
            number += 1
            found = f"{name}_{number}"
        self.taken.add(found)
        return Var(found, dtype)


def over_tiles(names: Names, extents: Sequence[int], body: Callable[..., Sequence[Stmt]]) -> list[Stmt]:
    """Loops over the tiles of a block, one for each extent above 1; `body` gets an index for each extent."""

    def build(place: int, indices: list[Expr]) -> list[Stmt]:
        if place == len(extents):
            return list(body(*indices))
        if extents[place] == 1:
            return build(place + 1, [*indices, IntImm(0)])
        variable = names.var("t")
        inner = build(place + 1, [*indices, variable])
        return [For(variable, IntImm(extents[place]), seq(inner), "tiles")]

    return build(0, [])


def evaluate(op: str, /, *args: Any, location: SourceLocation | None = None, **attrs: Any) -> Evaluate:
    """A statement that calls an operation for its effect."""
    return Evaluate(call(op, *args, location=location, **attrs), location)


def let(var: Var, op: str, /, *args: Any, location: SourceLocation | None = None, **attrs: Any) -> LetStmt:
    """A statement that names the result of an operation."""
    return LetStmt(var, call(op, *args, dtype=var.dtype, location=location, **attrs), location)


_PURE = (
    "arith.", "math.", "cute.index", "cute.tile_load", "cute.tile_reduce", "cute.tile_dot", "cute.tile_broadcast",
    "cute.tile_full", "tt.runtime_arg", "tt.alloc_cb", "tt.read_to_cb",
)  # fmt: skip
"""How the names of operations begin whose result is all that they are for."""


def prune(body: Stmt) -> SeqStmt:
    """The statements without definitions that nothing uses, and without loops and branches that do nothing."""
    kept, needed = _prune(statements(body), set())
    del needed
    return SeqStmt(tuple(kept))


def _prune(items: Sequence[Stmt], live: set[Var]) -> tuple[list[Stmt], set[Var]]:
    kept: list[Stmt] = []
    for item in reversed(items):
        made: Stmt | None = item
        match item:
            case LetStmt():
                expression = called(item)
                droppable = expression is None or expression.op.name.startswith(_PURE)
                made = None if droppable and item.var not in live else item
            case For() if not item.carried:
                inner, _ = _prune(statements(item.body), set(live))
                made = For(item.loop_var, item.extent, SeqStmt(tuple(inner)), item.kind, (), (), item.location)
                made = made if inner else None
            case For():
                inner, _ = _prune(statements(item.body), set(live))
                made = For(
                    item.loop_var,
                    item.extent,
                    SeqStmt(tuple(inner)),
                    item.kind,
                    item.carried,
                    item.results,
                    item.location,
                )
                alive = any(var in live for var in item.results) or len(inner) > 1
                made = made if alive else None
            case IfThenElse():
                then, _ = _prune(statements(item.then_case), set(live))
                other, _ = _prune(statements(item.else_case), set(live))
                made = IfThenElse(
                    item.condition, SeqStmt(tuple(then)), SeqStmt(tuple(other)) if other else None, item.location
                )
                made = made if then or other else None
        if made is not None:
            kept.insert(0, made)
            live |= used_vars(made)
    return kept, live
