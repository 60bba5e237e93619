"""Pass Name: insert-dst
Purpose: Put the life cycle of the DST registers around what is computed.

Input Expectations:
- A compute kernel whose tile operations write DST, and whose results leave it by tt.pack

Output Guarantees:
- tt.dst.acquire < operations < tt.dst.commit < tt.dst.wait < tt.pack < tt.dst.release on every path
- Room in the packed circular buffer is reserved before, and pushed after
- The tiles of DST that are used fit into it: an error names the user's line

Example:
    Before: for k in range(8): tt.mm.mma(cb_a, cb_b, 0, 0, 0)
            tt.pack(0, cb_c)
    After:  tt.dst.acquire()
            for k in range(8): tt.mm.mma(cb_a, cb_b, 0, 0, 0)
            tt.dst.commit()
            tt.cb.reserve_back(cb_c, 1)
            tt.dst.wait()
            tt.pack(0, cb_c)
            tt.dst.release()
            tt.cb.push_back(cb_c, 1)

Testing:
    pytest tests/tenstorrent/test_insert_dst.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passes._common import evaluate
from tilewright.targets.tenstorrent.passes.roles import is_dst_operation
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Expr,
    For,
    IfThenElse,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    seq,
    statements,
)
from tilewright.targets.tenstorrent.tir.visitors import called, calls, walk

_BETWEEN_PACKS = ("tt.pack", "tt.pack.reconfig", "tt.pack.relu")


@func_pass(opt_level=0)
def InsertDst(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
    """Acquire, commit, wait, release."""
    if func.attrs.get("tt.kernel_role") != "compute":
        return func
    _check_capacity(func, ctx)
    made, open_ = _managed(statements(func.body))
    if open_:
        raise _unpacked(func)
    return func.with_body(seq(made)).with_attr("tt.dst", {"mode": ctx.options.dst, "capacity": ctx.dst_capacity})


def _managed(items: Sequence[Stmt]) -> tuple[list[Stmt], bool]:
    """Statements with every group of DST managed; True where the last group is not packed yet."""
    made: list[Stmt] = []
    begin: int | None = None
    place = 0
    while place < len(items):
        item = items[place]
        if isinstance(item, For | IfThenElse):
            item, opens = _inside(item)
        else:
            found = called(item)
            opens = found is not None and is_dst_operation(found)
        if opens and begin is None:
            begin = len(made)
        if begin is None or not _is_pack(items[place]):
            made.append(item)
            place += 1
            continue
        end = place
        while end < len(items) and _name(items[end]) in _BETWEEN_PACKS:
            end += 1
        made[begin:] = _group(made[begin:], items[place:end])
        begin, place = None, end
    return made, begin is not None


def _inside(item: Stmt) -> tuple[Stmt, bool]:
    """A loop or branch with its groups managed; True where DST is in use at its end."""
    match item:
        case For():
            body, opens = _managed(statements(item.body))
            return replace(item, body=seq(body)), opens
        case IfThenElse():
            then, first = _managed(statements(item.then_case))
            other, second = _managed(statements(item.else_case))
            return replace(item, then_case=seq(then), else_case=seq(other) if other else None), first or second
    return item, False


def _group(compute: Sequence[Stmt], packs: Sequence[Stmt]) -> list[Stmt]:
    """One life of DST."""
    packed: Counter[Var] = Counter(
        found.args[1]  # type: ignore[misc]
        for item in packs
        if (found := called(item)) is not None and found.op.name == "tt.pack"
    )
    return [
        evaluate("tt.dst.acquire"),
        *compute,
        evaluate("tt.dst.commit"),
        *(evaluate("tt.cb.reserve_back", buffer, count) for buffer, count in packed.items()),
        evaluate("tt.dst.wait"),
        *packs,
        evaluate("tt.dst.release"),
        *(evaluate("tt.cb.push_back", buffer, count) for buffer, count in packed.items()),
    ]


def _name(item: Stmt) -> str:
    found = called(item)
    return found.op.name if found is not None else ""


def _is_pack(item: Stmt) -> bool:
    return _name(item) in _BETWEEN_PACKS


def _check_capacity(func: PrimFunc, ctx: PassContext) -> None:
    """Refuse more tiles of DST than there are."""
    name = func.attrs.get("tt.kernel", func.name)
    extents = {item.loop_var: item.extent for item in walk(func.body) if isinstance(item, For)}
    for found in calls(func.body):
        if not is_dst_operation(found) and found.op.name != "tt.pack":
            continue
        most = max((_most(item, extents) for item in _dst_operands(found)), default=0)
        if most >= ctx.dst_capacity:
            raise PassError(
                f"{name} keeps {most + 1} or more tiles in DST, which holds {ctx.dst_capacity}",
                location=found.location,
                values={"DST": f"{ctx.options.dst}, {ctx.dst_capacity} tiles of 32 x 32"},
                hint="sum into a smaller tile, such as 32 x 64, or accumulate in bf16: --dst bf16",
            )


def _dst_operands(found: Call) -> Sequence[Expr]:
    if found.op.name == "tt.pack":
        return found.args[:1]
    return found.args if found.op.name.startswith("tt.sfpu") else found.args[-1:]


def _most(index: Expr, extents: dict[Any, Expr]) -> int:
    """The greatest number that an index takes."""
    if isinstance(index, IntImm):
        return index.value
    if isinstance(index, Var):
        extent = extents.get(index)
        return extent.value - 1 if isinstance(extent, IntImm) else 0
    if isinstance(index, Call):
        parts = [_most(item, extents) for item in index.args]
        return parts[0] * parts[1] if index.op.name == "arith.muli" else sum(parts)
    return 0


def _unpacked(func: PrimFunc) -> PassError:
    last = [found for found in calls(func.body) if is_dst_operation(found)][-1]
    return PassError(
        f"{func.name} computes a tile that no tt.pack takes out of DST",
        location=last.location,
        hint="pack it into a circular buffer after the loop that computes it",
    )


known(InsertDst)
