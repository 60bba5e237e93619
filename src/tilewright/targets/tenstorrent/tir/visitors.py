"""Walking functions: `StmtVisitor` looks, `IRMutator` makes a changed copy.

A subclass overrides `visit_evaluate`, `visit_let`, `visit_for`, `visit_if`, `visit_yield`, `visit_seq`, and for
expressions `visit_call` and `visit_var`. An override that handles a node with children calls `super()`; a `StmtVisitor`
that forgets to is an error, which names the method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Var,
    Yield,
    seq,
    statements,
)

_METHODS = {
    Evaluate: "visit_evaluate",
    LetStmt: "visit_let",
    For: "visit_for",
    IfThenElse: "visit_if",
    Yield: "visit_yield",
    SeqStmt: "visit_seq",
    Call: "visit_call",
    Var: "visit_var",
}


class _Visitor:
    """What visitors and mutators share: finding the method of a node."""

    def __init__(self) -> None:
        """A subclass with an `__init__` may call this or not."""

    def visit(self, node: Any) -> Any:
        """Visit a statement or expression."""
        if node is None:
            return None
        name = _METHODS.get(type(node))
        return getattr(self, name)(node) if name is not None else self.visit_leaf(node)

    def visit_leaf(self, node: Any) -> Any:
        """A constant."""
        return node


class StmtVisitor(_Visitor):
    """Looks at every node, each before its children."""

    def visit(self, node: Any) -> Any:
        """Visit a statement or expression; raises PassError where an override leaves its children out."""
        seen = self.__dict__.setdefault("_seen", set())
        seen.add(id(node))
        result = super().visit(node)
        for child in children(node):
            if id(child) not in seen and isinstance(child, Stmt):
                name = _METHODS[type(node)]
                raise PassError(
                    f"{type(self).__name__}.{name} does not visit the statements inside",
                    values={"node": str(node).splitlines()[0], "not visited": str(child).splitlines()[0]},
                    hint=f"end it with super().{name}(op)",
                )
        return result

    def _children(self, node: Any) -> None:
        for child in children(node):
            self.visit(child)

    visit_evaluate = visit_let = visit_for = visit_if = visit_yield = visit_seq = visit_call = _children

    def visit_var(self, op: Var) -> None:
        """A use of a variable."""


class IRMutator(_Visitor):
    """Makes a copy in which nodes are replaced: a method gives what stands in the place of its node.

    For a statement it may give None, which leaves it out, or several statements as a `SeqStmt`.
    """

    def visit_evaluate(self, op: Evaluate) -> Stmt | None:
        return replace(op, value=self.visit(op.value))

    def visit_let(self, op: LetStmt) -> Stmt | None:
        return replace(op, value=self.visit(op.value))

    def visit_for(self, op: For) -> Stmt | None:
        return replace(
            op,
            extent=self.visit(op.extent),
            carried=tuple((var, self.visit(start)) for var, start in op.carried),
            body=self.visit_body(op.body),
        )

    def visit_if(self, op: IfThenElse) -> Stmt | None:
        return replace(
            op,
            condition=self.visit(op.condition),
            then_case=self.visit_body(op.then_case),
            else_case=None if op.else_case is None else self.visit_body(op.else_case),
        )

    def visit_yield(self, op: Yield) -> Stmt | None:
        return Yield(tuple(map(self.visit, op.values)))

    def visit_seq(self, op: SeqStmt) -> Stmt:
        found = [self.visit(item) for item in op.seq]
        return seq([item for item in found if item is not None])

    def visit_body(self, op: Stmt) -> Stmt:
        """A body, which may become empty."""
        made = self.visit(op)
        return made if made is not None else SeqStmt()

    def visit_call(self, op: Call) -> Expr:
        return op.with_args(map(self.visit, op.args))

    def visit_var(self, op: Var) -> Expr:
        return op


class Substitution(IRMutator):
    """Puts expressions in the place of variables."""

    def __init__(self, values: dict[Var, Expr]) -> None:
        self.values = values

    def visit_var(self, op: Var) -> Expr:
        return self.values.get(op, op)


def children(node: Any) -> list[Any]:
    """The statements and expressions right inside a node."""
    match node:
        case Evaluate(value=value) | LetStmt(value=value):
            return [value]
        case For():
            return [node.extent, *(start for _, start in node.carried), node.body]
        case IfThenElse():
            return [node.condition, node.then_case, *([node.else_case] if node.else_case is not None else [])]
        case Yield():
            return list(node.values)
        case SeqStmt():
            return list(node.seq)
        case Call():
            return list(node.args)
    return []


def walk(node: Any) -> Iterator[Any]:
    """A node and all inside it, each before its children."""
    yield node
    for child in children(node):
        yield from walk(child)


def calls(node: Any, *names: str) -> list[Call]:
    """The calls inside a node, of operations of these names where some are given."""
    return [item for item in walk(node) if isinstance(item, Call) and (not names or item.op.name in names)]


def called(stmt: Stmt) -> Call | None:
    """The call that a statement evaluates or gives a name to."""
    value = stmt.value if isinstance(stmt, Evaluate | LetStmt) else None
    return value if isinstance(value, Call) else None


def used_vars(node: Any) -> set[Var]:
    """The variables that are used inside a node."""
    return {item for item in walk(node) if isinstance(item, Var)}


def defined_vars(stmt: Stmt) -> Iterator[Var]:
    """The variables that statements inside a statement define."""
    for item in walk(stmt):
        if isinstance(item, LetStmt):
            yield item.var
        elif isinstance(item, For):
            yield item.loop_var
            yield from (var for var, _ in item.carried)
            yield from item.results


__all__ = [
    "IRMutator", "StmtVisitor", "Substitution", "called", "calls", "children", "defined_vars", "statements",
    "used_vars", "walk",
]  # fmt: skip
