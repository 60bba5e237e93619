"""Which variables a construct must hand on: those read afterwards, or by the next iteration of a loop.

A backward walk over the statements of one function. It errs on the side of live: names that nested functions or kept
generators read are live everywhere, handlers of `try` may see any value of its body.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.lang.rewrite import names
from tilewright.lang.rewrite.effects import NONE, Names, effect, in_order

_INTROSPECTION = {"locals", "vars", "eval", "exec", "dir"}
_CONSUMERS = {"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"}


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
    always = whole.captured | whole.nonlocals | _read_late(function)
    if whole.reads & _INTROSPECTION:
        always |= whole.bound | {arg.arg for arg in names.arguments(function.args)}
    flow = _Flow(always=frozenset(always))
    _block(function.body, flow.always, flow, result)
    return result


def _read_late(function: ast.AST) -> set[str]:
    """What generator expressions read that are not consumed where they are written, as in `sum(x for x in xs)`."""
    nodes = list(ast.walk(function))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    consumed = {id(argument) for call in calls if call.func.id in _CONSUMERS for argument in call.args}  # type: ignore[attr-defined]
    late = [node for node in nodes if isinstance(node, ast.GeneratorExp) and id(node) not in consumed]
    return {name for node in late for name in names.summary(node).reads}


def _block(statements: Sequence[ast.stmt], live: Names, flow: _Flow, result: Liveness) -> Names:
    for statement in reversed(statements):
        live = _statement(statement, live, flow, result) | flow.always
    return live


def _statement(node: ast.stmt, live: Names, flow: _Flow, result: Liveness) -> Names:
    match node:
        case ast.If():
            result.after[node] = live
            arms = _block(node.body, live, flow, result) | _block(node.orelse, live, flow, result)
            return effect(node.test).before(arms)
        case ast.For() | ast.AsyncFor():
            return _for(node, live, flow, result)
        case ast.While():
            return _while(node, live, flow, result)
        case ast.With() | ast.AsyncWith():
            result.after[node] = live
            return in_order(node.items).before(_block(node.body, live, flow, result))
        case ast.Try() | ast.TryStar():
            return _try(node, live, flow, result)
        case ast.Match():
            return _match(node, live, flow, result)
        case ast.Return() | ast.Raise():
            return effect(node).before(flow.always)
        case ast.Break():
            return flow.at_break
        case ast.Continue():
            return flow.at_continue
    return effect(node).before(live)


def _match(node: ast.Match, live: Names, flow: _Flow, result: Liveness) -> Names:
    """A pattern binds when all of it matches, before its guard; what it bound stays where the guard fails."""
    below = live
    for case in reversed(node.cases):
        taken = _block(case.body, live, flow, result)
        if case.guard is not None:
            taken = effect(case.guard).before(taken | below)
        below = effect(case.pattern).before(taken) | (NONE if _always_matches(case.pattern) else below)
    return effect(node.subject).before(below)


def _always_matches(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=inner):
            return inner is None or _always_matches(inner)
        case ast.MatchOr(patterns=alternatives):
            return any(map(_always_matches, alternatives))
    return False


def _for(node: ast.For | ast.AsyncFor, live: Names, flow: _Flow, result: Liveness) -> Names:
    done = _block(node.orelse, live, flow, result)
    head = done
    while True:
        inside = replace(flow, at_break=live, at_continue=head)
        iteration = effect(node.target).before(_block(node.body, head, inside, result))
        if iteration <= head:
            break
        head |= iteration
    result.after[node] = head | live
    return effect(node.iter).before(head)


def _while(node: ast.While, live: Names, flow: _Flow, result: Liveness) -> Names:
    """What the test binds goes on to the body, so it is carried too."""
    tested = _block(node.orelse, live, flow, result)
    while True:
        head = effect(node.test).before(tested)
        inside = replace(flow, at_break=live, at_continue=head)
        iteration = _block(node.body, head, inside, result)
        if iteration <= tested:
            break
        tested |= iteration
    result.after[node] = head | tested | live
    return head


def _try(node: ast.Try | ast.TryStar, live: Names, flow: _Flow, result: Liveness) -> Names:
    after = _block(node.finalbody, live, flow, result)
    landing = after
    for handler in node.handlers:
        caught = _block(handler.body, after, flow, result) - {handler.name}
        landing |= effect(handler.type).before(caught)
    guarded = replace(flow, always=flow.always | landing)
    success = _block(node.orelse, after, flow, result)
    return _block(node.body, success | landing, guarded, result) | landing
