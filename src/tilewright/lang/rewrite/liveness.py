"""Which variables a construct must hand on: those read afterwards, or by the next turn of a loop.

A backward walk over the statements of one function. It errs on the side of live: names captured by nested functions
are live everywhere, handlers of `try` may see any value of its body.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.lang.rewrite import names

_INTROSPECTION = {"locals", "vars", "eval", "exec", "dir"}
Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class _Flow:
    """What is live where control may go: after `break`, at `continue`, and wherever an exception lands."""

    at_break: Names = NONE
    at_continue: Names = NONE
    always: Names = NONE


@dataclass
class Liveness:
    """`after[node]` for each `if`, `for`, `while` and `with`: names live after it; for loops also at their head."""

    after: dict[ast.stmt, Names] = field(default_factory=dict)

    def carried(self, node: ast.stmt, assigned: set[str]) -> tuple[list[str], list[str]]:
        """`assigned` split into those that must be carried and those that nobody reads again."""
        live = self.after[node]
        return sorted(assigned & live), sorted(assigned - live)


def analyse(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Liveness:
    """Liveness at every construct of `function`, nested functions apart."""
    result = Liveness()
    whole = names.summary_of(function.body)
    always = whole.captured | whole.nonlocals
    if whole.reads & _INTROSPECTION:
        always |= whole.bound | {arg.arg for arg in names.arguments(function.args)}
    flow = _Flow(always=frozenset(always))
    _block(function.body, flow.always, flow, result)
    return result


def _block(statements: Sequence[ast.stmt], live: Names, flow: _Flow, result: Liveness) -> Names:
    for statement in reversed(statements):
        live = _statement(statement, live, flow, result) | flow.always
    return live


def _uses(*nodes: ast.AST | None) -> Names:
    return NONE.union(*(names.summary(node).reads for node in nodes if node is not None))


def _statement(node: ast.stmt, live: Names, flow: _Flow, result: Liveness) -> Names:
    match node:
        case ast.If():
            result.after[node] = live
            arms = _block(node.body, live, flow, result) | _block(node.orelse, live, flow, result)
            return arms | _uses(node.test)
        case ast.For() | ast.AsyncFor():
            return _for(node, live, flow, result)
        case ast.While():
            return _while(node, live, flow, result)
        case ast.With() | ast.AsyncWith():
            result.after[node] = live
            inside = _block(node.body, live, flow, result)
            return inside | _uses(*node.items)
        case ast.Try() | ast.TryStar():
            return _try(node, live, flow, result)
        case ast.Match():
            arms = live
            for case in node.cases:
                arms |= _block(case.body, live, flow, result) | _uses(case.pattern, case.guard)
            return arms | _uses(node.subject)
        case ast.Return():
            return flow.always | _uses(node.value)
        case ast.Raise():
            return flow.always | _uses(node)
        case ast.Break():
            return flow.at_break
        case ast.Continue():
            return flow.at_continue
    return (live - _kills(node)) | _uses(node) | _updated(node)


def _kills(node: ast.stmt) -> Names:
    """Names that the statement certainly overwrites."""
    match node:
        case ast.Assign(targets=targets):
            return frozenset().union(*(_target(target) for target in targets))
        case ast.AnnAssign(target=target, value=ast.expr()):
            return _target(target)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return frozenset(names.summary(node).bound)
        case ast.Delete(targets=targets):
            return frozenset().union(*(_target(target) for target in targets))
    return NONE


def _target(node: ast.expr) -> Names:
    return frozenset(names.summary(node).bound)


def _updated(node: ast.stmt) -> Names:
    return _target(node.target) if isinstance(node, ast.AugAssign) else NONE


def _for(node: ast.For | ast.AsyncFor, live: Names, flow: _Flow, result: Liveness) -> Names:
    done = _block(node.orelse, live, flow, result)
    head = done
    while True:
        inside = replace(flow, at_break=live, at_continue=head)
        turn = (_block(node.body, head, inside, result) - _target(node.target)) | _uses(node.target)
        if turn <= head:
            break
        head |= turn
    result.after[node] = head | live
    return head | _uses(node.iter)


def _while(node: ast.While, live: Names, flow: _Flow, result: Liveness) -> Names:
    done = _block(node.orelse, live, flow, result)
    head = done | _uses(node.test)
    while True:
        inside = replace(flow, at_break=live, at_continue=head)
        turn = _block(node.body, head, inside, result)
        if turn <= head:
            break
        head |= turn
    result.after[node] = head | live
    return head


def _try(node: ast.Try | ast.TryStar, live: Names, flow: _Flow, result: Liveness) -> Names:
    after = _block(node.finalbody, live, flow, result)
    landing = after
    for handler in node.handlers:
        landing |= _block(handler.body, after, flow, result) | _uses(handler.type)
    guarded = replace(flow, always=flow.always | landing)
    success = _block(node.orelse, after, flow, result)
    return _block(node.body, success | landing, guarded, result) | landing
