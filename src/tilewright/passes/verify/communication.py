"""Verifiers of collectives: types and operations of the values, scopes, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.collectives import CHOSEN_SCOPES, LOGIC, OPS, TYPES
from tilewright.base.dtypes import TABLE
from tilewright.passes.verify.operation import Invalid, OpSummary
from tilewright.passes.verify.table import verifies

if TYPE_CHECKING:
    from mlir import ir

MODES = ("auto", "push", "pull", "first")
_MOST_THREADS = 1024


@verifies("allreduce")
def _allreduce(op: OpSummary) -> None:
    names = _values(op)
    _operations(op, names)
    mode, scope = op.one_of("mode", MODES), _scope(op)
    if mode in ("push", "pull") and scope != "cluster":
        raise Invalid("push and pull are ways through a cluster", mode=mode, scope=scope)


@verifies("broadcast")
def _broadcast(op: OpSummary) -> None:
    _values(op)
    scope, source, group = _scope(op), op.number("source"), op.number("group")
    if source < 0 or (group and scope in ("warp", "block") and source >= group):
        raise Invalid("the source of a broadcast is one of its threads", source=source, group=group)


@verifies("scan")
def _scan(op: OpSummary) -> None:
    _operations(op, _values(op))
    if _scope(op) == "grid":
        raise Invalid("there is no scan over a grid", scope="grid")
    if op.number("exclusive") not in (0, 1):
        raise Invalid("exclusive is 0 or 1", exclusive=op.number("exclusive"))


def _values(op: OpSummary) -> list[str]:
    """The types' names, which fit the values; the results are of their types."""
    values, names = op.groups[0], op.text("types").split(",")
    if not values or list(values) != list(op.results):
        raise Invalid(
            "each value has a result of its type",
            values=[str(item) for item in values],
            results=[str(item) for item in op.results],
        )
    if len(names) != len(values):
        raise Invalid("types names the type of each value", types=op.text("types"), values=len(values))
    for name, type_ in zip(names, values, strict=True):
        _check_type(name, type_)
    if len(op.groups) > 1 and len(op.groups[1]) > 1:
        raise Invalid("a collective has one workspace", workspaces=len(op.groups[1]))
    return names


def _check_type(name: str, type_: ir.Type) -> None:
    if name not in TYPES:
        raise Invalid(f"collectives take no {name!r}", f"types: {', '.join(TYPES)}")
    known = TABLE[name]
    if str(type_) != known.mlir and not _holds(str(type_), known.width):
        raise Invalid("types does not fit the value", types=name, value=type_)


def _holds(type_: str, width: int) -> bool:
    """True where values of several types travel together, as bits in integers."""
    return (type_ == "i32" and width <= 32) or type_ == "i64"


def _operations(op: OpSummary, names: list[str]) -> None:
    ops = op.text("op").split(",")
    if len(ops) != len(names):
        raise Invalid("op names an operation for each value", op=op.text("op"), values=len(names))
    for kind, name in zip(ops, names, strict=True):
        if kind not in OPS:
            raise Invalid(f"no collective folds with {kind!r}", f"op is one of {', '.join(OPS)}")
        if (kind in LOGIC) < (name == "bool") or (kind in LOGIC and TABLE[name].kind == "f"):
            raise Invalid(f"{kind} of a {name}", "and, or, xor take integers and Booleans, the others all but Booleans")


def _scope(op: OpSummary) -> str:
    scope, group = op.one_of("scope", CHOSEN_SCOPES), op.number("group")
    if group < 0:
        raise Invalid("a group has threads, 0 stands for all of the scope", group=group)
    if scope == "warp" and group not in (0, 1, 2, 4, 8, 16, 32):
        raise Invalid("groups of a warp have 1, 2, 4, 8, 16 or 32 lanes", group=group)
    if scope == "block" and group and (group % 32 or group > _MOST_THREADS):
        raise Invalid("groups of a block are whole warps", group=group)
    if scope in ("cluster", "grid", "thread") and group:
        raise Invalid(f"scope {scope} has no groups", group=group)
    return scope
