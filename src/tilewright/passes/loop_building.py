"""Building loops and the arithmetic of their bounds at the insertion point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.passes.loop_bodies import Body

if TYPE_CHECKING:
    from mlir import ir


def for_loop(
    body: Body,
    bounds: tuple[ir.Value, ir.Value, ir.Value],
    carried: list[ir.Value],
    inside: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    attributes: Mapping[str, ir.Attribute],
) -> list[ir.Value]:
    """What a loop like that of `body` ends with; `inside(index, carried)` builds its body and gives what it yields."""
    types_ = [value.type for value in carried]
    made = build.emit("scf.for", types_, [*bounds, *carried], attributes, regions=1)
    kinds = [body.index.type, *types_]
    block = made.regions[0].blocks.append(*kinds, arg_locs=[body.loop.location] * len(kinds))
    with mlir.ir.InsertionPoint(block):
        index, *values = list(block.arguments)
        build.emit("scf.yield", (), inside(index, values))
    return list(made.results)


def less(loop: ir.Operation) -> str:
    """The predicate by which an `scf.for` compares its index with the upper bound."""
    return "ult" if "unsignedCmp" in loop.attributes else "slt"


_PREDICATES = {"slt": 2, "ult": 6, "ugt": 8, "eq": 0}


def compare(predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.cmpi`: slt, ult, ugt or eq."""
    return build.value("arith.cmpi", types.parse("i1"), (a, b), {"predicate": build.i64(_PREDICATES[predicate])})


def binary(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.<name>` of two numbers of one type."""
    return build.value(f"arith.{name}", a.type, (a, b))
